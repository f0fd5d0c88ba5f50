"""What an attempt does where it needs no engine, and where its own reading fails."""

from pathlib import Path

import pytest

from pidispatch.box.abort import Abort
from pidispatch.box.engine import Engine
from pidispatch.config.clock import SystemClock
from pidispatch.config.settings import Settings
from pidispatch.runs import attempt
from pidispatch.runs.attempt import Attempt
from pidispatch.values.errors import InfraError
from pidispatch.values.job import Job
from pidispatch.values.limits import Limits
from pidispatch.values.outcome import InfraFailed, Refused
from pidispatch.values.progress import Progress, Stopping
from pidispatch.values.reason import Reason
from pidispatch.values.record import Result
from tests.support.repository import Repository, make_repository


def no_engine() -> Engine:
    raise InfraError("nobody answers", "container-never-started")


def run(folder: Path, settings: Settings | None = None) -> tuple[Result, list[Progress]]:
    told: list[Progress] = []
    one = Attempt(settings or Settings(), no_engine, Limits(), SystemClock(), {})
    return one(Job(id="local-1", folder=folder, task="x"), told.append, Abort()), told


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return make_repository(tmp_path / "site")


def test_what_needs_no_engine_is_checked_before_one_is_asked_for(tmp_path: Path) -> None:
    result, told = run(tmp_path / "nowhere")

    assert isinstance(result.outcome, Refused)
    assert result.outcome.cause == "folder-missing"
    assert told == []


def test_an_overlay_that_is_not_served_is_refused_before_the_engine_too(repository: Repository, tmp_path: Path) -> None:
    (tmp_path / "overlay" / "skills").mkdir(parents=True)
    settings = Settings.model_validate({"PI_GLOBAL_PI_DIR": str(tmp_path / "overlay")})
    result, _ = run(repository.path, settings)

    assert isinstance(result.outcome, Refused)
    assert result.outcome.cause == "overlay-not-served"


def test_an_engine_that_does_not_answer_spent_nothing(repository: Repository) -> None:
    result, told = run(repository.path)

    assert result.outcome == InfraFailed(reason=Reason.CONTAINER_NEVER_STARTED, detail="nobody answers")
    assert [progress.name for progress in told if hasattr(progress, "name")] == ["folder"]
    assert result.exit_code is None


@pytest.mark.parametrize("fault", [InfraError("too slow", "timeout"), ZeroDivisionError()])
def test_a_change_that_cannot_be_read_is_said_and_fails_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], fault: Exception
) -> None:
    def broken(*_: object) -> object:
        raise fault

    monkeypatch.setattr(attempt, "read_change", broken)
    job = Job(id="local-1", folder=Path("/x"), task="x")
    change, diff, why = attempt._read_change(job, None, None)  # type: ignore[arg-type]

    assert (change, diff) == (None, None)
    assert why
    assert "change_unreadable" in "".join(capsys.readouterr())


@pytest.mark.parametrize("fault", [SystemExit(1), BrokenPipeError(), ValueError()])
def test_a_sink_that_fails_is_not_heard_of_again(fault: BaseException) -> None:
    heard: list[Progress] = []

    def gone(progress: Progress) -> None:
        heard.append(progress)
        raise fault

    step = Stopping(reason="shutdown")
    attempt._never_failing(gone)(step)
    assert heard == [step]
