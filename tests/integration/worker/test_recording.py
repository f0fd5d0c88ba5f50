"""The hook with an index beside its files: told in its place, and whatever becomes of it, the record is told."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from pidispatch.runs.index_look import Wanted, look
from pidispatch.worker.hook import Recorder
from pidispatch.worker.sweeper import Sweeper
from tests.integration.worker.bench import JOB, Bench
from tests.unit.runs.indexed import Indexed


@pytest.fixture
def place(tmp_path: Path, bench: Bench) -> Iterator[Indexed]:
    made = Indexed(tmp_path)
    bench.recorder = Recorder(bench.store, made.store)
    yield made
    made.index.close()


def test_an_end_is_in_file_index_and_store(bench: Bench, place: Indexed) -> None:
    bench.submit()
    bench.deliver()
    assert place.rows() == place.said()
    assert [row["job_id"] for row in place.rows()["attempts"]] == [JOB]
    assert bench.row().recorded


def test_a_hook_that_was_killed_before_the_index_heard_is_made_up_for_by_a_sweep(bench: Bench, place: Indexed) -> None:
    bench.submit()
    delivery = bench.deliverer(JOB, bench.row().gen)
    assert delivery.record is not None
    place.unheard.add(delivery.record)
    delivery.release()
    assert not bench.row().recorded
    # Whoever looks meanwhile finds it.
    assert [one.job_id for one in look(place.state, place.store, Wanted()).records] == [JOB]
    bench.client.zadd("pi:jobs:unrecorded", {JOB: 1})
    Sweeper(bench.store, lambda _: None, bench.recorder)()
    assert place.rows() == place.said()
    assert len(place.rows()["attempts"]) == 1
    assert bench.row().recorded


@pytest.mark.parametrize("harm", ["damaged", "newer", "gone"])
def test_no_fault_of_the_index_keeps_a_job_from_its_end(
    bench: Bench, place: Indexed, harm: str, logs: list[dict[str, object]]
) -> None:
    bench.submit("local-0")
    bench.deliver("local-0")
    if harm == "damaged":
        place.index.close()
        place.path.write_bytes(b"\xff" * 30_000)
    elif harm == "newer":
        place.index.close()
        with closing(sqlite3.connect(place.path)) as connection:
            connection.execute("PRAGMA user_version = 99")
    else:
        place.path.unlink()
    for job in ("local-1", "local-2"):
        bench.submit(job)
        bench.deliver(job)
        assert place.store.find(job) is not None
        assert bench.row(job).recorded
    assert [one["cause"] for one in logs if one["event"] == "index_unusable"] == (["newer"] if harm == "newer" else [])
    assert look(place.state, place.store, Wanted()).total == 3
