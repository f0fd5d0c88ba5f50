"""The mark of a rule that fires once, in the triggers file: read, written for its job, taken out for an operator.

An entry is known by its place and by what the job was fired by, as the file is edited while jobs are under way: what
does not fit any more is another rule, and is left alone (docs/how-to/one-shots.md).
"""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

from pidispatch.config.operator_file import parse_json, read_text, refuse
from pidispatch.config.settings import Settings
from pidispatch.triggers.writer import AT_ONCE, Patience, edit
from pidispatch.values.errors import ConfigError, DispatchError
from pidispatch.values.job import ForgeJob

#: The file where PI_TRIGGERS_FILE names none.
DEFAULT: Final = Path("triggers.json")
#: For a worker, which has other jobs to end: the store has a mark too.
PATIENT: Final = Patience(tries=5)
_MARK: Final = "disarmed"


class Mark(NamedTuple):
    """When a rule was spent, and by which job; one that a person wrote may not say."""

    at: str | None = None
    job_id: str | None = None


class Disarming(NamedTuple):
    """What came of a try to write a mark."""

    outcome: Literal["disarmed", "already", "failed", "unavailable"]
    #: Why it failed: `entry-changed`, or the cause of the fault.
    reason: str | None = None


def triggers_path(settings: Settings) -> Path:
    """The file of PI_TRIGGERS_FILE, else the default one of the current folder, which need not be there."""
    return settings.triggers_file or DEFAULT.absolute()


def mark_of(path: Path, job: ForgeJob) -> Mark | None:
    """The mark of the rule that fired `job`; `None` without one, and wherever that cannot be told for certain.

    The file is read each time. It need not be valid: a mark counts beside another entry that is broken.
    """
    try:
        entry = _entry(parse_json(read_text(path), path, unique_keys=True), job.matched.index)
    except ConfigError:
        return None
    if entry is None or not _fired(entry, job):
        return None
    mark = entry["on"].get(_MARK)
    return _mark(mark) if isinstance(mark, Mapping) else None


def disarm(path: Path, job: ForgeJob, mark: Mark, patience: Patience = PATIENT) -> Disarming:
    """Write `mark` at the rule that fired `job`; nothing else of the file is changed. Raises nothing of this house's.

    A mark that stands already stays, whosever it is.
    """
    if not os.path.lexists(path):
        return Disarming("unavailable")
    told = Disarming("failed", "entry-changed")

    def change(document: Any) -> bool:
        nonlocal told
        entry = _entry(document, job.matched.index)
        if entry is None or not _fired(entry, job):
            # Also where it was found a moment ago, in a file that was saved since.
            told = Disarming("failed", "entry-changed")
            return False
        marked = _MARK in entry["on"]
        told = Disarming("already" if marked else "disarmed")
        if not marked:
            entry["on"][_MARK] = {"at": mark.at, **({"jobId": mark.job_id} if mark.job_id is not None else {})}
        return not marked

    try:
        edit(path, change, patience)
    except DispatchError as error:
        return Disarming("failed", error.cause)
    return told


def rearm(path: Path, index: int) -> Mark | None:
    """Take the mark out of the entry at `index`, from 0: the mark that stood there; `None` where there was none.

    Nothing is written then. Raises `ConfigError` where there is no such entry, and what `edit` does.
    """
    taken: Mark | None = None

    def change(document: Any) -> bool:
        nonlocal taken
        taken = None
        entry = _entry(document, index)
        if entry is None:
            refuse(path, (f"has no trigger at index {index}. See which there are: pi-dispatch triggers list",))
        if _MARK not in entry["on"]:
            return False
        taken = _mark(entry["on"].pop(_MARK))
        return True

    edit(path, change, AT_ONCE)
    return taken


def _entry(document: Any, index: int) -> dict[str, Any] | None:
    """The entry at `index`, where both of its parts are objects."""
    entries = document.get("triggers") if isinstance(document, dict) else None
    if not isinstance(entries, list) or not 0 <= index < len(entries):
        return None
    entry = entries[index]
    parts = (entry.get("on"), entry.get("run")) if isinstance(entry, dict) else ()
    return entry if parts and all(isinstance(part, dict) for part in parts) else None


def _fired(entry: dict[str, Any], job: ForgeJob) -> bool:
    """Whether it is still the rule that fired `job`: once, for that item, to run the same."""
    on, run, matched = entry["on"], entry["run"], job.matched
    number = matched.number if matched.type == "issue" else job.target.number
    # By their JSON: `true` is no 1.
    same = json.dumps([on.get("once"), on.get("number")]) == json.dumps([True, number])
    lane = (run.get("flow"), run.get("command")) == (job.flow, job.command)
    return same and lane and (on.get("type"), run.get("kind")) == (matched.type, job.kind)


def _mark(mark: Any) -> Mark:
    """What a mark says, as far as it can be read."""
    said = mark if isinstance(mark, Mapping) else {}
    at, job_id = (one if isinstance(one := said.get(name), str) and one.strip() else None for name in ("at", "jobId"))
    return Mark(at, job_id)
