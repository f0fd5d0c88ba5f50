"""The ids of jobs, derived from what was asked for, so that the same wish is the same job."""

import hashlib
import json
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from pidispatch.values.forge import FORGES, JobKind
from pidispatch.values.job import ForgeJob, Matched

_DIGITS = 16


def local_id(
    folder: Path | str,
    flow: str | None,
    task: str | None,
    now: datetime,
    *,
    provider: str | None = None,
    model: str | None = None,
    models: Sequence[str] = (),
    command: str | None = None,
) -> str:
    """The id of a job on a folder: the same wish within one minute (UTC) is the same job.

    `now` is aware. A command job has the command in the place of a flow. The model counts only where one is named.
    """
    parts = [str(folder), flow or "" if command is None else f"cmd:{command}", task or "", _minute(now)]
    if provider or model or models:
        listed = json.dumps(list(models), separators=(",", ":"), ensure_ascii=False) if models else ""
        parts += [provider or "", model or "", listed]
    return f"local-{_digest(parts)}"


def chain_id(parent: str, flow: str | None, task: str | None) -> str:
    """The id of a job that another job asked for; the same wish of one parent is the same job for ever."""
    return f"chain-{_digest([parent, flow or '', task or ''])}"


def forge_id(kind: str, delivery: str, replica: int | None = None) -> str:
    """The id of the job that a delivery of a forge asks for; of the `replica`th, from 1, where it asks for several.

    Raises `ValueError` for a delivery without an id and a forge that is none: an id is never made up.
    """
    row = next((row for row in FORGES.values() if row.kind == kind), None)
    if row is None or not delivery:
        raise ValueError("a job of a forge is known by the id of a delivery")
    if replica is not None and replica < 1:
        raise ValueError("replicas are counted from 1")
    return f"{row.prefix}{delivery}" + (f"-r{replica}" if replica is not None else "")


def sibling_id(job: ForgeJob) -> str:
    """The id that stands for the same delivery where its rule has replicas now and had none, or the other way."""
    return forge_id(job.kind, job.trigger.delivery_id, 1 if job.replica is None else None)


def semantic_key(job: ForgeJob) -> str:
    """What is the same for two events that ask for the same: target, flow or command, and whether it was closed.

    https://docs.github.com/en/webhooks/webhook-events-and-payloads#pull_request: one act sends several events.
    """
    closed = "closed:" if closes(job.matched, job.kind) else ""
    slot = job.flow if job.command is None else f"cmd:{job.command}"
    replica = f":r{job.replica}" if job.replica is not None else ""
    return f"{job.target_name}:{closed}{slot}{replica}"


def closes(matched: Matched, kind: JobKind) -> bool:
    """Whether the rule is one for closing."""
    return matched.type == "issue" or (
        matched.type == "pull_request" and matched.action is not None and matched.action == FORGES[kind].close_word
    )


def retry_id(job_id: str, number: int) -> str:
    """The id of the `number`th job that repeats another one."""
    return f"retry-{_digest([job_id, str(number)])}"


def _minute(now: datetime) -> str:
    return now.astimezone(UTC).strftime("%Y-%m-%dT%H:%M")


def _digest(parts: Sequence[str]) -> str:
    # The name of a folder need not be UTF-8; each of its bytes still counts.
    text = "\0".join(parts).encode("utf-8", "surrogatepass")
    return hashlib.sha256(text).hexdigest()[:_DIGITS]
