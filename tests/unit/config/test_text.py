"""Text from elsewhere: escaped for a terminal, and without credentials for a log."""

import time
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pidispatch.config.text import printable, printable_block, scrub

CONTROLS = [*map(chr, range(0x20)), "\x7f", *map(chr, range(0x80, 0xA0))]
BIDI = [*map(chr, range(0x202A, 0x202F)), *map(chr, range(0x2066, 0x206A)), "\u200e", "\u200f", "\u061c"]
INVISIBLE = ["\u200b", "\u2028", "\u2029", "\ufeff", "\u00ad", "\udcff", "\ue000", "\U000e0041"]


@pytest.mark.parametrize("char", [*CONTROLS, *BIDI, *INVISIBLE], ids=lambda char: f"{ord(char):04X}")
def test_a_character_that_could_deceive_is_escaped(char: str) -> None:
    assert printable(f"a{char}b") == f"a\\u{{{ord(char):04X}}}b"


@given(st.text())
def test_printable_text_holds_nothing_that_acts(text: str) -> None:
    for char in printable(text):
        assert unicodedata.category(char) not in {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
    assert "\n" not in printable(text)


@given(st.text())
def test_escaping_twice_changes_nothing_more(text: str) -> None:
    assert printable(printable(text)) == printable(text)


def test_ordinary_text_stays_as_it_is() -> None:
    text = "Grüße, 世界! 😀 [red]not markup[/red] \\n"
    assert printable(text) == text


def test_a_block_keeps_its_lines_and_widens_tabs() -> None:
    assert printable_block("a\tb\n\x1b[31mc\n") == "a    b\n\\u{001B}[31mc\n"
    assert printable_block("a\r\nb") == "a\\u{000D}\nb"


#: What a password may hold without a blank in it.
SECRET = st.text(st.characters(codec="ascii", min_codepoint=0x21, max_codepoint=0x7E), min_size=6, max_size=30)


@given(SECRET, st.sampled_from(["https://", "ssh://", "", "git+https://"]))
def test_what_stands_before_the_at_never_survives(secret: str, scheme: str) -> None:
    text = scrub(f"fatal: cannot reach {scheme}user:XX{secret}XX@host.test/path now")
    assert f"XX{secret}" not in text
    assert "user:" not in text
    assert text == f"fatal: cannot reach {scheme}[redacted]@host.test/path now"


@given(st.text(st.characters(codec="ascii", exclude_categories=["Cc"], exclude_characters='"\\'), min_size=6))
def test_a_secret_with_blanks_does_not_survive_in_quotes(secret: str) -> None:
    text = scrub(f'remote "https://user:XX{secret}XX@host.test/path" failed')
    assert text == 'remote "https://[redacted]@host.test/path" failed'


def test_escaped_quotes_do_not_end_a_quoted_text() -> None:
    assert scrub(r'at "https://u:a \" b@host" end') == 'at "https://[redacted]@host" end'


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("https://u:p@a@host/x", "https://[redacted]@host/x"),
        ("'https://u:p'w@host'", "'https://[redacted]@host'"),
        ("<https://u:p<w@host>", "<https://[redacted]@host>"),
        ("url=https://u:p@host", "[redacted]@host"),
        ('url="https://u:p w@host"', '[redacted]@host"'),
        ("https://u:p@h1,https://v:q@h2", "https://[redacted]@h2"),
        ("https://u:p@h1 https://v:q@h2", "https://[redacted]@h1 https://[redacted]@h2"),
        ("https://host/path?x=1", "https://host/path?x=1"),
        ('say "hello', 'say "hello'),
    ],
)
def test_userinfo_is_taken_out_up_to_the_last_at(text: str, expected: str) -> None:
    assert scrub(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("open /home/alice/x: denied", "open /home/[redacted]/x: denied"),
        ("/Users/bob", "/Users/[redacted]"),
        (r"C:\Users\carol\x", r"C:\Users\[redacted]\x"),
        ("'/home/dave' and \"/home/erin\"", "'/home/[redacted]' and \"/home/[redacted]\""),
        ("/homes/frank", "/homes/frank"),
    ],
)
def test_account_names_are_taken_out(text: str, expected: str) -> None:
    assert scrub(text) == expected


def test_control_characters_are_escaped() -> None:
    assert scrub("a\x1b[2Jb\nc") == "a\\u{001B}[2Jb\\u{000A}c"


@pytest.mark.parametrize("value", [None, "", 3, b"bytes", ValueError("x")])
def test_no_text_is_unknown(value: object) -> None:
    assert scrub(value) == "unknown"


def test_the_cut_comes_after_the_scrubbing() -> None:
    assert scrub("x" * 300) == "x" * 300
    assert scrub("x" * 301) == "x" * 300 + "…"
    secret = "s" * 400
    assert scrub(f"https://{secret}@host {'x' * 100}") == f"https://[redacted]@host {'x' * 100}"


@pytest.mark.parametrize("text", ["a" * 65536, "a:" * 32768, '"' * 65536, "@" * 65536, 'a"b ' * 16384])
def test_a_long_text_takes_no_long_time(text: str) -> None:
    start = time.process_time()
    assert len(scrub(text)) <= 301
    assert time.process_time() - start < 5


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("https://user:secret@host: 'secret' refused", "https://[redacted]@host: '[redacted]' refused"),
        ('https://user:secret@host: no user "user"', 'https://[redacted]@host: no user "[redacted]"'),
        ("no user 'alice' for /home/alice/x", "no user '[redacted]' for /home/[redacted]/x"),
        ("https://user:secret@host: 'other' and 's'", "https://[redacted]@host: 'other' and 's'"),
        ("'secret'", "'secret'"),
    ],
)
def test_a_quoted_piece_of_what_was_taken_out_goes_with_it(text: str, clean: str) -> None:
    assert scrub(text) == clean
