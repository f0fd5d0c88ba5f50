"""The operator's files: what the programs that read one would say of it."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from pidispatch.cli.checks.row import Finding, Row, failed, passed, warned
from pidispatch.cli.checks.rules import TAKE_OUT, told_once, told_unheard
from pidispatch.cli.checks.scene import Scene
from pidispatch.config.operator_file import parse_json, read_text, refuse
from pidispatch.config.text import printable
from pidispatch.gates.pause_windows import parse_pause_windows
from pidispatch.triggers.disarm import DEFAULT
from pidispatch.triggers.entry import CronTrigger
from pidispatch.triggers.file import parse_triggers
from pidispatch.values.cause import remedy_of
from pidispatch.values.errors import ConfigError


class FileKind(NamedTuple):
    """One kind of file."""

    #: Name of its rows.
    check: str
    #: The field at its top by which it is told from the others.
    key: str
    #: What its entries are called.
    entries: str
    #: What the programs make of it: its entries. Raises `ConfigError` where they refuse it.
    parse: Callable[[str, Path], Sequence[object]]


def _triggers(text: str, path: Path) -> Sequence[object]:
    return parse_triggers(text, path).triggers


KINDS: Final = (
    FileKind("quiet-hours", "windows", "pause windows", parse_pause_windows),
    FileKind("triggers", "triggers", "triggers", _triggers),
)
#: Name of the rows of what is of no known kind.
UNKNOWN: Final = "file"


def quiet_hours(scene: Scene) -> Iterator[Finding]:
    """The file of the pause windows, where there is one. Raises `ConfigError` where no worker would start on it."""
    path = scene.settings("PI_PAUSE_WINDOWS_FILE").pause_windows_file
    if path is not None:
        yield passed(_count(path, parse_pause_windows(read_text(path), path), "pause windows"))


def triggers(scene: Scene) -> Iterator[Finding]:
    """The file of the triggers, where there is one. Raises `ConfigError` where no worker would start on it."""
    path = scene.settings("PI_TRIGGERS_FILE").triggers_file
    if path is None:
        yield from _default_triggers()
        return
    entries = parse_triggers(read_text(path), path).triggers
    schedules = [one for one in entries if isinstance(one, CronTrigger)]
    gone = [one.on.id for one in schedules if not Path(one.run.folder).is_dir()]
    if gone:
        yield warned(
            f"{printable(str(path))}: the folders of {', '.join(map(printable, gone))} are not on this machine, so no "
            "worker here runs them, and one without PI_WORKER_NAME does not start",
            "make the folders, or name others in the file; on several machines each runs those it has",
        )
    else:
        yield passed(_count(path, entries, "triggers"))


def _default_triggers() -> Iterator[Finding]:
    """The file of the current folder, which receivers read and no worker runs schedules of."""
    path = DEFAULT.absolute()
    if not path.exists():
        return
    try:
        found = _count(path, parse_triggers(read_text(path), path).triggers, "triggers")
    except ConfigError as error:
        yield warned(
            f"{error.message}\nPI_TRIGGERS_FILE is not set: a receiver that is started in this folder would not start",
            "mend it, or name another file with PI_TRIGGERS_FILE",
        )
    else:
        yield passed(f"{found}; PI_TRIGGERS_FILE is not set: only a receiver that is started in this folder reads it")


def look_into(paths: Sequence[Path]) -> list[Row]:
    """One row a file, of whatever kind it is."""
    return [_row(path) for path in paths]


def _row(path: Path) -> Row:
    check = UNKNOWN
    try:
        text = read_text(path)
        kind = _kind(text, path)
        check = kind.check
        entries = kind.parse(text, path)
        counted = _count(path, entries, kind.entries)
        deaf = told_unheard(entries)
        found = passed(counted) if deaf is None else warned(f"{counted}; {deaf}", TAKE_OUT)
    except ConfigError as error:
        found = failed(error.message, remedy_of(error.cause) or "mend what the message names")
    return Row(check, found.status, found.found, found.remedy)


def _kind(text: str, path: Path) -> FileKind:
    parsed = parse_json(text, path)
    found = [kind for kind in KINDS if isinstance(parsed, dict) and kind.key in parsed]
    if found:
        return found[0]
    known = ", ".join(f'"{kind.key}" ({kind.entries})' for kind in KINDS)
    return refuse(path, (f"is no file that pi-dispatch knows. It knows them by a field at their top: {known}",))


def _count(path: Path, entries: Sequence[object], called: str) -> str:
    once = told_once(entries)
    return f"{printable(str(path))} is good; {called}: {len(entries):,}{f' ({once})' if once else ''}"
