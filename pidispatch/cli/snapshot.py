"""The queue at one moment, as `pi-dispatch status --json` prints it (docs/how-to/status.md)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from pidispatch.jobs.deliveries import Source
from pidispatch.jobs.overview import JobSeen, Overview
from pidispatch.jobs.pausing import EVERY, paused_state
from pidispatch.jobs.rows import WorkerSeen
from pidispatch.jobs.triggered import TriggerPaused
from pidispatch.server.client import ServerFacts
from pidispatch.values.limits import Limits


@dataclass(frozen=True)
class Snapshot:
    """Everything that is shown."""

    #: Which server it is, without its password.
    where: str
    server: ServerFacts
    overview: Overview
    workers: tuple[WorkerSeen, ...]
    #: The forges that receivers hear.
    sources: Sequence[Source] = ()
    #: The triggers that are paused, by what their runs are counted under.
    paused: Mapping[str, TriggerPaused] = field(default_factory=dict)
    #: Of each forge that is not served the places of its armed rules in the triggers file.
    unheard: Mapping[str, Sequence[int]] = field(default_factory=dict)

    def counts(self) -> dict[str, int]:
        """How many jobs stand where. What waits in a paused queue counts as paused."""
        seen, everything = self.overview, EVERY in self.overview.paused
        resting = sum(queue.waiting for queue in seen.queues if everything or queue.paused_since)
        return {
            "waiting": sum(queue.waiting for queue in seen.queues) - resting,
            "active": seen.active,
            "paused": resting,
            "delayed": seen.deferred,
            "failed": seen.failed,
        }

    def slots(self) -> tuple[int, int]:
        """Taken slots and all slots of the workers that are there."""
        return sum(one.told("running") for one in self.workers), sum(one.told("slots") for one in self.workers)


def as_document(seen: Snapshot) -> dict[str, Any]:
    """What `--json` prints."""
    overview = seen.overview
    taken, slots = seen.slots()
    return {
        "pausedState": paused_state(overview.names, overview.paused),
        **seen.counts(),
        "at": iso(overview.at),
        "allPausedSince": iso(overview.all_paused_since),
        "slots": {"taken": taken, "all": slots},
        "unrecorded": overview.unrecorded,
        "oldestWaiting": None if overview.oldest is None else _job(overview.oldest),
        "running": [_job(job) for job in overview.running],
        "held": [_job(job) for job in overview.held],
        "queues": [
            {
                "name": queue.name,
                "waiting": queue.waiting,
                "pausedSince": iso(queue.paused_since),
                "workers": [worker.name for worker in seen.workers if queue.name in worker.queues],
            }
            for queue in overview.queues
        ],
        "workers": [_worker(worker) for worker in seen.workers],
        "sources": [
            {
                "forge": one.forge.value,
                "since": iso(one.since),
                "last": iso(one.last),
                "silent": is_silent(seen, one),
                "faulty": one.faulty,
            }
            for one in seen.sources
        ],
        "pausedTriggers": [{"trigger": name, **pause_document(one)} for name, one in seen.paused.items()],
        "unservedRules": [{"forge": forge, "indexes": list(places)} for forge, places in seen.unheard.items()],
        "server": {"where": seen.where, **seen.server.model_dump(mode="json"), "durable": seen.server.durable},
    }


def _job(job: JobSeen) -> dict[str, Any]:
    return job.model_dump(mode="json")


def _worker(worker: WorkerSeen) -> dict[str, Any]:
    fields = worker.fields
    return {
        "name": worker.name,
        "queues": worker.queues,
        "slots": worker.told("slots"),
        "running": worker.told("running"),
        "tickAgeS": tick_age_s(worker),
        "seenAgeS": round(worker.age_ms / 1000),
        "engine": fields.get("engine"),
        "files": faulty_files(worker),
    }


def quiet_s(seen: Snapshot, source: Source) -> float:
    """Seconds since a forge sent something authentic, or since it began to be heard."""
    return (seen.overview.at - (source.last or source.since)).total_seconds()


def is_silent(seen: Snapshot, source: Source) -> bool:
    """Whether that is so long that somebody should look."""
    return quiet_s(seen, source) > Limits().source_silent_s


def pause_document(paused: TriggerPaused) -> dict[str, Any]:
    """Why a trigger is paused, as every document has it."""
    return {
        "since": iso(paused.at),
        "runs": paused.runs,
        "reason": paused.reason or None,
        "jobId": paused.job_id,
        "label": paused.label or None,
    }


def tick_age_s(worker: WorkerSeen) -> int:
    """Seconds since the worker's consumer last proved that it hears."""
    return worker.told("heardS") + round(worker.age_ms / 1000)


def faulty_files(worker: WorkerSeen) -> list[str]:
    """Names of the operator's files whose newest content the worker refuses, so that it goes on with the old one."""
    return [name for name in worker.fields.get("files", "").split(",") if name]


def iso(instant: datetime | None) -> str | None:
    """An instant as every document has it: ISO 8601, UTC."""
    return None if instant is None else instant.astimezone(UTC).isoformat().replace("+00:00", "Z")
