"""The host's own git directory for a folder: what it reads, what it carries over, what it refuses."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pidispatch.values.errors import ConfigError, InfraError
from pidispatch.values.limits import Limits
from pidispatch.workspace import git as git_module
from pidispatch.workspace.changes import read_change, snapshot
from pidispatch.workspace.folder import open_folder
from pidispatch.workspace.git import HostGit, git_environment, open_host_git, read_head
from pidispatch.workspace.process import Finished, program, run_program
from tests.unit.workspace.conftest import Opener
from tests.unit.workspace.repository import Repository, fingerprint, script

STANDARD_LFS = {
    "filter.lfs.clean": "git-lfs clean -- %f",
    "filter.lfs.smudge": "git-lfs smudge -- %f",
    "filter.lfs.process": "git-lfs filter-process",
    "filter.lfs.required": "true",
}


def carried(git: HostGit, key: str) -> str | None:
    """What our git directory says of one setting."""
    done = git.call("config", "--get", key, checked=False)
    return done.output.decode().rstrip("\n") if done.code == 0 else None


@pytest.mark.parametrize(("object_format", "digits"), [("sha1", 40), ("sha256", 64)])
def test_reads_the_commit_of_either_object_format(
    tmp_path: Path, opened: Opener, object_format: str, digits: int
) -> None:
    repository = Repository(tmp_path / "folder", object_format=object_format)
    repository.write("a.txt")
    sha = repository.commit()
    git = opened(repository)
    before = snapshot(git)
    assert git.sha == sha
    assert len(sha) == digits
    assert git.head() == sha
    repository.write("a.txt", "other\n")
    change, diff = read_change(git, before)
    assert change.changed
    assert diff is not None
    assert "+other" in diff


def test_reads_a_detached_head_and_packed_branches(repository: Repository, opened: Opener) -> None:
    sha = repository.git("rev-parse", "HEAD")
    repository.git("pack-refs", "--all")
    assert opened(repository).sha == sha
    repository.git("checkout", "--quiet", "--detach")
    repository.git("gc", "--quiet")
    git = opened(repository)
    assert git.sha == sha
    assert not snapshot(git).dirty


def test_a_repository_without_a_commit_is_refused(tmp_path: Path, opened: Opener) -> None:
    repository = Repository(tmp_path / "folder")
    assert read_head(open_folder(repository.path), Limits()) is None
    with pytest.raises(ConfigError) as caught:
        opened(repository)
    assert caught.value.cause == "no-commit"
    assert "git add -A && git commit -m start" in caught.value.message


@pytest.mark.parametrize(
    ("name", "content"),
    [
        (".git/HEAD", "rubbish\n"),
        (".git/HEAD", ""),
        (".git/HEAD", "0" * 40 + "\n"),
        (".git/HEAD", "1" * 40 + "\n"),
        (".git/config", "[core\n"),
        (".git/config", "[core]\n\trepositoryFormatVersion = 99\n"),
        (".git/config", "[core]\n\trepositoryFormatVersion = 1\n[extensions]\n\tunheardOf = true\n"),
    ],
)
def test_a_broken_repository_is_refused(repository: Repository, opened: Opener, name: str, content: str) -> None:
    repository.write(name, content)
    with pytest.raises(ConfigError) as caught:
        opened(repository)
    assert caught.value.cause == "git-unusable"
    assert "Check it with: git " in caught.value.message
    assert str(repository.path) not in caught.value.message


def test_a_broken_branch_is_refused(repository: Repository, opened: Opener) -> None:
    repository.write(".git/refs/heads/main", "rubbish\n")
    with pytest.raises(ConfigError) as caught:
        opened(repository)
    assert caught.value.exit_code == 2


def test_a_head_that_names_no_commit_is_refused(repository: Repository, opened: Opener) -> None:
    blob = repository.git("rev-parse", "HEAD:a.txt")
    repository.write(".git/HEAD", blob + "\n")
    with pytest.raises(ConfigError) as caught:
        opened(repository)
    assert caught.value.cause == "git-unusable"


def test_an_empty_git_directory_is_refused(tmp_path: Path) -> None:
    (tmp_path / "folder" / ".git").mkdir(parents=True)
    with pytest.raises(ConfigError) as caught:
        open_host_git(open_folder(tmp_path / "folder"), tmp_path / "git", Limits(), tmp_path)
    assert caught.value.cause == "git-unusable"


def test_objects_outside_of_the_folder_are_refused(repository: Repository, opened: Opener, tmp_path: Path) -> None:
    shutil.move(repository.path / ".git" / "objects", tmp_path / "objects")
    (repository.path / ".git" / "objects").symlink_to(tmp_path / "objects")
    with pytest.raises(ConfigError) as caught:
        opened(repository)
    assert caught.value.cause == "worktree"
    assert "git clone --no-local" in caught.value.message


def test_a_clone_that_borrows_objects_is_refused(repository: Repository, tmp_path: Path) -> None:
    borrower = tmp_path / "borrower"
    repository.git("clone", "--quiet", "--shared", str(repository.path), str(borrower))
    with pytest.raises(ConfigError) as caught:
        open_host_git(open_folder(borrower), tmp_path / "git", Limits(), tmp_path)
    assert caught.value.cause == "worktree"
    assert "git repack" in caught.value.message


def test_objects_that_are_missing_are_a_fault(repository: Repository, opened: Opener) -> None:
    tree = repository.git("rev-parse", "HEAD^{tree}")
    (repository.path / ".git" / "objects" / tree[:2] / tree[2:]).unlink()
    with pytest.raises(InfraError) as caught:
        opened(repository)
    assert caught.value.cause == "git-failed"


def test_a_head_that_cannot_be_read_after_the_run_is_none(repository: Repository, opened: Opener) -> None:
    git = opened(repository)
    before = snapshot(git)
    repository.write(".git/HEAD", "rubbish\n")
    change, _ = read_change(git, before)
    assert change.head is None
    assert change.changed
    assert change.commits == 0


@pytest.mark.parametrize("name", ["with space", "it's", 'a "quoted" one', "back\\slash", "line\nbreak", "$(x)", "ü–😀"])
def test_the_folders_path_may_hold_anything(tmp_path: Path, opened: Opener, name: str) -> None:
    repository = Repository(tmp_path / name / name)
    repository.write("a.txt", "one\n")
    sha = repository.commit()
    git = opened(repository)
    before = snapshot(git)
    assert git.sha == sha
    assert not before.dirty
    repository.write("a.txt", "two\n")
    assert [file.path for file in read_change(git, before)[0].files] == ["a.txt"]


def test_nothing_of_the_folder_is_written(repository: Repository, opened: Opener) -> None:
    repository.write("a.txt", "changed\n")
    repository.write("new.txt", "new\n")
    os.utime(repository.path / "b.txt", ns=(1, 1))
    state = fingerprint(repository.path)
    git = opened(repository)
    change, _ = read_change(git, snapshot(git))
    assert not change.changed
    assert fingerprint(repository.path) == state


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [
        ("core.autocrlf", "input", "input"),
        ("core.autocrlf", "TRUE", "true"),
        ("core.eol", "crlf", "crlf"),
        ("core.eol", "mac", None),
        ("core.fileMode", "false", "false"),
        ("core.ignoreCase", "true", "true"),
        ("core.precomposeUnicode", "true", "true"),
        ("core.symlinks", "false", "false"),
        ("core.pager", "evil", None),
        ("core.worktree", "/elsewhere", None),
        ("core.attributesFile", "/elsewhere", None),
        ("diff.noprefix", "true", None),
    ],
)
def test_carries_over_what_shapes_the_tree_and_nothing_else(
    repository: Repository, opened: Opener, key: str, value: str, expected: str | None
) -> None:
    repository.git("config", key, value)
    assert carried(opened(repository), key) == expected


def test_line_endings_are_read_as_the_folder_reads_them(repository: Repository, opened: Opener) -> None:
    repository.git("config", "core.autocrlf", "true")
    repository.write("a.txt", "one\r\ntwo\r\n")
    assert not snapshot(opened(repository)).dirty
    repository.git("config", "core.autocrlf", "false")
    assert snapshot(opened(repository)).dirty


def test_modes_are_ignored_where_the_folder_ignores_them(repository: Repository, opened: Opener) -> None:
    (repository.path / "a.txt").chmod(0o755)
    assert snapshot(opened(repository)).dirty
    repository.git("config", "core.fileMode", "false")
    assert not snapshot(opened(repository)).dirty


def test_settings_of_an_included_file_are_not_carried_over(
    repository: Repository, opened: Opener, tmp_path: Path
) -> None:
    (tmp_path / "included").write_text("[core]\n\tautocrlf = true\n")
    repository.git("config", "include.path", str(tmp_path / "included"))
    assert carried(opened(repository), "core.autocrlf") is None


def set_lfs(path: Path, repository: Repository, entries: dict[str, str]) -> None:
    for key, value in entries.items():
        repository.git("config", f"--file={path}", key, value)


@pytest.fixture
def git_lfs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stand-in for git-lfs on the path, which speaks the short form of the filter only."""
    script(tmp_path / "bin" / "git-lfs", 'cat >/dev/null; [ "$1" = clean ] && echo pointer')
    monkeypatch.setenv("PATH", os.pathsep.join([str(tmp_path / "bin"), os.environ["PATH"]]))


@pytest.mark.usefixtures("git_lfs")
@pytest.mark.parametrize("where", ["folder", "operator"])
def test_git_lfs_is_carried_over_in_its_standard_form(
    repository: Repository, opened: Opener, home: Path, where: str
) -> None:
    set_lfs(repository.path / ".git/config" if where == "folder" else home / ".gitconfig", repository, STANDARD_LFS)
    git = opened(repository)
    assert {key: carried(git, key) for key in STANDARD_LFS} == STANDARD_LFS


def test_git_lfs_that_is_not_installed_is_not_asked_for(
    repository: Repository, opened: Opener, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_lfs(repository.path / ".git/config", repository, STANDARD_LFS)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "git").symlink_to(program("git"))
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    repository.write(".gitattributes", "* filter=lfs\n")
    git = opened(repository)
    assert [carried(git, key) for key in STANDARD_LFS] == [None] * 4
    assert snapshot(git).dirty


@pytest.mark.usefixtures("git_lfs")
@pytest.mark.parametrize(
    "deviation",
    [
        {"filter.lfs.clean": "git-lfs clean -- %f; evil"},
        {"filter.lfs.process": "evil"},
        {"filter.lfs.extra": "evil"},
        {"filter.lfs.required": "false"},
    ],
)
def test_git_lfs_in_any_other_form_is_dropped_whole(
    repository: Repository, opened: Opener, home: Path, deviation: dict[str, str]
) -> None:
    set_lfs(home / ".gitconfig", repository, STANDARD_LFS)
    set_lfs(repository.path / ".git/config", repository, deviation)
    git = opened(repository)
    assert [carried(git, key) for key in STANDARD_LFS] == [None] * 4


@pytest.mark.usefixtures("git_lfs")
def test_a_file_of_git_lfs_is_read_through_its_filter(
    repository: Repository, opened: Opener, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository.write(".gitattributes", "big filter=lfs\n")
    repository.write("big", "pointer\n")
    repository.commit()
    repository.write("big", "the large content\n")
    assert snapshot(opened(repository)).dirty
    set_lfs(home / ".gitconfig", repository, {"filter.lfs.clean": "git-lfs clean -- %f"})
    with monkeypatch.context() as patch:
        patch.setattr(git_module, "_LFS", {"filter.lfs.clean": "git-lfs clean -- %f"})
        assert not snapshot(opened(repository)).dirty


def untracked_is_seen(git: HostGit, repository: Repository) -> bool:
    repository.write("file.ignored")
    return snapshot(git).dirty


def test_the_folders_own_exclude_file_counts(repository: Repository, opened: Opener) -> None:
    repository.write(".git/info/exclude", "*.ignored\n")
    assert not untracked_is_seen(opened(repository), repository)


def test_a_linked_exclude_file_of_the_folder_does_not_count(
    repository: Repository, opened: Opener, tmp_path: Path
) -> None:
    (tmp_path / "rules").write_text("*.ignored\n")
    (repository.path / ".git/info/exclude").unlink(missing_ok=True)
    (repository.path / ".git/info").mkdir(exist_ok=True)
    (repository.path / ".git/info/exclude").symlink_to(tmp_path / "rules")
    assert untracked_is_seen(opened(repository), repository)


def test_an_exclude_file_that_changes_during_the_run_does_not_count(repository: Repository, opened: Opener) -> None:
    git = opened(repository)
    repository.write(".git/info/exclude", "*.ignored\n")
    assert untracked_is_seen(git, repository)


@pytest.mark.parametrize("config", [".gitconfig", ".config/git/config"])
@pytest.mark.parametrize("written", ["~/rules", "{home}/rules", "rules"])
def test_the_operators_exclude_file_counts(
    repository: Repository, opened: Opener, home: Path, config: str, written: str
) -> None:
    (home / config).parent.mkdir(parents=True, exist_ok=True)
    (home / config).write_text(f"[core]\n\texcludesFile = {written.format(home=home)}\n")
    (home / "rules").write_text("*.ignored\n")
    assert not untracked_is_seen(opened(repository), repository)


def test_the_operators_default_exclude_file_counts(repository: Repository, opened: Opener, home: Path) -> None:
    (home / ".config/git").mkdir(parents=True)
    (home / ".config/git/ignore").write_text("*.ignored\n")
    assert not untracked_is_seen(opened(repository), repository)


def test_a_broken_configuration_of_the_operator_is_none(repository: Repository, opened: Opener, home: Path) -> None:
    (home / ".gitconfig").write_text("[core\n")
    assert untracked_is_seen(opened(repository), repository)


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir])
def test_a_configuration_that_is_no_file_is_none_and_not_waited_for(
    make: Callable[[Path], None], repository: Repository, opened: Opener, home: Path
) -> None:
    make(home / ".gitconfig")
    assert untracked_is_seen(opened(repository), repository)


def test_a_configuration_is_read_once_as_long_as_it_says_the_same(
    repository: Repository, opened: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[bytes] = []

    def watched(argv: list[str], **options: Any) -> Finished:
        read.extend([options["stdin"]] if "config" in argv else [])
        return run_program(argv, **options)

    monkeypatch.setattr(git_module, "run_program", watched)
    monkeypatch.setattr(git_module, "_known_configs", {})
    monkeypatch.setattr(git_module, "_MOST_CONFIGS", 1)
    opened(repository)
    opened(repository)
    assert read == [(repository.path / ".git" / "config").read_bytes()]
    before = (repository.path / ".git" / "config").read_text()
    repository.git("config", "core.autocrlf", "true")
    opened(repository)
    # A broken one is none, and is read again and again until it is mended.
    (repository.path / ".git" / "config").write_text("[core\n")
    with pytest.raises(ConfigError):
        opened(repository)
    (repository.path / ".git" / "config").write_text(before)
    opened(repository)
    assert len(read) == 3


def test_the_folders_exclude_setting_does_not_count(repository: Repository, opened: Opener, tmp_path: Path) -> None:
    (tmp_path / "rules").write_text("*.ignored\n")
    repository.git("config", "core.excludesFile", str(tmp_path / "rules"))
    assert untracked_is_seen(opened(repository), repository)


def test_an_account_without_a_home_works(
    repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def homeless() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", homeless)
    git = open_host_git(open_folder(repository.path), tmp_path / "git", Limits())
    assert not snapshot(git).dirty


def test_the_environment_of_git_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "secret")
    monkeypatch.setenv("PATH", "/bin:.::relative:/usr/bin")
    environment = git_environment()
    assert environment["PATH"] == "/bin:/usr/bin"
    assert environment["GIT_CONFIG_GLOBAL"] == os.devnull
    assert "ANTHROPIC_API_KEY" not in environment


def test_a_failing_call_names_its_verb(repository: Repository, opened: Opener) -> None:
    git = opened(repository)
    with pytest.raises(InfraError) as caught:
        git.call("cat-file", "-t", "0" * 40)
    assert "git cat-file failed" in caught.value.message
    assert git.call("cat-file", "-t", "0" * 40, checked=False).code != 0
