"""What an attempt does where it needs no engine, and where its own reading fails."""

from datetime import datetime
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from pidispatch.box.abort import Abort
from pidispatch.box.engine import Engine
from pidispatch.config.clock import SystemClock
from pidispatch.config.settings import Settings
from pidispatch.runs import attempt
from pidispatch.runs.attempt import Attempt
from pidispatch.runs.classify import aborted
from pidispatch.runs.seams import LeaseLost
from pidispatch.runs.site import Site
from pidispatch.values.errors import InfraError
from pidispatch.values.job import Job, LocalJob
from pidispatch.values.limits import Limits
from pidispatch.values.outcome import Aborted, Completed, InfraFailed, Outcome, Refused
from pidispatch.values.progress import CheckPassed, Progress, Stopping
from pidispatch.values.reason import AbortReason, Reason
from pidispatch.values.record import Result
from pidispatch.values.verdict import Defer, Why
from pidispatch.workspace.folder import Folder
from pidispatch.workspace.jobdir import make_job_dir
from tests.support.repository import Repository, make_repository
from tests.unit.runs.place import Place


def no_engine() -> Engine:
    raise InfraError("nobody answers", "container-never-started")


def run(folder: Path, settings: Settings | None = None) -> tuple[Result, list[Progress]]:
    told: list[Progress] = []
    one = Attempt(settings or Settings(), no_engine, lambda *_: None, Limits(), SystemClock(), {})
    result = one(LocalJob(id="local-1", folder=folder, task="x"), told.append, Abort())
    assert isinstance(result, Result)
    return result, told


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return make_repository(tmp_path / "site")


def test_what_needs_no_engine_is_checked_before_one_is_asked_for(tmp_path: Path) -> None:
    result, told = run(tmp_path / "nowhere")

    assert isinstance(result.outcome, Refused)
    assert result.outcome.cause == "folder-missing"
    assert told == [CheckPassed(name="records")]


def test_an_overlay_that_is_not_served_is_refused_before_the_engine_too(repository: Repository, tmp_path: Path) -> None:
    (tmp_path / "overlay" / "skills").mkdir(parents=True)
    settings = Settings.model_validate({"PI_GLOBAL_PI_DIR": str(tmp_path / "overlay")})
    result, _ = run(repository.path, settings)

    assert isinstance(result.outcome, Refused)
    assert result.outcome.cause == "overlay-not-served"


def test_an_engine_that_does_not_answer_spent_nothing(repository: Repository) -> None:
    result, told = run(repository.path)

    assert result.outcome == InfraFailed(reason=Reason.CONTAINER_NEVER_STARTED, detail="nobody answers", remedy=None)
    assert [progress.name for progress in told if hasattr(progress, "name")] == ["records", "folder"]
    assert result.exit_code is None


@pytest.mark.parametrize("fault", [InfraError("too slow", "timeout"), ZeroDivisionError("private")])
@pytest.mark.parametrize(
    ("name", "call", "event"),
    [("read_change", "_read_change", "change_unreadable"), ("put_back", "_put_back", "git_guard_failed")],
)
def test_what_fails_after_the_run_is_said_and_fails_nothing(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    fault: Exception,
    name: str,
    call: str,
    event: str,
) -> None:
    def broken(*_: object) -> object:
        raise fault

    monkeypatch.setattr(attempt, name, broken)
    site = Place(tmp_path).site
    site.git, site.before, site.folder = None, None, Folder(tmp_path, 1, 1)  # type: ignore[assignment]
    site.job_dir = make_job_dir(tmp_path / "jobs", (1, 1))
    *found, why = getattr(attempt, call)(site)

    assert not any(found)
    assert why
    said = "".join(capsys.readouterr())
    assert event in said
    assert "private" not in why + said
    # Traps that could not be taken away are for the next start.
    assert site.settled is (name == "read_change")


def test_our_own_mistake_costs_no_record(
    repository: Repository, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(site: Site, _: object) -> Result:
        site.spent = True
        raise ZeroDivisionError("private")

    monkeypatch.setattr(attempt, "_attempted", broken)
    result, _ = run(repository.path)

    assert isinstance(result.outcome, InfraFailed)
    assert result.outcome.cause == "internal-error"
    assert result.spent is None
    said = "".join(capsys.readouterr())
    assert "attempt_broke" in said
    assert "private" not in said


@pytest.mark.parametrize("fault", [SystemExit(1), BrokenPipeError(), ValueError()])
def test_a_sink_that_fails_is_not_heard_of_again(fault: BaseException) -> None:
    heard: list[Progress] = []

    def gone(progress: Progress) -> None:
        heard.append(progress)
        raise fault

    step = Stopping(reason="shutdown")
    attempt._never_failing(gone)(step)
    assert heard == [step]


def test_the_result_is_kept_before_anything_is_cleaned_up(
    repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str] = []

    def ended(site: Site) -> Result:
        site.cleanup.callback(lambda: seen.append("cleaned up"))
        return Result.begin(SystemClock().now(), "p", "m").ending(Completed())

    monkeypatch.setattr(attempt, "_ended", ended)
    one = Attempt(Settings(), no_engine, lambda *_: seen.append("kept"), Limits(), SystemClock(), {})
    one(LocalJob(id="local-1", folder=repository.path, task="x"), lambda _: None, Abort())
    assert seen == ["kept", "cleaned up"]


@pytest.mark.parametrize(("spent", "settled"), [(True, False), (False, True)])
def test_what_cannot_be_kept_leaves_everything_for_the_next_start(
    repository: Repository, monkeypatch: pytest.MonkeyPatch, spent: bool, settled: bool
) -> None:
    sites: list[Site] = []

    def ended(site: Site) -> Result:
        site.spent = spent
        sites.append(site)
        return Result.begin(SystemClock().now(), "p", "m").ending(Completed())

    def full(*_: object) -> None:
        raise InfraError("no space", "record-unwritable")

    monkeypatch.setattr(attempt, "_ended", ended)
    one = Attempt(Settings(), no_engine, full, Limits(), SystemClock(), {})
    result = one(LocalJob(id="local-1", folder=repository.path, task="x"), lambda _: None, Abort())
    assert isinstance(result, Result)
    assert isinstance(result.outcome, Completed)
    assert sites[0].settled is settled


@pytest.mark.parametrize(
    ("outcome", "noticed"),
    [(Aborted(reason=Reason.WORKER_ABORT, cause=AbortReason.LEASE_LOST), False), (Completed(), True)],
)
def test_nothing_is_kept_or_told_of_a_job_that_is_another_ones(
    repository: Repository, monkeypatch: pytest.MonkeyPatch, outcome: Outcome, noticed: bool
) -> None:
    cleaned: list[int] = []

    def ended(site: Site) -> Result:
        site.cleanup.callback(lambda: cleaned.append(site.number))
        if noticed:
            # It ended by itself, in the moment in which the lease was lost.
            site.abort.set(AbortReason.LEASE_LOST)
        return Result.begin(SystemClock().now(), "p", "m").ending(outcome)

    def finish(*_: object) -> None:
        raise AssertionError("a loser writes nothing")

    monkeypatch.setattr(attempt, "_ended", ended)
    one = Attempt(Settings(), no_engine, finish, Limits(), SystemClock(), {})
    with capture_logs() as events:
        result = one(LocalJob(id="local-1", folder=repository.path, task="x"), lambda _: None, Abort(), 2)
    assert isinstance(result, Result)
    assert result.outcome == outcome
    assert [event["event"] for event in events] == ["attempt_lease_lost"]
    assert cleaned == [2]


def test_a_job_that_a_stopping_worker_has_not_paid_for_comes_again(repository: Repository) -> None:
    spent: list[Job] = []
    finished: list[Result] = []
    abort = Abort()
    abort.set(AbortReason.SHUTDOWN)

    def spend(job: Job, _: datetime) -> tuple[dict[str, int], None]:
        spent.append(job)
        return {}, None

    one = Attempt(
        Settings(), no_engine, lambda _, kept: finished.append(kept), Limits(), SystemClock(), {}, spend=spend
    )
    result = one(LocalJob(id="local-1", folder=repository.path, task="x"), lambda _: None, abort)
    assert result == Defer(why=Why.STOPPED, delay_ms=0)
    assert (spent, finished) == ([], [])


@pytest.mark.parametrize("reason", sorted({*AbortReason} - {AbortReason.SHUTDOWN}))
def test_a_job_that_is_ended_before_its_first_check_spends_nothing(repository: Repository, reason: AbortReason) -> None:
    spent: list[Job] = []
    finished: list[Result] = []
    abort = Abort()
    abort.set(reason)

    def spend(job: Job, _: datetime) -> tuple[dict[str, int], None]:
        spent.append(job)
        return {}, None

    one = Attempt(
        Settings(), no_engine, lambda _, kept: finished.append(kept), Limits(), SystemClock(), {}, spend=spend
    )
    result = one(LocalJob(id="local-1", folder=repository.path, task="x"), lambda _: None, abort)
    assert isinstance(result, Result)
    assert result.outcome == aborted(reason)
    assert result.spent is False
    assert spent == []
    assert len(finished) == (0 if reason is AbortReason.LEASE_LOST else 1)


def test_a_lease_that_is_lost_wins_over_whatever_else_ended_it(
    repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    def attempted(site: Site, _: object) -> Result:
        site.abort.set(AbortReason.SHUTDOWN)
        raise LeaseLost

    monkeypatch.setattr(attempt, "_attempted", attempted)
    result, _ = run(repository.path)
    assert result.outcome == Aborted(reason=Reason.WORKER_ABORT, cause=AbortReason.LEASE_LOST)


def test_a_fault_of_the_clean_up_changes_no_result(
    repository: Repository, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def ended(site: Site) -> Result:
        site.cleanup.callback(lambda: 1 // 0)
        return Result.begin(SystemClock().now(), "p", "m").ending(Completed())

    monkeypatch.setattr(attempt, "_ended", ended)
    result, _ = run(repository.path)
    assert isinstance(result.outcome, Completed)
    assert "clean_up_failed" in "".join(capsys.readouterr())
