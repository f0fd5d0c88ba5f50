"""Text that came from elsewhere, made fit for a terminal or a log line."""

import re

_SCRUB_LIMIT = 300
#: A run without blanks outside of double quotes. Everything up to its last `@` may be a credential.
_RUN = re.compile(r'(?:"(?:[^"\\]|\\.)*"|\S)+')
_SCHEME = re.compile(r"[\"'<(]*[A-Za-z][A-Za-z0-9+.-]*://")
_ACCOUNT = re.compile(r"(?P<root>/home/|/Users/|[A-Za-z]:\\Users\\)(?P<name>[^/\\\s\"':]+)")
#: A quoted piece of at least two characters.
_QUOTED = re.compile(r"\"[^\"]{2,}\"|'[^']{2,}'")


def printable(text: str) -> str:
    """`text` on one line, with what steers a terminal or turns the reading direction written as escapes."""
    return "".join(char if char.isprintable() else f"\\u{{{ord(char):04X}}}" for char in text)


def printable_block(text: str) -> str:
    """Like `printable`, keeping line breaks and tabs."""
    return "\n".join(printable(line.replace("\t", "    ")) for line in text.split("\n"))


def scrub(text: object) -> str:
    """An error's text without userinfo and account names, at most 300 characters; `unknown` for no text.

    A quoted piece of what was taken out is taken out wherever it stands: errors like to repeat what they choked on.
    """
    if not isinstance(text, str) or not text:
        return "unknown"
    removed: list[str] = []

    def without_userinfo(run: re.Match[str]) -> str:
        secret, at, rest = run[0].rpartition("@")
        if not at:
            return run[0]
        scheme = _SCHEME.match(secret)
        removed.append(secret[scheme.end() :] if scheme else secret)
        return f"{scheme[0] if scheme else ''}[redacted]@{rest}"

    def without_account(found: re.Match[str]) -> str:
        removed.append(found["name"])
        return f"{found['root']}[redacted]"

    def without_piece(found: re.Match[str]) -> str:
        quote, piece = found[0][0], found[0][1:-1]
        return f"{quote}[redacted]{quote}" if any(piece in one for one in removed) else found[0]

    clean = _ACCOUNT.sub(without_account, _RUN.sub(without_userinfo, text))
    clean = printable(_QUOTED.sub(without_piece, clean))
    return clean if len(clean) <= _SCRUB_LIMIT else clean[:_SCRUB_LIMIT] + "…"
