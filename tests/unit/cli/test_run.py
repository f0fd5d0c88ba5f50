"""The verb `run`: what it makes of its arguments, what it prints where, and what a signal does."""

import contextlib
import json
import os
import signal
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest
from rich.console import Console

from pidispatch.box.abort import Abort
from pidispatch.cli import run as run_module
from pidispatch.cli.main import _run
from pidispatch.cli.run import Kept, _signals, as_document
from pidispatch.config.host import host_name
from pidispatch.config.settings import Settings
from pidispatch.values import names
from pidispatch.values.change import Change
from pidispatch.values.errors import InfraError
from pidispatch.values.job import Job
from pidispatch.values.outcome import Aborted, Completed, InfraFailed, Outcome, Refused
from pidispatch.values.reason import AbortReason, Reason
from pidispatch.values.record import Result, RunRecord
from pidispatch.values.usage import Telemetry

NOW = datetime(2026, 1, 1, tzinfo=UTC)


class Attempts:
    """Stands where an attempt is made; notes the jobs and ends each as it is told."""

    def __init__(self) -> None:
        self.outcome: Outcome = Completed()
        self.jobs: list[Job] = []

    def __call__(self, job: Job, settings: Settings, notes: Console, kept: Kept) -> Result:
        self.jobs.append(job)
        result = Result.begin(NOW, job.provider or settings.provider, job.model or settings.model).ending(self.outcome)
        # Told by `kept` itself, as everyone who finishes an attempt does.
        with contextlib.suppress(InfraError):
            kept(job, result)
        return result


@pytest.fixture
def attempts(monkeypatch: pytest.MonkeyPatch) -> Attempts:
    attempts = Attempts()
    monkeypatch.setattr(run_module, "_attempt", attempts)
    return attempts


@pytest.mark.parametrize(
    ("outcome", "code"),
    [
        (Completed(), 0),
        (Completed(truncated=True), 0),
        (Refused(reason=Reason.CONFIG_REFUSED), 2),
        (Aborted(reason=Reason.OPERATOR_CANCEL, cause=AbortReason.OPERATOR_CANCEL), 2),
        (InfraFailed(reason=Reason.INFRA), 1),
    ],
)
@pytest.mark.parametrize("form", [[], ["--json"]])
def test_the_exit_code_is_the_outcomes(
    attempts: Attempts, outcome: Outcome, code: int, form: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    attempts.outcome = outcome
    assert _run(["run", ".", "--task", "x", *form]) == code
    assert capsys.readouterr().out


def test_what_is_left_out_is_left_open(attempts: Attempts, tmp_path: Path) -> None:
    _run(["run", str(tmp_path), "--task", " the task\n"])
    job = attempts.jobs[0]
    assert job.id.startswith("local-")
    assert len(bytes.fromhex(job.id.removeprefix("local-"))) == 8
    assert job == Job(id=job.id, folder=tmp_path, task=" the task\n")


def test_what_is_given_is_handed_on(attempts: Attempts, tmp_path: Path) -> None:
    arguments = ["--provider", "openai", "--model", "gpt-5", "--max-turns", "7", "--image", "other:1"]
    _run(["run", str(tmp_path), "--task", "x", "--flow", "tidy-up", "--force", *arguments])
    job = attempts.jobs[0]
    assert (job.provider, job.model, job.max_turns, job.image) == ("openai", "gpt-5", 7, "other:1")
    assert (job.flow, job.allow_dirty) == ("tidy-up", True)


@pytest.mark.parametrize("flow", ["Tidy", "../x", "-x", "x/y", "a" * 65, "tidy\n"])
def test_what_is_no_flow_is_a_usage_error(attempts: Attempts, flow: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert _run(["run", ".", "--task", "x", "--flow", flow]) == 1
    assert attempts.jobs == []
    assert "is no flow" in capsys.readouterr().err


def test_a_run_is_recorded(
    attempts: Attempts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    # An attempt makes the folder before anything else.
    (tmp_path / "logs").mkdir()
    monkeypatch.setenv("PI_LOGS_DIR", str(tmp_path / "logs"))
    attempts.outcome = Refused(reason=Reason.JOB_IMAGE_MISSING)
    assert _run(["run", str(tmp_path), "--task", "x", "--json"]) == 2
    document = json.loads(capsys.readouterr().out)
    record = json.loads(Path(document["record"]).read_text())
    assert (record["jobId"], record["reason"]) == (document["jobId"], "job-image-missing")
    assert record["host"]


def test_a_record_that_cannot_be_written_changes_no_outcome(
    attempts: Attempts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "logs").touch()
    monkeypatch.setenv("PI_LOGS_DIR", str(tmp_path / "logs"))
    assert _run(["run", str(tmp_path), "--task", "x", "--json"]) == 0
    captured = capsys.readouterr()
    assert json.loads(captured.out)["record"] is None
    assert "the record of this run could not be written" in captured.err
    assert "run_record_failed" in captured.err


@pytest.mark.parametrize("variable", names.UNSERVED_BOUNDS)
def test_a_bound_that_nothing_enforces_is_refused_before_anything_is_tried(
    attempts: Attempts, variable: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(variable, "5")
    assert _run(["run", ".", "--task", "x"]) == 2
    assert attempts.jobs == []
    assert f"unset {variable}" in capsys.readouterr().err
    monkeypatch.setenv(variable, "")
    assert _run(["run", ".", "--task", "x"]) == (2 if variable.endswith("_FILE") else 0)


def test_an_empty_option_is_left_open(attempts: Attempts) -> None:
    _run(["run", ".", "--task", "x", "--provider", "", "--model", "", "--image", ""])
    job = attempts.jobs[0]
    assert (job.provider, job.model, job.image) == (None, None, None)


@pytest.mark.parametrize("written", [".", "sub/..", "../here", "sub/../"])
def test_the_folder_is_named_by_its_real_name(
    attempts: Attempts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, written: str
) -> None:
    (tmp_path / "here" / "sub").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "here")
    _run(["run", written, "--task", "x"])
    assert attempts.jobs[0].target == "local:here"


def test_an_empty_folder_is_a_usage_error(attempts: Attempts, capsys: pytest.CaptureFixture[str]) -> None:
    """An unset variable in a script must not mean the current folder."""
    assert _run(["run", "", "--task", "x"]) == 1
    assert attempts.jobs == []
    assert "FOLDER is empty" in capsys.readouterr().err


@pytest.mark.parametrize("option", ["--provider", "--model", "--image"])
def test_an_option_is_held_to_what_a_setting_is(
    attempts: Attempts, capsys: pytest.CaptureFixture[str], option: str
) -> None:
    assert _run(["run", ".", "--task", "x", option, " padded "]) == 1
    assert attempts.jobs == []
    assert option in capsys.readouterr().err


def test_a_malformed_setting_is_refused_before_anything_is_tried(
    attempts: Attempts, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PI_MAX_TURNS", "03")
    assert _run(["run", ".", "--task", "x"]) == 2
    assert attempts.jobs == []
    assert "PI_MAX_TURNS='03' must be a whole number" in capsys.readouterr().err


def test_the_bound_of_a_run_is_told_on_standard_error(
    attempts: Attempts, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _run(["run", ".", "--task", "x"])
    assert "up to 30 turns;" in capsys.readouterr().err
    monkeypatch.setenv("PI_MAX_TOKENS", "200000")
    monkeypatch.setenv("PI_EGRESS", "0")
    _run(["run", ".", "--task", "x", "--max-turns", "7", "--json"])
    captured = capsys.readouterr()
    assert "up to 7 turns or 200,000 tokens;" in captured.err
    assert "PI_EGRESS=0: the agent can reach the internet" in captured.err
    assert json.loads(captured.out)["outcome"] == "completed"


def test_json_holds_the_records_keys_as_they_are() -> None:
    job = Job(id="local-1", folder=Path("/srv/folder"), task="x")
    change = Change(changed=True, commits=0, head=None, files=(), dirty_before=False)
    result = Result.begin(NOW, "p", "m").model_copy(
        update={"outcome": Completed(), "change": change, "diff": "+x", "outbox_files": 2}
    )
    record = RunRecord.of(job, result, host_name())
    document = as_document(job, result, Path("/logs/local-1.json"))
    keys = record.model_dump(mode="json")
    assert {key: document[key] for key in keys} == keys
    assert set(document) - set(keys) == {
        "change", "changeError", "diff", "outboxFiles", "restored", "kept", "guardError", "record"
    }  # fmt: skip
    assert document["record"] == "/logs/local-1.json"
    assert document["change"] == {
        "changed": True, "commits": 0, "head": None, "files": [], "dirtyBefore": False, "truncated": False
    }  # fmt: skip
    assert json.loads(json.dumps(document)) == document


@pytest.mark.parametrize(
    ("outcome", "why", "remedy"),
    [
        (Refused(reason=Reason.INFRA, detail="d", remedy="r"), "d", "r"),
        (Refused(reason=Reason.INFRA), Reason.INFRA.meaning, Reason.INFRA.remedy),
        (InfraFailed(reason=Reason.INFRA, detail="d"), "d", Reason.INFRA.remedy),
        (
            Aborted(reason=Reason.WORKER_ABORT, cause=AbortReason.SHUTDOWN),
            Reason.WORKER_ABORT.meaning,
            Reason.WORKER_ABORT.remedy,
        ),
    ],
)
def test_json_says_why_and_what_to_do(outcome: Outcome, why: str, remedy: str) -> None:
    job = Job(id="local-1", folder=Path("/srv/folder"), task="x")
    result = Result.begin(NOW, "p", "m").ending(outcome)
    result = result.model_copy(update={"telemetry": Telemetry(message="said")})
    document = as_document(job, result, None)
    assert (document["why"], document["remedy"], document["message"]) == (why, remedy, "said")


@pytest.mark.parametrize(
    ("number", "reason"),
    [
        (signal.SIGINT, AbortReason.OPERATOR_CANCEL),
        (signal.SIGTERM, AbortReason.SHUTDOWN),
        (signal.SIGHUP, AbortReason.SHUTDOWN),
    ],
)
def test_a_signal_ends_the_job_and_not_the_program(number: signal.Signals, reason: AbortReason) -> None:
    abort, ended = Abort(), threading.Event()
    abort.listen(ended.set)
    before = {each: signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    with _signals(abort):
        os.kill(os.getpid(), number)
        assert ended.wait(10)
        assert abort.reason is reason
        os.kill(os.getpid(), signal.SIGTERM)
    assert abort.reason is reason
    assert {each: signal.getsignal(each) for each in before} == before


def test_the_handlers_are_put_back_after_an_error() -> None:
    before = signal.getsignal(signal.SIGTERM)

    def fail() -> None:
        with _signals(Abort()):
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert signal.getsignal(signal.SIGTERM) is before


def test_a_signal_that_is_ignored_stays_ignored() -> None:
    abort = Abort()
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with _signals(abort):
            os.kill(os.getpid(), signal.SIGHUP)
        assert abort.reason is None
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


class Connections:
    """Stands for the engine; notes what was done with it."""

    def __init__(self) -> None:
        self.steps: list[str] = []

    def connect(self) -> "Connections":
        self.steps.append("connect")
        return self

    def close(self) -> None:
        self.steps.append("close")


@pytest.mark.parametrize(
    ("end", "steps"),
    [
        ("completes", ["connect", "attempt", "close"]),
        ("fails", ["connect", "attempt", "close"]),
        ("needs no engine", ["attempt"]),
    ],
)
def test_an_engine_that_was_asked_for_is_closed(monkeypatch: pytest.MonkeyPatch, end: str, steps: list[str]) -> None:
    connections = Connections()

    def attempt(
        _settings: object, connect: Callable[[], object], *_rest: object, **_named: object
    ) -> Callable[..., Result]:
        def make(job: Job, _progress: object, _abort: Abort) -> Result:
            if end != "needs no engine":
                connect()
            connections.steps.append("attempt")
            if end == "fails":
                raise ZeroDivisionError
            return Result.begin(NOW, "p", "m").ending(Completed())

        return make

    monkeypatch.setattr(run_module, "Engine", connections)
    monkeypatch.setattr(run_module, "Attempt", attempt)
    if end == "fails":
        with pytest.raises(ZeroDivisionError):
            _run(["run", ".", "--task", "x"])
    else:
        assert _run(["run", ".", "--task", "x"]) == 0
    assert connections.steps == steps
