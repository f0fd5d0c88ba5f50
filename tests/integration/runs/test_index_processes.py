"""One index, several processes: what they write at once, what stands when one is killed, and a rebuilding meanwhile."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pidispatch.runs.index_look import Wanted, look
from tests.support.server import until
from tests.unit.runs.history import record
from tests.unit.runs.indexed import Indexed

#: Keeps records without end, or so many; says how many are kept.
_WRITER = """
import sys
from pathlib import Path
from pidispatch.runs.index import RecordIndex
from pidispatch.runs.records import RecordStore
from tests.unit.runs.history import record
place, name, count = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
index = RecordIndex(place / "state", place / "logs")
store = RecordStore(place / "logs", index)
for number in range(count):
    own = record(f"{name}-{number % 40}", attempt=number // 40 + 1, turns=number)
    shared = record(f"shared-{number % 10}", attempt=number + 1, host=name, outcome="failed", reason="infra")
    store.add(own)
    store.add(shared)
    print(number, flush=True)
index.close()
"""
_MANY = 10**6
_FEW = 120


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Indexed]:
    made = Indexed(tmp_path)
    yield made
    made.index.close()


def writer(place: Indexed, name: str, count: int) -> subprocess.Popen[str]:
    root = Path(__file__).parents[3]
    return subprocess.Popen(
        [sys.executable, "-c", _WRITER, str(place.state.parent), name, str(count)],
        stdout=subprocess.PIPE,
        text=True,
        cwd=root,
        env=os.environ | {"PYTHONPATH": str(root)},
    )


def end(process: subprocess.Popen[str]) -> int:
    """Its exit code, once it has said all it says."""
    assert process.stdout is not None
    with process.stdout:
        process.stdout.read()
    return process.wait()


def test_writers_at_once_leave_what_the_files_say(place: Indexed) -> None:
    writers = [writer(place, name, _FEW) for name in ("one", "two", "three")]
    assert [end(process) for process in writers] == [0, 0, 0]
    assert len(place.store.names()) == 3 * 40 + 10
    assert place.rows() == place.said()
    assert look(place.state, place.store, Wanted(reason="infra")).total == 10


def test_a_rebuilding_loses_nothing_that_is_written_meanwhile(place: Indexed) -> None:
    for number in range(500):
        place.unheard.write(record(f"old-{number}"))
    writers = [writer(place, name, _FEW) for name in ("one", "two")]
    for process in writers:
        assert process.stdout is not None
        process.stdout.readline()
    met = []
    # Until both are done, and once more while nobody writes.
    while any(process.poll() is None for process in writers):
        place.index.rebuild(lambda done, of: met.append((done, of)))
    assert [end(process) for process in writers] == [0, 0]
    assert met
    assert place.rows() == place.said()
    assert {row["file"] for row in place.rows()["files"]} == set(place.store.names())


def test_a_reader_finds_every_record_while_others_write(place: Indexed) -> None:
    for number in range(50):
        place.store.write(record(f"old-{number}", flow="old"))
    busy = writer(place, "one", _FEW)
    looks = 0
    while busy.poll() is None:
        found = look(place.state, place.store, Wanted(beginning="old-"))
        assert (found.total, found.note, found.unreadable) == (50, None, ())
        looks += 1
    assert end(busy) == 0
    assert looks > 1


def test_a_writer_that_is_killed_leaves_an_index_that_serves(place: Indexed) -> None:
    for round_ in range(5):
        victim = writer(place, f"round{round_}", _MANY)
        assert victim.stdout is not None
        for _ in range(3 + 4 * round_):
            victim.stdout.readline()
        victim.send_signal(signal.SIGKILL)
        assert end(victim) == -signal.SIGKILL
        found = look(place.state, place.store, Wanted())
        assert (found.note, found.unreadable) == (None, ())
        assert {one.job_id for one in found.records} == {one.job_id for one in place.store.all().records}
    # As the next start of a worker does.
    place.index.clear_up()
    assert place.rows() == place.said()


def test_a_writer_that_finds_the_index_broken_begins_one_for_all(place: Indexed) -> None:
    busy = [writer(place, name, _MANY) for name in ("one", "two")]
    try:
        for process in busy:
            assert process.stdout is not None
            process.stdout.readline()
        before = place.path.stat().st_ino
        # Under their open connections.
        place.path.write_bytes(os.urandom(100_000))
        until(lambda: place.path.stat().st_ino != before, "another index")
        for process in busy:
            assert process.stdout is not None
            said = json.loads(process.stdout.readline())
            until(_more_than(process, said + 45), "more records")
    finally:
        for process in busy:
            process.kill()
            end(process)
    place.index.clear_up()
    assert place.rows() == place.said()


def _more_than(process: "subprocess.Popen[str]", count: int) -> Callable[[], bool]:
    """Whether the next that the process says is more."""

    def looked() -> bool:
        assert process.stdout is not None
        return int(json.loads(process.stdout.readline())) > count

    return looked
