"""The grammar of the egress proxy's two lists, in one place for the host and for the proxy itself.

The egress image carries a copy of this file, so it imports nothing but the standard library. The lists themselves are
explained in docs/explanation/egress.md; the form that is rendered is squid's `dstdomain`:
https://www.squid-cache.org/Doc/config/acl/
"""

import ipaddress
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

#: Names that jobs may reach.
ALLOWLIST: Final = "egress-allowlist.conf"
#: Those of them that may resolve to a private address.
PRIVATE: Final = "egress-private.conf"

_LABEL: Final = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
_NUMBER: Final = re.compile(r"[0-9]+|0x[0-9a-f]*")
_MAX_NAME: Final = 253


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing in a list that cannot stand there."""

    file: str
    #: Counted from 1; 0 for the file as a whole.
    line: int
    entry: str
    reason: str
    remedy: str

    def __str__(self) -> str:
        if self.line == 0:
            return f"{self.file} {self.reason}. {self.remedy}"
        return f"{self.file}, line {self.line}: {self.entry!r} {self.reason}. {self.remedy}"


class ListError(ValueError):
    """The lists cannot be used; every fault of both is in `faults`."""

    def __init__(self, faults: Collection[Fault]) -> None:
        super().__init__("\n".join(map(str, faults)))
        self.faults = tuple(faults)


@dataclass(frozen=True, slots=True)
class Lists:
    """Both lists in lower case, sorted, no entry covered by another one. A leading dot is a name and all below it."""

    allowed: tuple[str, ...]
    private: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Texts:
    """Both files as they were read; `None` for one that is not there."""

    allowed: str | None
    private: str | None


def read(folder: Path) -> Texts:
    """The files of `folder` as they are now. Raises `OSError` for one that is there and cannot be read."""
    return Texts(_text(folder / ALLOWLIST), _text(folder / PRIVATE))


def _text(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return None


def parse(texts: Texts) -> Lists:
    """The lists in `texts`; a missing private list is an empty one. Raises `ListError` with all faults at once."""
    faults: list[Fault] = []
    if texts.allowed is None:
        remedy = "Write one host per line into it; an empty file allows nothing"
        faults.append(Fault(ALLOWLIST, 0, "", "is missing", remedy))
    allowed = _entries(ALLOWLIST, texts.allowed or "", faults)
    private = _entries(PRIVATE, texts.private or "", faults)
    if texts.allowed is not None:
        faults += _idle(private, set(allowed.values()))
    if faults:
        raise ListError(faults)
    return Lists(_smallest(allowed.values()), _smallest(private.values()))


def render(entries: Collection[str]) -> str:
    """`entries` as squid reads them from a file."""
    return "".join(f"{entry}\n" for entry in entries)


def _entries(file: str, text: str, faults: list[Fault]) -> dict[int, str]:
    """Entries by their line; what is none is added to `faults`."""
    found = {}
    for number, line in enumerate(text.split("\n"), start=1):
        entry = line.partition("#")[0].strip(" \t\r")
        if not entry:
            continue
        if (wrong := _wrong(entry)) is not None:
            faults.append(Fault(file, number, entry, *wrong))
        else:
            found[number] = entry.lower()
    return found


def _wrong(entry: str) -> tuple[str, str] | None:
    """Why `entry` is no entry, and what to write instead."""
    host = entry.removeprefix(".")
    if "://" in entry:
        return "is a URL", "Write its host alone, without scheme and path"
    if len(entry.split()) > 1:
        return "holds a blank", "Write one host per line"
    if _is_address(host):
        return "is an IP address", "Write the name of the host; addresses are not let through"
    if "/" in entry:
        return "holds a slash", "Write a host alone, without path or range"
    if "*" in entry:
        return "holds a wildcard", "Write a leading dot for a name and all names below it: .example.com"
    if ":" in entry:
        return "names a port", "Write the host alone; tunnels are let through to port 443 and to no other"
    if entry.endswith("."):
        return "ends with a dot", "Write the name without it"
    if not entry.isascii():
        return "is not plain ASCII", "Write an international name in its xn-- form"
    return _wrong_name(host.lower())


def _wrong_name(host: str) -> tuple[str, str] | None:
    labels = host.split(".")
    if len(host) > _MAX_NAME:
        return f"is longer than {_MAX_NAME} characters", "Write the name of a host"
    if not all(_LABEL.fullmatch(label) for label in labels):
        return (
            "is not the name of a host",
            "Between its dots a name has 1 to 63 letters, digits or hyphens and neither begins nor ends with a hyphen",
        )
    if _NUMBER.fullmatch(labels[-1]):
        return "ends in a number, as only an address does", "Write the name of the host"
    return None


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text.strip("[]"))
    except ValueError:
        return False
    return True


def _idle(private: dict[int, str], allowed: set[str]) -> Iterator[Fault]:
    """Entries of the private list that would do nothing: an operator who wrote one expects something of it."""
    for number, entry in private.items():
        if entry not in allowed and not any(wider in allowed for wider in _wider(entry)):
            remedy = f"Add it to {ALLOWLIST} too, or take it out here"
            yield Fault(PRIVATE, number, entry, f"is covered by no line of {ALLOWLIST}", remedy)


def _smallest(entries: Collection[str]) -> tuple[str, ...]:
    """Without what another entry covers: squid ends itself where it finds both."""
    known = set(entries)
    return tuple(sorted(entry for entry in known if not any(wider in known for wider in _wider(entry))))


def _wider(entry: str) -> Iterator[str]:
    """Every other entry that would cover all hosts of `entry`."""
    host = entry.removeprefix(".")
    if host == entry:
        yield f".{host}"
    while "." in host:
        host = host.partition(".")[2]
        yield f".{host}"
