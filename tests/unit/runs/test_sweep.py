"""What a start makes of broken-off attempts where it needs no engine, or gets none."""

import os
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest

from pidispatch.box.engine import Engine, EngineFacts
from pidispatch.box.run import ContainerEnd
from pidispatch.config.settings import Settings
from pidispatch.runs.note import EndNote, mark_making, read_end, read_note, reserve_end, write_end, write_note
from pidispatch.runs.records import RecordStore
from pidispatch.runs.sweep import Found, Keep, RecordKeeper, Swept, _result, remove_old, sweep
from pidispatch.values.errors import InfraError
from pidispatch.values.limits import Limits
from pidispatch.values.outcome import Aborted, Completed, InfraFailed, Outcome, Refused
from pidispatch.values.reason import AbortReason, Reason, RunnerReason
from pidispatch.workspace.folder import Folder
from pidispatch.workspace.guard import take_notes
from pidispatch.workspace.jobdir import JobDir, make_job_dir, release_job_dir
from pidispatch.workspace.locks import hold_folder
from tests.support.clock import FakeClock
from tests.support.oneshots import fired_by, rule
from tests.support.repository import make_repository
from tests.unit.runs.history import record
from tests.unit.runs.indexed import Indexed
from tests.unit.runs.place import note_of

NOW = datetime(2026, 1, 31, tzinfo=UTC)
EXIT = '{"event":"exit","jobId":"x","code":%d,"reason":"stop","turns":3}\n'


class Host:
    """Folders of a deployment, and how often its engine was asked for."""

    def __init__(self, tmp_path: Path) -> None:
        self.path = tmp_path
        paths = {"PI_JOBS_DIR": "jobs", "PI_STATE_DIR": "state", "PI_LOGS_DIR": "logs"}
        self.settings = Settings.model_validate({name: str(tmp_path / path) for name, path in paths.items()})
        self.asked = 0

    def connect(self) -> Engine:
        self.asked += 1
        raise InfraError("nobody answers", "container-never-started")

    def left(self, *, noted: bool) -> JobDir:
        """The directory of a program that is gone."""
        job_dir = make_job_dir(self.settings.jobs_dir, (os.getuid(), os.getgid()))
        if noted:
            write_note(job_dir.note, note_of(self.path))
        release_job_dir(job_dir)
        return job_dir

    def sweep(self, keep: Keep | None = None) -> Swept:
        return sweep(self.settings, self.connect, Limits(), FakeClock(NOW), keep)


@pytest.fixture
def host(tmp_path: Path) -> Host:
    return Host(tmp_path)


def test_nothing_left_asks_for_no_engine(host: Host) -> None:
    assert host.sweep() == Swept()
    assert host.asked == 0
    assert os.listdir(host.path) == []


def test_an_attempt_that_never_came_to_its_container_is_only_removed(host: Host) -> None:
    job_dir = host.left(noted=False)
    assert host.sweep() == Swept()
    assert host.asked == 0
    assert not job_dir.path.exists()


def test_one_that_is_under_way_is_left_alone(host: Host) -> None:
    job_dir = make_job_dir(host.settings.jobs_dir, (os.getuid(), os.getgid()))
    write_note(job_dir.note, note_of(host.path))
    assert host.sweep() == Swept()
    assert job_dir.note.exists()


def test_without_its_engine_everything_stays_for_the_next_start(host: Host) -> None:
    job_dir = host.left(noted=True)
    assert host.sweep().unsettled == {"local-9": "nobody answers"}
    assert job_dir.note.exists()
    assert host.sweep().unsettled == {"local-9": "nobody answers"}
    assert host.asked == 2


def test_a_folder_that_somebody_works_in_is_settled_by_a_later_start(host: Host) -> None:
    job_dir = host.left(noted=True)
    with hold_folder(host.settings.state_dir, host.path):
        assert "another run works in" in host.sweep().unsettled["local-9"]
    assert host.asked == 0
    assert job_dir.note.exists()


def test_a_note_that_cannot_be_read_is_told_and_stays(host: Host) -> None:
    job_dir = host.left(noted=True)
    job_dir.note.write_text("{")
    [(name, why)] = host.sweep().unsettled.items()
    assert name == job_dir.path.name
    assert "cannot be read" in why
    assert job_dir.path.exists()


def test_a_start_removes_records_and_kept_versions_that_are_old(host: Host) -> None:
    old, new = NOW.timestamp() - 31 * 86400, NOW.timestamp() - 29 * 86400
    names = ["logs/a.json", "logs/a.log", f"jobs/kept-local-{'0' * 16}/config"]
    for name in names:
        path = host.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
        for aged in (path, path.parent):
            os.utime(aged, (new, new))
    remove_old(host.settings, FakeClock(NOW))
    assert all((host.path / name).exists() for name in names)
    for name in names:
        for aged in (host.path / name, (host.path / name).parent):
            os.utime(aged, (old, old))
    remove_old(host.settings, FakeClock(NOW))
    assert not any((host.path / name).exists() for name in names)


def test_what_is_old_leaves_the_index_and_what_it_missed_comes_in(host: Host) -> None:
    place = Indexed(host.path)
    settings = host.settings.model_copy(update={"state_dir": place.state, "logs_dir": place.store.folder})
    with closing(place.index):
        for job in ("a", "b"):
            place.store.write(record(job))
        place.unheard.write(record("c"))
        for job, days in (("a", 31), ("b", 29), ("c", 29)):
            when = NOW.timestamp() - days * 86400
            os.utime(place.store.record_path(job), (when, when))

        remove_old(settings, FakeClock(NOW), place.index)

        assert [row["file"] for row in place.rows()["files"]] == ["b.json", "c.json"]
        assert place.rows() == place.said()


def ended(code: int, tail: str = "", *, cut_off: bool = False, aborted: AbortReason | None = None) -> EndNote:
    return EndNote(end=ContainerEnd(code=code, tail=tail, aborted=aborted), cut_off=cut_off)


LOST = InfraFailed(reason=Reason.WORKER_LOST)
NEVER = InfraFailed(reason=Reason.CONTAINER_NEVER_STARTED)
STOPPED = Aborted(reason=Reason.WORKER_ABORT, cause=AbortReason.SHUTDOWN)


@pytest.mark.parametrize(
    ("end", "outcome"),
    [
        (ended(0, EXIT % 0), Completed()),
        (ended(2, EXIT % 2), Refused(reason=Reason.RUNNER_POLICY, cause="stop", detail=RunnerReason.STOP.meaning)),
        (ended(137, EXIT % 1, aborted=AbortReason.SHUTDOWN), STOPPED),
        (ended(137, aborted=AbortReason.SHUTDOWN), STOPPED),
        (ended(0), LOST),
        (ended(0, EXIT % 0, cut_off=True), LOST),
        (ended(137, EXIT % 1, aborted=AbortReason.LEASE_LOST), LOST),
    ],
)
def test_a_kept_end_is_the_true_one(end: EndNote, outcome: Outcome, tmp_path: Path) -> None:
    result = _result(note_of(tmp_path), end, end.started)
    assert result.outcome == outcome
    assert result.spent is True
    assert result.telemetry.turns == (3 if end.end.tail else None)
    assert result.exit_code == end.end.code


@pytest.mark.parametrize(
    ("started", "outcome", "spent"), [(False, NEVER, False), (True, LOST, True), (None, LOST, True)]
)
def test_without_an_end_what_may_have_run_counts_as_spent(
    started: bool | None, outcome: Outcome, spent: bool, tmp_path: Path
) -> None:
    result = _result(note_of(tmp_path), None, started)
    assert (result.outcome, result.spent) == (outcome, spent)


class Gone(Engine):
    """An engine that has nothing left of the attempt."""

    def __init__(self) -> None:
        """Nothing is asked of a client."""

    def facts(self) -> EngineFacts:
        return EngineFacts(
            id="e", here=True, readable=True, desktop=False, security_options=(), socket_uid=None, socket_gid=None
        )

    def is_gone(self, name: str, deployment: str) -> bool:
        return (name, deployment) == ("pi-job-local-9", "0" * 16)


class GoneHost(Host):
    """A host whose engine answers, and keeps nothing."""

    def connect(self) -> Engine:
        self.asked += 1
        return Gone()


@pytest.mark.parametrize(
    ("end", "marks", "making", "started", "outcome"),
    [
        (None, False, False, None, LOST),
        (None, True, True, None, LOST),
        # No container was about to be made, so none ran.
        (None, True, False, False, NEVER),
        (ended(0, EXIT % 0), True, True, True, Completed()),
    ],
)
def test_what_is_known_is_handed_over_before_the_directory_goes(
    tmp_path: Path, end: EndNote | None, marks: bool, making: bool, started: bool | None, outcome: Outcome
) -> None:
    host, handed = GoneHost(tmp_path), list[Found]()
    job_dir = make_job_dir(host.settings.jobs_dir, (os.getuid(), os.getgid()))
    folder = make_repository(tmp_path / "site").path
    note = note_of(folder).model_copy(update={"attempt": 2, "marks": marks})
    take_notes(Folder(folder, os.getuid(), os.getgid()), job_dir.guard)
    write_note(job_dir.note, note)
    if making:
        mark_making(job_dir.making)
    if end is not None:
        reserve_end(job_dir.end)
        write_end(job_dir.end, end)
    release_job_dir(job_dir)

    def refuse(_: Found) -> None:
        assert job_dir.note.exists()
        raise InfraError("no answer", "store-unreachable")

    assert host.sweep(refuse).unsettled == {"local-9": "no answer"}
    assert job_dir.note.exists()
    assert [settled.job_id for settled in host.sweep(handed.append).settled] == ["local-9"]
    assert not job_dir.path.exists()
    [found] = handed
    assert (found.note, found.started, found.result.outcome) == (note, started, outcome)
    record = found.record("host-1")
    assert (record.job_id, record.attempt, record.host) == ("local-9", 2, "host-1")
    assert record.budget_reserved is (started is not False)


def test_a_job_in_a_clone_is_settled_without_its_folder_and_nothing_is_put_back(tmp_path: Path) -> None:
    host, handed = GoneHost(tmp_path), list[Found]()
    job_dir = make_job_dir(host.settings.jobs_dir, (os.getuid(), os.getgid()), outbox=False)
    workspace = make_repository(job_dir.workspace).path
    job = fired_by(rule(), instructions="private", skills_dir="/srv/skills")
    note = note_of(workspace).model_copy(update={"job": job.bare(), "marks": True})
    write_note(job_dir.note, note)
    mark_making(job_dir.making)
    assert "private" not in job_dir.note.read_text()
    assert read_note(job_dir.note) == note
    release_job_dir(job_dir)
    # Whoever holds what the note calls its folder is no reason to wait: nobody works there.
    lock = hold_folder(host.settings.state_dir, workspace)
    try:
        [settled] = host.sweep(handed.append).settled
    finally:
        lock.release()
    assert (settled.job_id, settled.target, settled.restored, settled.replaced) == ("gh-1", "acme/web#40", (), False)
    assert not job_dir.path.exists()
    [found] = handed
    assert found.record("host-1").target == "acme/web#40"


def test_the_plain_keeper_keeps_the_better_record(host: Host) -> None:
    keep, records = RecordKeeper(host.settings), RecordStore(host.settings.logs_dir)
    note = note_of(host.path)
    keep(Found(note, _result(note, None, None), None))
    lost = records.find("local-9")
    assert lost is not None
    assert (lost.reason, lost.turns) == ("worker-lost", None)
    keep(Found(note, _result(note, ended(0, EXIT % 0), True), True))
    completed = records.find("local-9")
    assert completed == lost.model_copy(update={"turns": 3, "exit_code": 0})


def test_a_note_of_an_earlier_version_is_of_the_first_attempt(tmp_path: Path) -> None:
    text = note_of(tmp_path).model_dump_json(exclude={"attempt"})
    (tmp_path / "attempt.json").write_text(text)
    note = read_note(tmp_path / "attempt.json")
    assert note is not None
    assert note.attempt == 1


def test_an_end_finds_its_room_and_is_read_back_whole(tmp_path: Path) -> None:
    path, end = tmp_path / "end.json", ended(2, "\x00\u202e" * 4096)
    reserve_end(path)
    assert read_end(path) is None
    room = path.stat().st_blocks
    write_end(path, end)
    assert read_end(path) == end
    assert room * 512 >= 100 * 1024


def test_an_end_that_cannot_be_kept_is_told_and_ends_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_end(tmp_path / "nowhere" / "end.json", ended(0))
    assert "end_unkept" in "".join(capsys.readouterr())
    assert read_end(tmp_path / "nowhere" / "end.json") is None
