"""The directory of an attempt: private, its owner's, and gone afterwards; and the deployment's id."""

import os
import re
import shutil
import stat
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pidispatch.config.private import private_folder
from pidispatch.values.errors import ConfigError, InfraError
from pidispatch.workspace import jobdir
from pidispatch.workspace.jobdir import (
    JobDir,
    abandoned_job_dirs,
    count_outbox,
    deployment_id,
    make_job_dir,
    release_job_dir,
    remove_job_dir,
    remove_old_kept,
    sanitise,
)

ME = (os.getuid(), os.getgid())


def mode(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


@pytest.fixture
def jobs(tmp_path: Path) -> Path:
    return tmp_path / "parent" / "jobs"


def test_makes_private_folders_whatever_the_mask(jobs: Path) -> None:
    before = os.umask(0)
    try:
        job_dir = make_job_dir(jobs, ME)
    finally:
        os.umask(before)
    assert [mode(path) for path in (jobs.parent, jobs, job_dir.path, job_dir.inputs, job_dir.outbox)] == [0o700] * 5
    assert job_dir.path.parent == jobs
    assert sorted(os.listdir(job_dir.path)) == [".lock", "job", "outbox"]


def test_without_an_outbox_there_is_none(jobs: Path) -> None:
    job_dir = make_job_dir(jobs, ME, outbox=False)
    assert sorted(os.listdir(job_dir.path)) == [".lock", "job"]
    assert count_outbox(job_dir) == 0


def test_the_clone_lies_beside_the_inputs_and_skills_of_a_rule_inside_of_them(jobs: Path) -> None:
    job_dir = make_job_dir(jobs, ME)
    assert job_dir.workspace == job_dir.path / "workspace"
    assert job_dir.trigger_skills == job_dir.inputs / "trigger-skills"


def test_two_attempts_never_share_a_directory(jobs: Path) -> None:
    assert make_job_dir(jobs, ME).path != make_job_dir(jobs, ME).path


def test_an_open_folder_of_this_account_is_closed(jobs: Path) -> None:
    jobs.mkdir(parents=True)
    jobs.chmod(0o755)
    assert private_folder(jobs, "PI_JOBS_DIR") == jobs
    assert mode(jobs) == 0o700


def test_inputs_can_be_read_and_not_written(jobs: Path) -> None:
    job_dir = make_job_dir(jobs, ME)
    job_dir.write_inputs("täsk\r\n", '{"source": "manual"}\n')
    assert job_dir.prompt.read_bytes() == "täsk\r\n".encode()
    assert job_dir.event.read_text() == '{"source": "manual"}\n'
    assert (mode(job_dir.prompt), mode(job_dir.event)) == (0o444, 0o444)


def test_inputs_that_cannot_be_written_are_a_fault(jobs: Path) -> None:
    job_dir = make_job_dir(jobs, ME)
    remove_job_dir(job_dir)
    with pytest.raises(InfraError) as caught:
        job_dir.write_inputs("task", "{}")
    assert caught.value.cause == "job-dir"
    assert str(jobs) not in caught.value.message


def test_root_hands_everything_to_the_jobs_owner(jobs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given_away: list[tuple[str, int, int]] = []

    def chown(path: Path, uid: int, gid: int, *, follow_symlinks: bool) -> None:
        assert not follow_symlinks
        given_away.append((path.name, uid, gid))

    job_dir = make_job_dir(jobs, ME)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(os, "chown", chown)
    job_dir = JobDir(job_dir.path, (1234, 5678), job_dir.lock)
    job_dir.give(job_dir.path)
    job_dir.give(job_dir.outbox)
    job_dir.write_inputs("task", "{}")
    assert [name for name, *_ in given_away] == [job_dir.path.name, "outbox", "prompt.md", "event.json"]
    assert {tuple(owner) for _, *owner in given_away} == {(1234, 5678)}


def test_anyone_else_hands_over_nothing(jobs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def chown(*_arguments: object, **_named: object) -> None:
        raise AssertionError("only root can")

    job_dir = make_job_dir(jobs, ME)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr(os, "chown", chown)
    job_dir.write_inputs("task", "{}")
    assert job_dir.prompt.read_text() == "task"


def test_a_link_is_refused(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    with pytest.raises(ConfigError) as caught:
        make_job_dir(tmp_path / "link", ME)
    assert caught.value.cause == "not-own-folder"
    assert "PI_JOBS_DIR=" in caught.value.message
    assert os.listdir(tmp_path / "real") == []


@pytest.mark.parametrize("make", [Path.touch, lambda path: path.symlink_to("/nonexistent/x")])
def test_what_is_no_folder_is_refused(tmp_path: Path, make: object) -> None:
    assert callable(make)
    make(tmp_path / "jobs")
    with pytest.raises(ConfigError) as caught:
        private_folder(tmp_path / "jobs", "PI_JOBS_DIR")
    assert caught.value.cause == "not-a-folder"


def test_another_accounts_folder_is_refused(jobs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    jobs.mkdir(parents=True)
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    with pytest.raises(ConfigError) as caught:
        private_folder(jobs, "PI_JOBS_DIR")
    assert caught.value.cause == "not-own-folder"


def test_a_folder_that_cannot_be_made_is_a_fault(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(InfraError) as caught:
        private_folder(tmp_path / "file" / "jobs", "PI_JOBS_DIR")
    assert caught.value.cause == "folder-unusable"


def test_a_parent_that_others_may_write_is_refused(jobs: Path) -> None:
    jobs.mkdir(parents=True, mode=0o700)
    jobs.parent.chmod(0o777)
    with pytest.raises(ConfigError) as caught:
        make_job_dir(jobs, ME)
    assert caught.value.cause == "not-own-folder"
    assert os.listdir(jobs) == []


def test_a_parent_like_the_temporary_folder_is_taken(jobs: Path) -> None:
    jobs.mkdir(parents=True, mode=0o700)
    jobs.parent.chmod(0o1777)
    assert make_job_dir(jobs, ME).path.is_dir()


def test_a_parent_of_another_account_is_refused(jobs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    jobs.mkdir(parents=True, mode=0o700)
    real = Path.lstat

    def lstat(self: Path) -> os.stat_result:
        facts = real(self)
        if self != jobs.parent:
            return facts
        return os.stat_result((*facts[:4], 4242, *facts[5:10]))

    monkeypatch.setattr(Path, "lstat", lstat)
    with pytest.raises(ConfigError) as caught:
        make_job_dir(jobs, ME)
    assert caught.value.cause == "not-own-folder"


def test_the_outbox_is_counted_and_removed_with_the_rest(jobs: Path) -> None:
    job_dir = make_job_dir(jobs, ME)
    assert count_outbox(job_dir) == 0
    (job_dir.outbox / "a").touch()
    (job_dir.outbox / "b").mkdir()
    assert count_outbox(job_dir) == 2
    remove_job_dir(job_dir)
    assert not job_dir.path.exists()
    assert count_outbox(job_dir) == 0
    remove_job_dir(job_dir)


def test_removing_follows_no_link(jobs: Path, tmp_path: Path) -> None:
    job_dir = make_job_dir(jobs, ME)
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "file").touch()
    (job_dir.outbox / "link").symlink_to(tmp_path / "kept")
    remove_job_dir(job_dir)
    assert (tmp_path / "kept" / "file").exists()


def test_the_git_directory_is_not_made(jobs: Path) -> None:
    assert not make_job_dir(jobs, ME).git_dir.exists()


def test_the_deployments_id_is_made_once(tmp_path: Path) -> None:
    first = deployment_id(tmp_path / "state")
    assert re.fullmatch(r"[0-9a-f]{16}", first)
    assert deployment_id(tmp_path / "state") == first
    assert os.listdir(tmp_path / "state") == ["deployment"]
    assert mode(tmp_path / "state") == 0o700


def test_several_processes_at_once_agree_on_the_deployments_id(tmp_path: Path) -> None:
    code = """
import sys
from pathlib import Path
from pidispatch.workspace.jobdir import deployment_id
sys.stdin.readline()
print(deployment_id(Path(sys.argv[1])))
"""
    argv = [sys.executable, "-c", code, str(tmp_path / "state")]
    processes = [
        subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1) for _ in range(4)
    ]
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
    ids = {process.communicate()[0] for process in processes}
    assert len(ids) == 1
    assert [process.returncode for process in processes] == [0] * 4
    assert ids == {deployment_id(tmp_path / "state") + "\n"}


@pytest.mark.parametrize("text", ["", "short", "g" * 16, "A" * 16, "0" * 17, "\xff" * 16, "0" * 16 + "\nmore"])
def test_a_malformed_id_is_refused_and_kept(tmp_path: Path, text: str) -> None:
    (tmp_path / "state").mkdir()
    (tmp_path / "state" / "deployment").write_text(text)
    with pytest.raises(ConfigError) as caught:
        deployment_id(tmp_path / "state")
    assert caught.value.cause == "deployment-id"
    assert "Move it away" in caught.value.message
    assert (tmp_path / "state" / "deployment").read_text() == text


def test_a_line_break_after_the_id_is_taken(tmp_path: Path) -> None:
    (tmp_path / "state").mkdir()
    (tmp_path / "state" / "deployment").write_text("0123456789abcdef\n")
    assert deployment_id(tmp_path / "state") == "0123456789abcdef"


@pytest.mark.parametrize("make", [Path.mkdir, lambda path: path.symlink_to("absent")])
def test_an_id_that_cannot_be_read_is_a_fault(tmp_path: Path, make: object) -> None:
    assert callable(make)
    (tmp_path / "state").mkdir()
    make(tmp_path / "state" / "deployment")
    with pytest.raises(InfraError) as caught:
        deployment_id(tmp_path / "state")
    assert caught.value.cause == "deployment-id"


def test_a_linked_state_folder_is_refused_by_its_variable(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    with pytest.raises(ConfigError) as caught:
        deployment_id(tmp_path / "link")
    assert "PI_STATE_DIR=" in caught.value.message


@given(st.text())
def test_a_sanitised_id_is_a_name_of_the_same_length(job_id: str) -> None:
    name = sanitise(job_id)
    assert re.fullmatch(r"[A-Za-z0-9._-]*", name)
    assert len(name) == len(job_id)
    assert sanitise(name) == name


def test_a_plain_id_stays_as_it_is() -> None:
    assert sanitise("local-0123456789abcdef") == "local-0123456789abcdef"
    assert sanitise("repeat:a/b:1") == "repeat_a_b_1"


def test_folders_that_the_agent_closed_are_opened_and_links_are_not_followed(
    jobs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir(mode=0o500)
    (outside / "kept").symlink_to("/nowhere")
    job_dir = make_job_dir(jobs, ME)
    closed = job_dir.outbox / "closed"
    (closed / "inner").mkdir(parents=True)
    (job_dir.outbox / "link").symlink_to(outside)
    for folder in (closed / "inner", closed):
        folder.chmod(0)

    def rmtree(_path: Path) -> None:
        # Root is never refused, so it is made to fail as it would for anyone else.
        raise PermissionError("no")

    monkeypatch.setattr(shutil, "rmtree", rmtree)
    remove_job_dir(job_dir)

    assert not job_dir.path.exists()
    assert mode(outside) == 0o500
    assert (outside / "kept").is_symlink()


def test_a_nest_too_deep_for_a_path_is_removed(jobs: Path) -> None:
    job_dir = make_job_dir(jobs, ME)
    here = os.open(job_dir.outbox, os.O_RDONLY)
    for _ in range(1500):
        os.mkdir("nest-of-the-agents", dir_fd=here)
        inner = os.open("nest-of-the-agents", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = inner
    os.close(here)

    assert count_outbox(job_dir) == 1
    remove_job_dir(job_dir)
    assert not job_dir.path.exists()


def test_a_directory_that_stays_is_logged_by_its_name_alone(
    jobs: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    job_dir = make_job_dir(jobs, ME)

    def fail(*_arguments: object, **_named: object) -> None:
        raise InfraError("rm did not end", "timeout")

    monkeypatch.setattr(shutil, "rmtree", lambda path: (_ for _ in ()).throw(PermissionError(str(path))))
    monkeypatch.setattr(jobdir, "run_program", fail)
    remove_job_dir(job_dir)

    said = "".join(capsys.readouterr())
    assert "job_dir_left" in said
    assert job_dir.path.name in said
    assert str(jobs) not in said


def test_a_directory_in_use_is_not_abandoned(jobs: Path) -> None:
    job_dir = make_job_dir(jobs, ME)
    assert abandoned_job_dirs(jobs) == []
    release_job_dir(job_dir)
    [found] = abandoned_job_dirs(jobs)
    assert found == job_dir
    assert abandoned_job_dirs(jobs) == []
    remove_job_dir(found)
    assert os.listdir(jobs) == [".gate"]


def test_the_directory_of_a_killed_program_is_abandoned(jobs: Path) -> None:
    code = """
import os, sys
from pathlib import Path
from pidispatch.workspace.jobdir import make_job_dir
job_dir = make_job_dir(Path(sys.argv[1]), (os.getuid(), os.getgid()))
print(job_dir.path, flush=True)
sys.stdin.readline()
"""
    with subprocess.Popen(
        [sys.executable, "-c", code, str(jobs)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        path = Path(process.stdout.readline().strip())
        assert abandoned_job_dirs(jobs) == []
        process.kill()
    assert [found.path for found in abandoned_job_dirs(jobs)] == [path]


def test_no_jobs_folder_holds_nothing_abandoned(jobs: Path) -> None:
    assert abandoned_job_dirs(jobs) == []
    assert not jobs.exists()


def test_a_jobs_folder_that_cannot_be_used_holds_nothing_abandoned(
    jobs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make_job_dir(jobs, ME)
    (tmp_path / "link").symlink_to(jobs)
    assert abandoned_job_dirs(tmp_path / "link") == []
    assert "job_dirs_unreadable" in "".join(capsys.readouterr())


def test_what_was_half_removed_is_removed_and_never_settled(jobs: Path) -> None:
    job_dir = make_job_dir(jobs, ME)
    release_job_dir(job_dir)
    job_dir.path.rename(jobs / f"gone-{job_dir.path.name}")
    assert abandoned_job_dirs(jobs) == []
    assert os.listdir(jobs) == [".gate"]


@pytest.mark.parametrize("name", ["job-board", "job-1234567", "job-12345678.bak", "kept-old", "gone-job-board"])
def test_what_is_named_otherwise_is_not_ours(jobs: Path, name: str) -> None:
    used = make_job_dir(jobs, ME)
    (jobs / name).mkdir()
    (jobs / name / "mine").touch()
    os.utime(jobs / name, (1000.0, 1000.0))
    assert abandoned_job_dirs(jobs) == []
    remove_old_kept(jobs, datetime.fromtimestamp(10**9, UTC), 1)
    assert os.listdir(jobs / name) == ["mine"]
    release_job_dir(used)


def test_an_odd_name_hides_no_other(jobs: Path) -> None:
    job_dir = make_job_dir(jobs, ME)
    release_job_dir(job_dir)
    (jobs / "job-00000000").touch()
    (jobs / "job-00000001").mkdir()
    assert [found.path for found in abandoned_job_dirs(jobs)] == [job_dir.path]


def test_what_is_kept_outlives_its_directory_until_it_is_old(jobs: Path) -> None:
    job_dir = make_job_dir(jobs, ME)
    assert job_dir.kept("repeat:a:1") == jobs / "kept-repeat_a_1"
    kept = job_dir.kept(f"local-{'0' * 16}")
    kept.mkdir()
    (kept / "config").touch()
    os.utime(kept, (1000.0, 1000.0))
    remove_job_dir(job_dir)
    assert abandoned_job_dirs(jobs) == []
    remove_old_kept(jobs, datetime.fromtimestamp(1000.0 + 86400 * 3, UTC), 0)
    remove_old_kept(jobs, datetime.fromtimestamp(1000.0 + 86400 * 3, UTC), 3)
    assert kept.exists()
    remove_old_kept(jobs, datetime.fromtimestamp(1001.0 + 86400 * 3, UTC), 3)
    assert not kept.exists()
    remove_old_kept(jobs / "nowhere", datetime.fromtimestamp(1000.0, UTC), 3)
