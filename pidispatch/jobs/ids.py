"""The ids of jobs, derived from what was asked for, so that the same wish is the same job."""

import hashlib
import json
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

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


def retry_id(job_id: str, number: int) -> str:
    """The id of the `number`th job that repeats another one."""
    return f"retry-{_digest([job_id, str(number)])}"


def _minute(now: datetime) -> str:
    return now.astimezone(UTC).strftime("%Y-%m-%dT%H:%M")


def _digest(parts: Sequence[str]) -> str:
    # The name of a folder need not be UTF-8; each of its bytes still counts.
    text = "\0".join(parts).encode("utf-8", "surrogatepass")
    return hashlib.sha256(text).hexdigest()[:_DIGITS]
