"""The verb `run` as far as it goes without a server: its arguments, its refusals, and what it says of a job."""

import json
import os
from pathlib import Path

import pytest

from pidispatch.cli.handing_in import missing_worker, submitted_document, warnings
from pidispatch.cli.main import _run
from pidispatch.cli.run import check
from pidispatch.config.settings import Settings
from pidispatch.jobs.rows import Submitted, WorkerSeen
from pidispatch.values import names
from pidispatch.values.errors import ConfigError
from pidispatch.values.job import LocalJob
from pidispatch.values.limits import Limits
from tests.support.repository import Repository, git, make_repository

JOB = LocalJob(id="local-1", folder=Path("/srv/site"), task="x")


@pytest.fixture
def folder(tmp_path: Path) -> Repository:
    """A repository in which nothing stands against a run."""
    return make_repository(tmp_path / "site")


@pytest.fixture(autouse=True)
def _nowhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A server that is not there: what gets as far as to ask for it ends with exit code 1."""
    monkeypatch.setenv("VALKEY_URL", f"unix://{tmp_path}/nothing.sock")


@pytest.mark.parametrize("flow", ["Tidy", "../x", "-x", "x/y", "a" * 65, "tidy\n"])
def test_what_is_no_flow_is_a_usage_error(flow: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert _run(["run", ".", "--task", "x", "--flow", flow]) == 1
    assert "is no flow" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["", "--task", "x"], "FOLDER is empty"),
        ([".", "--task", " \n"], "--task is empty"),
        ([".", "--task", os.fsdecode(b"\xff")], "--task is not valid UTF-8"),
        ([".", "--task", "x", "--provider", " padded "], "--provider"),
        ([".", "--task", "x", "--model", " padded "], "--model"),
        ([".", "--task", "x", "--image", " padded "], "--image"),
        ([".", "--task", "x", "--max-turns", "0"], "--max-turns"),
        ([".", "--trigger", "nightly"], "FOLDER cannot stand beside --trigger"),
        (["", "--trigger", "nightly"], "FOLDER cannot stand beside --trigger"),
        (["--trigger", "nightly", "--task", ""], "--task cannot stand beside --trigger"),
        (["--trigger", "nightly", "--flow", "tidy"], "--flow cannot stand beside --trigger"),
        (["--trigger", "nightly", "--max-turns", "3"], "--max-turns cannot stand beside --trigger"),
    ],
)
def test_a_wrong_call_is_no_refusal(arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    """An unset variable in a script must not mean the current folder."""
    assert _run(["run", *arguments]) == 1
    captured = capsys.readouterr()
    assert said in captured.err
    assert captured.out == ""


@pytest.mark.parametrize("variable", names.UNSERVED_BOUNDS)
def test_a_bound_that_nothing_enforces_is_refused_before_anything_is_tried(
    variable: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(variable, "5")
    assert _run(["run", "/nonexistent", "--task", "x"]) == 2
    assert f"unset {variable}" in capsys.readouterr().err
    monkeypatch.setenv(variable, "")
    assert _run(["run", "/nonexistent", "--task", "x"]) == 2
    assert (f"unset {variable}" in capsys.readouterr().err) is variable.endswith("_FILE")


def test_a_malformed_setting_is_refused_before_anything_is_tried(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PI_MAX_TURNS", "03")
    assert _run(["run", "/nonexistent", "--task", "x"]) == 2
    assert "PI_MAX_TURNS='03' must be a whole number" in capsys.readouterr().err


@pytest.mark.parametrize("form", [[], ["--json"]])
def test_a_folder_that_cannot_work_is_refused_without_a_server(
    tmp_path: Path, form: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert _run(["run", str(tmp_path), "--task", "x", *form]) == 2
    captured = capsys.readouterr()
    assert "is not the root of a git repository" in captured.err
    if form:
        document = json.loads(captured.out)
        assert document.pop("jobId").startswith("local-")
        assert document.pop("why") in captured.err
        assert document == {"status": "refused", "cause": "folder-not-git"}
    else:
        assert captured.out == ""


def _refused(folder: Path, *, force: bool = False) -> str | None:
    job = JOB.model_copy(update={"folder": folder, "allow_dirty": force})
    try:
        check(job, Limits())
    except ConfigError as error:
        return error.cause
    return None


def test_a_folder_must_be_there_be_a_repository_and_have_a_commit(tmp_path: Path) -> None:
    assert _refused(tmp_path / "none") == "folder-missing"
    assert _refused(tmp_path) == "folder-not-git"
    git(tmp_path, "init", "-q")
    assert _refused(tmp_path) == "no-commit"
    (tmp_path / ".git" / "HEAD").unlink()
    assert _refused(tmp_path) == "git-unusable"


@pytest.mark.parametrize(("name", "text"), [("README.md", "changed"), ("new.txt", "new")])
def test_a_dirty_folder_is_refused_unless_forced(folder: Repository, name: str, text: str) -> None:
    assert _refused(folder.path) is None
    folder.write(name, text)
    assert _refused(folder.path) == "dirty-tree"
    assert _refused(folder.path, force=True) is None


def test_a_dirty_folder_is_told_with_its_remedy(folder: Repository, capsys: pytest.CaptureFixture[str]) -> None:
    folder.write("a\u202e.txt", "x")
    assert _run(["run", str(folder.path), "--task", "x"]) == 2
    said = capsys.readouterr().err
    assert "1 uncommitted change(s), which the agent's would mix with: a\\u{202E}.txt." in said
    assert "git stash -u" in said
    assert "--force" in said


def test_a_check_leaves_nothing_behind(folder: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(scratch))
    folder.write("new.txt", "new")
    assert _refused(folder.path) == "dirty-tree"
    assert list(scratch.iterdir()) == []


def _settings(**variables: str) -> Settings:
    return Settings.model_validate(variables)


def test_the_bound_of_a_job_is_told() -> None:
    [said] = warnings(JOB, _settings())
    assert "each attempt, 2 at most, may use up to 30 turns, unless its worker's settings differ" in said
    assert "counts in the windows of runs (pi-dispatch limits)" in said
    bounded = JOB.model_copy(update={"max_turns": 7})
    [said] = warnings(bounded, _settings(PI_MAX_TOKENS="200000"))
    assert "up to 7 turns or 200,000 tokens," in said


def test_an_open_network_is_told() -> None:
    assert "the agent can reach the internet" in warnings(JOB, _settings(PI_EGRESS="0"))[1]


def _seen(name: str, age_s: float = 0.0) -> WorkerSeen:
    return WorkerSeen(name=name, fields={}, age_ms=round(age_s * 1000))


@pytest.mark.parametrize(
    ("workers", "queue", "said"),
    [
        ([], "pi-jobs", "no worker is running: start one with: pi-dispatch worker"),
        ([_seen("a", 91)], "pi-jobs", "no worker is running: start one with: pi-dispatch worker"),
        ([_seen("a", 91), _seen("b", 90)], "pi-jobs", None),
        ([_seen("a")], "pi-jobs@a", None),
        (
            [_seen("a")],
            "pi-jobs@b",
            "no worker named b is running: start one with: PI_WORKER_NAME=b pi-dispatch worker",
        ),
    ],
)
def test_a_missing_worker_is_told(workers: list[WorkerSeen], queue: str, said: str | None) -> None:
    assert missing_worker(workers, queue, Limits()) == said


@pytest.mark.parametrize(
    ("status", "job_id", "survivor"),
    [("submitted", "local-1", None), ("duplicate", "local-1", "local-1"), ("coalesced", "local-0", "local-0")],
)
def test_json_says_which_job_stands_for_the_wish(status: str, job_id: str, survivor: str | None) -> None:
    submitted = Submitted.model_validate({"status": status, "jobId": job_id})
    assert submitted_document(submitted, "local-1", "pi-jobs", "here") == {
        "jobId": "local-1",
        "status": status,
        "deduplicated": status == "coalesced",
        "survivingJobId": survivor,
        "queue": "pi-jobs",
        "server": "here",
    }
