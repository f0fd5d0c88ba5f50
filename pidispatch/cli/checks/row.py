"""What one look at the surroundings comes to."""

from dataclasses import asdict, dataclass
from typing import Final, Literal

Status = Literal["pass", "warn", "fail"]
STATUSES: Final[tuple[Status, ...]] = ("pass", "warn", "fail")


@dataclass(frozen=True)
class Finding:
    """What was found, and for what does not pass how it is mended."""

    status: Status
    found: str
    #: `None` exactly where it passes.
    remedy: str | None = None


def passed(found: str) -> Finding:
    """A worker can live with it, and nobody has to do anything."""
    return Finding("pass", found)


def warned(found: str, remedy: str) -> Finding:
    """A worker starts all the same."""
    return Finding("warn", found, remedy)


def failed(found: str, remedy: str) -> Finding:
    """A worker does not start, or every job of it is refused or fails."""
    return Finding("fail", found, remedy)


@dataclass(frozen=True)
class Row:
    """One line of the verb."""

    #: Name of the check; it stays the same from version to version.
    check: str
    status: Status
    found: str
    remedy: str | None

    def document(self) -> dict[str, str | None]:
        """What `--json` prints of it."""
        return asdict(self)


class Told(Exception):
    """Ends a check without a row: why it cannot be made is told by the row of what it stands on."""
