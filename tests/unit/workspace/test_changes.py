"""What a run changed: found by comparing, never by asking the folder's own configuration."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from pidispatch.values.change import Change, FileChange
from pidispatch.values.limits import Limits
from pidispatch.workspace.changes import read_change, snapshot
from tests.unit.workspace.conftest import Opener
from tests.unit.workspace.repository import Repository

Act = Callable[[Repository], object]


def nothing(_repository: Repository) -> None:
    """An agent that does nothing."""


def run(repository: Repository, opened: Opener, act: Act, limits: Limits | None = None) -> tuple[Change, str]:
    """One run in which the agent does `act`: the change and its diff."""
    git = opened(repository, limits)
    before = snapshot(git)
    act(repository)
    change, diff = read_change(git, before)
    return change, diff or ""


def added(path: str, lines: int | None) -> FileChange:
    return FileChange(path=path, kind="added", added=lines, removed=None if lines is None else 0)


def modified(path: str, plus: int | None, minus: int | None) -> FileChange:
    return FileChange(path=path, kind="modified", added=plus, removed=minus)


def test_no_change(repository: Repository, opened: Opener) -> None:
    sha = repository.git("rev-parse", "HEAD")
    change, diff = run(repository, opened, nothing)
    assert change == Change(changed=False, commits=0, head=sha, files=(), dirty_before=False)
    assert diff == ""


def _replace_by_link(repository: Repository) -> None:
    (repository.path / "a.txt").unlink()
    (repository.path / "a.txt").symlink_to("b.txt")


def _replace_by_folder(repository: Repository) -> None:
    (repository.path / "a.txt").unlink()
    repository.write("a.txt/inner", "x\n")


@pytest.mark.parametrize(
    ("act", "expected"),
    [
        pytest.param(lambda r: r.write("a.txt", "one\n2\nthree\n"), [modified("a.txt", 2, 1)], id="edit"),
        pytest.param(lambda r: r.write("a.txt", "one\nTWO\n"), [modified("a.txt", 1, 1)], id="same-size"),
        pytest.param(lambda r: r.write("new/n.txt", "1\n2\n3\n"), [added("new/n.txt", 3)], id="new-file"),
        pytest.param(lambda r: r.write("empty", ""), [added("empty", 0)], id="empty-file"),
        pytest.param(
            lambda r: (r.path / "a.txt").unlink(),
            [FileChange(path="a.txt", kind="deleted", added=0, removed=2)],
            id="delete",
        ),
        pytest.param(lambda r: (r.path / "a.txt").chmod(0o755), [modified("a.txt", 0, 0)], id="mode"),
        pytest.param(lambda r: r.write("a.txt", b"\0\xff"), [modified("a.txt", None, None)], id="to-binary"),
        pytest.param(lambda r: r.write("x.bin", b"\0\xff"), [added("x.bin", None)], id="new-binary"),
        pytest.param(lambda r: r.write("big", b"x\n" * 600_000), [added("big", None)], id="big-is-binary"),
        pytest.param(lambda r: (r.path / "link").symlink_to("/etc/passwd"), [added("link", 1)], id="new-link"),
        pytest.param(
            _replace_by_folder,
            [FileChange(path="a.txt", kind="deleted", added=0, removed=2), added("a.txt/inner", 1)],
            id="file-to-folder",
        ),
        pytest.param(
            lambda r: (r.path / "a.txt").rename(r.path / "c.txt"),
            [FileChange(path="a.txt", kind="deleted", added=0, removed=2), added("c.txt", 2)],
            id="rename",
        ),
        pytest.param(lambda r: r.git("rm", "-q", "--cached", "a.txt"), [], id="only-the-index"),
    ],
)
def test_one_kind_of_change(repository: Repository, opened: Opener, act: Act, expected: list[FileChange]) -> None:
    change, _ = run(repository, opened, act)
    assert list(change.files) == expected
    assert change.changed is bool(expected)
    assert change.commits == 0
    assert not change.dirty_before
    assert not change.truncated


def test_a_file_that_becomes_a_link_is_not_followed(repository: Repository, opened: Opener) -> None:
    change, diff = run(repository, opened, _replace_by_link)
    assert change.changed
    assert [(file.path, file.kind) for file in change.files] == [("a.txt", "modified")]
    assert "+b.txt" in diff


def test_the_diff_shows_edits_and_new_files(repository: Repository, opened: Opener) -> None:
    def act(repository: Repository) -> None:
        repository.write("a.txt", "one\nTWO\n")
        repository.write("new.txt", b"latin \xe9\n")

    _, diff = run(repository, opened, act)
    assert "-two\n+TWO" in diff
    assert "+latin \ufffd" in diff
    assert "new file mode 100644" in diff


def test_commits_are_counted_and_their_files_listed(repository: Repository, opened: Opener) -> None:
    def act(repository: Repository) -> None:
        repository.write("new.txt", "1\n")
        repository.commit()
        repository.write("a.txt", "one\n")
        repository.commit()

    change, _ = run(repository, opened, act)
    assert change.changed
    assert change.commits == 2
    assert change.head == repository.git("rev-parse", "HEAD")
    assert list(change.files) == [modified("a.txt", 0, 1), added("new.txt", 1)]


@pytest.mark.parametrize(
    "act",
    [
        pytest.param(lambda r: r.git("branch", "topic"), id="branch"),
        pytest.param(lambda r: r.git("tag", "v1"), id="tag"),
        pytest.param(lambda r: r.git("checkout", "--quiet", "-b", "topic"), id="switch"),
        pytest.param(lambda r: r.commit(), id="empty-commit"),
        pytest.param(lambda r: r.git("reset", "--hard", "--quiet", "HEAD~1"), id="reset"),
    ],
)
def test_a_change_of_branches_alone_is_a_change(repository: Repository, opened: Opener, act: Act) -> None:
    repository.commit()
    change, _ = run(repository, opened, act)
    assert change.changed
    assert change.files == ()


def test_a_new_head_whose_history_cannot_be_read_counts_no_commits(repository: Repository, opened: Opener) -> None:
    change, _ = run(repository, opened, lambda r: r.write(".git/refs/heads/main", "1" * 40 + "\n"))
    assert change.changed
    assert change.commits == 0
    assert change.head == "1" * 40


def test_a_shallow_clone_is_read(repository: Repository, opened: Opener, tmp_path: Path) -> None:
    repository.commit()
    (tmp_path / "clones").mkdir()
    repository.git("clone", "--quiet", "--depth=1", f"file://{repository.path}", str(tmp_path / "clones" / "c"))
    clone = object.__new__(Repository)
    clone.path = tmp_path / "clones" / "c"
    clone.write("a.txt", "x\n")
    change, _ = run(clone, opened, lambda r: r.commit())
    assert change.commits == 1
    assert change.dirty_before


def _dirty(repository: Repository) -> None:
    repository.write("a.txt", "one\nmine\n")
    repository.write("mine.txt", "mine\n")
    repository.write(":mine", "one\n")
    repository.git("add", "--intent-to-add", "--", "./:mine")


def test_a_dirty_folder_that_stays_as_it_is_has_not_changed(repository: Repository, opened: Opener) -> None:
    _dirty(repository)
    change, _ = run(repository, opened, nothing)
    assert not change.changed
    assert change.dirty_before
    assert {file.path for file in change.files} == {"a.txt", "mine.txt", ":mine"}


@pytest.mark.parametrize(
    "act",
    [
        pytest.param(lambda r: r.write("a.txt", "one\nnine\n"), id="edited-again"),
        pytest.param(lambda r: r.write("mine.txt", "NINE\n"), id="untracked-edited"),
        pytest.param(lambda r: r.git("checkout", "--quiet", "a.txt"), id="reverted"),
        pytest.param(lambda r: (r.path / "mine.txt").unlink(), id="untracked-removed"),
        pytest.param(lambda r: (r.path / "mine.txt").chmod(0o600), id="untracked-mode"),
        pytest.param(lambda r: r.write("other.txt", "x\n"), id="another"),
    ],
)
def test_a_dirty_folder_that_is_changed_further_has_changed(repository: Repository, opened: Opener, act: Act) -> None:
    _dirty(repository)
    change, _ = run(repository, opened, act)
    assert change.changed
    assert change.dirty_before


@pytest.mark.parametrize("name", [":colon", ":(exclude)a.txt", "*", "a[b]", '"q"'])
def test_a_dirty_file_with_a_strange_name_is_followed(repository: Repository, opened: Opener, name: str) -> None:
    repository.write(name, "one\n")
    repository.commit()
    repository.write(name, "two\n")
    unchanged, _ = run(repository, opened, nothing)
    assert not unchanged.changed
    changed, _ = run(repository, opened, lambda r: r.write(name, "six\n"))
    assert changed.changed


STRANGE = ["line\nbreak", "tab\there", '"quoted"', "it's", " blank ", "\\", ":", ":(top)", "*", "-f", "#x", "git~1"]


@pytest.mark.parametrize("name", [*STRANGE, "ü–😀"])
def test_a_new_file_may_have_any_name(repository: Repository, opened: Opener, name: str) -> None:
    change, _ = run(repository, opened, lambda r: r.write(name, "1\n2\n"))
    assert list(change.files) == [added(name, 2)]


def test_a_name_that_is_not_utf8_is_shown_with_replacements(repository: Repository, opened: Opener) -> None:
    change, _ = run(repository, opened, lambda r: r.write(b"caf\xe9", "1\n"))
    assert list(change.files) == [added("caf\ufffd", 1)]


def test_a_name_that_git_refuses_is_listed_uncounted(repository: Repository, opened: Opener) -> None:
    def act(repository: Repository) -> None:
        repository.write(".GIT", "x\n")
        repository.write("new.txt", "1\n")

    change, _ = run(repository, opened, act)
    assert change.changed
    assert list(change.files) == [FileChange(path=".GIT", kind="added"), added("new.txt", 1)]


def test_an_ignored_file_alone_is_no_change(repository: Repository, opened: Opener) -> None:
    repository.write(".gitignore", "*.log\nbuild/\n")
    repository.commit()

    def act(repository: Repository) -> None:
        repository.write("x.log")
        repository.write("build/out")

    change, _ = run(repository, opened, act)
    assert not change.changed
    assert change.files == ()


@pytest.mark.parametrize("commits", [0, 1])
def test_a_nested_repository_is_a_change_and_is_not_entered(
    repository: Repository, opened: Opener, commits: int
) -> None:
    def act(repository: Repository) -> None:
        nested = Repository(repository.path / "nested")
        nested.write("inner.txt", "x\n")
        for _ in range(commits):
            nested.commit()

    change, diff = run(repository, opened, act)
    assert change.changed
    assert [(file.path, file.kind) for file in change.files] == [("nested/", "added")]
    assert "inner" not in diff


def test_pipes_and_sockets_are_passed_over(repository: Repository, opened: Opener) -> None:
    change, _ = run(repository, opened, lambda r: os.mkfifo(r.path / "pipe"))
    assert change.files == ()


def test_a_list_past_the_bound_is_cut_and_says_so(repository: Repository, opened: Opener) -> None:
    names = [f"file-{number:03}" for number in range(200)]

    def act(repository: Repository) -> None:
        for name in names:
            repository.write(name, "1\n")

    change, diff = run(repository, opened, act, Limits(git_output_bytes=1024))
    assert change.changed
    assert change.truncated
    assert {file.path for file in change.files} <= set(names)
    assert len(diff) <= 1024


def test_reference_files_that_are_links_or_pipes_do_not_hold_the_host(repository: Repository, opened: Opener) -> None:
    def act(repository: Repository) -> None:
        os.mkfifo(repository.path / ".git/refs/heads/pipe")
        (repository.path / ".git/refs/heads/zero").symlink_to("/dev/zero")

    change, _ = run(repository, opened, act)
    assert change.changed
    assert change.files == ()
