"""The job of a schedule that a person fires by hand: now, and with the schedule's own settings."""

import difflib
import os
from datetime import datetime
from pathlib import Path
from typing import Final

from pidispatch.config.operator_file import read_text
from pidispatch.config.settings import Settings
from pidispatch.config.text import printable
from pidispatch.jobs.ids import local_id
from pidispatch.triggers.entry import CronTrigger
from pidispatch.triggers.file import parse_triggers
from pidispatch.triggers.occurrences import job_of
from pidispatch.values.errors import ConfigError
from pidispatch.values.job import LocalJob

#: Ids that are told to one who named none of them.
_TOLD: Final = 10


def fired_job(schedule_id: str, settings: Settings, now: datetime, *, force: bool) -> LocalJob:
    """The job of the schedule with this id in PI_TRIGGERS_FILE. Raises `ConfigError` for a broken file, or none such.

    It is no occurrence: what falls due later does so all the same, and how it ends does not pause the schedule.
    """
    if (path := settings.triggers_file) is None:
        raise ConfigError("--trigger needs the triggers file: name it with PI_TRIGGERS_FILE", "operator-file")
    entries = dict(parse_triggers(read_text(path), path).schedules)
    index = next((place for place, one in entries.items() if one.on.id == schedule_id), None)
    if index is None:
        raise ConfigError(
            f"{printable(str(path))} holds no schedule with the id {printable(schedule_id)!r}. "
            f"{_instead(schedule_id, tuple(entries.values()))}",
            "operator-file",
        )
    run = entries[index].run
    folder = Path(os.path.realpath(run.folder))
    job_id = local_id(folder, run.flow, run.task, now, provider=run.provider, model=run.model)
    job = job_of(entries[index], index, job_id)
    return job.model_copy(update={"folder": folder, "allow_dirty": force, "breaker": None})


def _instead(wanted: str, entries: tuple[CronTrigger, ...]) -> str:
    ids = [one.on.id for one in entries]
    if near := difflib.get_close_matches(wanted, ids, n=1):
        return f"Did you mean {printable(near[0])!r}?"
    if not ids:
        return "It holds none at all"
    more = f" and {len(ids) - _TOLD} more" if len(ids) > _TOLD else ""
    return f"It holds: {', '.join(printable(one) for one in ids[:_TOLD])}{more}"
