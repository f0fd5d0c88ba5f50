"""A long history: `pi-dispatch runs` over it as a process, the index made anew, and one record told to the index."""

import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path

from benchmarks.measure import Figure, figure
from benchmarks.scratch import scratch
from pidispatch.runs.index import RecordIndex
from pidispatch.runs.records import RecordStore
from pidispatch.values.record import RunRecord
from pidispatch.values.usage import Usage, UsageRow
from tests.support.program import PROGRAM

RECORDS = 100_000
PROCESSES = 20
WRITES = 500
REBUILDS = 2
RUNS_BOUND_MS = 500
#: Of the processor, not of the clock: what a record waits for is its disk.
WRITE_BOUND_MS = 1
_BEGUN = datetime(2030, 1, 1, tzinfo=UTC)
_ENDS = (("completed", None), ("completed", None), ("policy", "runner-policy"), ("failed", "infra"))


def long_history() -> list[Figure]:
    """p50 of `pi-dispatch runs` over 100,000 records, of `runs --reindex`, and of one write of the index."""
    with _history() as place:
        index, store = RecordIndex(place / "state", place / "logs"), RecordStore(place / "logs")
        with closing(index):
            rebuilt = [_seconds(lambda: _program(place, "runs", "--reindex")) for _ in range(REBUILDS)]
            listed = [_seconds(lambda: _program(place, "runs")) for _ in range(PROCESSES)]
            filtered = [_seconds(lambda: _program(place, "runs", "--reason", "infra")) for _ in range(PROCESSES)]
            written = [_write(index, store, number) for number in range(WRITES)]
    count = f"{RECORDS:,} records"
    return [
        figure(f"pi-dispatch runs, {count}", "process start to exit, the newest 50", listed, None, RUNS_BOUND_MS),
        figure(f"runs --reason, {count}", "process start to exit, the newest 50", filtered, None, RUNS_BOUND_MS),
        figure(f"runs --reindex, {count}", "process start to exit", rebuilt, None, None),
        figure("index of one record", "processor time, after the record's file", written, None, WRITE_BOUND_MS),
    ]


def _seconds(act: object) -> float:
    assert callable(act)
    began = time.perf_counter()
    act()
    return time.perf_counter() - began


def _program(place: Path, *arguments: str) -> None:
    ours = {"PI_LOGS_DIR": str(place / "logs"), "PI_STATE_DIR": str(place / "state")}
    done = subprocess.run([PROGRAM, *arguments], check=True, capture_output=True, text=True, env=os.environ | ours)
    if arguments == ("runs",) and len(done.stdout.splitlines()) != 51:
        raise RuntimeError(f"the history of the benchmark is not listed: {done.stdout[:500]} {done.stderr[:500]}")


def _write(index: RecordIndex, store: RecordStore, number: int) -> float:
    """Seconds of the processor that the index takes for a record which has just been written."""
    path = store.write(_record(RECORDS + number))
    began = time.process_time()
    index.refresh((path.name,))
    return time.process_time() - began


@contextmanager
def _history() -> Iterator[Path]:
    """A folder with so many records and no index yet."""
    with scratch() as name:
        place = Path(name)
        for folder in ("logs", "state"):
            (place / folder).mkdir(mode=0o700)
        texts = [_record(number).model_dump_json() + "\n" for number in range(len(_ENDS))]
        for number in range(RECORDS):
            # Each text anew would take longer than all that is measured.
            text = texts[number % len(texts)].replace(_id(number % len(texts)), _id(number))
            ended = (_BEGUN + timedelta(minutes=number)).isoformat().replace("+00:00", "Z")
            text = text.replace("2030-01-01T00:00:07Z", ended)
            (place / "logs" / f"{_id(number)}.json").write_text(text)
        yield place


def _id(number: int) -> str:
    return f"local-{number * 2654435761 % 2**32:08x}{number:08x}"


def _record(number: int) -> RunRecord:
    """One as a run of the agent leaves it."""
    outcome, reason = _ENDS[number % len(_ENDS)]
    counts = {name: Decimal(1234) for name in UsageRow.model_fields} | {"cost": Decimal("0.012345")}
    row = UsageRow.model_validate(counts | {"provider": "anthropic", "model": "claude-sonnet-4-5-20250929"})
    return RunRecord.of_no_run(
        job_id=_id(number),
        kind="local",
        target="local:site",
        flow="fix",
        started_at=_BEGUN,
        ended_at=_BEGUN + timedelta(seconds=7),
        outcome=outcome,
        reason=reason,
        exit_code=0,
        turns=12,
        tokens={"input": Decimal(1000), "output": Decimal(234), "total": Decimal(1234), "cost": Decimal("0.012345")},
        usage=Usage(v=1, pi_ai="0.1.0", truncated=0, models=(row,)),
        provider="anthropic",
        model="claude-sonnet-4-5-20250929",
        budget_reserved=True,
        attempt=1,
        host="build-1",
        changed=True,
        git_restored=0,
    )
