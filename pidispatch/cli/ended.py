"""How a job ended, for the one who waited: in full where its worker still tells it, else from its record."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import click
from pydantic import ValidationError
from rich.console import Console

from pidispatch.cli.show import explained, show_record
from pidispatch.cli.view import QuietConsole, note, show_result
from pidispatch.config.text import printable
from pidispatch.jobs.endings import Telling
from pidispatch.runs.records import RecordStore
from pidispatch.values.job import Job
from pidispatch.values.outcome import Completed, recorded_outcome
from pidispatch.values.record import Result, RunRecord

#: Exit code of one who waited, by the outcome of the record.
EXIT_CODES: Final = {"completed": 0, "failed": 1, "policy": 2}


@dataclass(frozen=True)
class Ended:
    """A job that ended."""

    record: RunRecord
    #: What its worker tells beside the record; `None` where it is gone, or another version's.
    result: Result | None = None
    #: Where the record lies.
    path: str | None = None
    #: That it is not written, and why.
    record_error: str | None = None

    @property
    def exit_code(self) -> int:
        """The exit code of one who waited for it."""
        return EXIT_CODES[self.record.outcome]


def ended_as(
    record: RunRecord, document: Mapping[str, object] | None, records: RecordStore, *, late: bool = False
) -> Ended:
    """The end that `record` stands for, with what `document` tells of it; `late`: the record is not written yet."""
    error = "the record of this run is not written yet; a worker does so within minutes" if late else None
    told = _told(record, document)
    if told is None:
        kept = records.find(record.job_id)
        here = kept is not None and kept.attempt == record.attempt
        return Ended(record, path=str(records.record_path(record.job_id)) if here else None, record_error=error)
    if told.record_error is not None:
        error = f"the record of this run could not be written: {told.record_error}"
    return Ended(record, told.result, None if error else told.record, error)


def _told(record: RunRecord, document: Mapping[str, object] | None) -> Telling | None:
    """What `document` tells, where it tells of this very end."""
    if document is None:
        return None
    try:
        # As JSON, in which alone numbers and instants are what they were.
        told = Telling.model_validate_json(json.dumps(document))
    except ValidationError:
        return None
    # It may be left of an attempt that another one followed, whose own worker could tell nothing.
    same = told.result.started_at == record.started_at and recorded_outcome(told.result.outcome) == record.outcome
    return told if same else None


def show_end(job: Job, ended: Ended, records: RecordStore, notes: Console, *, as_json: bool) -> None:
    """Print how it ended, for a person or as one JSON object."""
    if ended.record_error is not None:
        note(notes, f"note: {printable(ended.record_error)}")
    if as_json:
        click.echo(json.dumps(as_document(ended), indent=2))
    elif ended.result is not None:
        show_result(QuietConsole(), job, ended.result, Path(ended.path) if ended.path else None)
    else:
        show_record(QuietConsole(), records, ended.record)


def as_document(ended: Ended) -> dict[str, object]:
    """The run record's keys as they are, and what only the one who asks may see beside them."""
    record, result = ended.record, ended.result
    document: dict[str, object] = record.model_dump(mode="json")
    document |= _why(record, result)
    change = result.change if result else None
    document["change"] = change.model_dump(mode="json") if change else None
    document["changeError"] = result.change_error if result else None
    document["diff"] = result.diff if result else None
    document["outboxFiles"] = result.outbox_files if result else None
    document["restored"] = list(result.restored) if result else None
    document["kept"] = result.kept if result else None
    document["guardError"] = result.guard_error if result else None
    document["record"] = ended.path
    return document


def _why(record: RunRecord, result: Result | None) -> dict[str, object]:
    """Why it did not complete and what to do; empty for one that did."""
    if record.reason is None:
        return {}
    if result is None or isinstance(result.outcome, Completed):
        meaning, remedy = explained(record.reason, record.cause)
        return {"why": meaning, "remedy": remedy, "message": None}
    outcome = result.outcome
    return {
        "why": getattr(outcome, "detail", None) or outcome.reason.meaning,
        "remedy": getattr(outcome, "remedy", None) or outcome.reason.remedy,
        "message": result.telemetry.message,
    }
