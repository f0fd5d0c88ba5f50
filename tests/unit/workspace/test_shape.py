"""What an agent may leave in the place of git's own files: told, in bounded time, and never followed."""

import os
import shutil
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest

from pidispatch.values.errors import ConfigError, DispatchError
from pidispatch.values.limits import Limits
from pidispatch.workspace.changes import read_change, snapshot
from pidispatch.workspace.folder import open_folder
from pidispatch.workspace.shape import check_shape, read_small, references
from tests.unit.workspace.conftest import Opener
from tests.unit.workspace.repository import Repository

SECRET = "a line of another repository"
Plant = Callable[[Path, Path], None]


def _fifo(name: str) -> Plant:
    def plant(git_dir: Path, _other: Path) -> None:
        (git_dir / name).unlink(missing_ok=True)
        (git_dir / name).parent.mkdir(exist_ok=True)
        os.mkfifo(git_dir / name)

    return plant


def _link(name: str, target: str) -> Plant:
    def plant(git_dir: Path, other: Path) -> None:
        path = git_dir / name
        if path.is_dir():
            shutil.rmtree(path)
        path.unlink(missing_ok=True)
        path.parent.mkdir(exist_ok=True)
        path.symlink_to(target.format(other=other))

    return plant


def _sparse(name: str) -> Plant:
    def plant(git_dir: Path, _other: Path) -> None:
        with (git_dir / name).open("ab") as file:
            file.truncate(2**40)

    return plant


def _exchanged(git_dir: Path, other: Path) -> None:
    shutil.rmtree(git_dir)
    git_dir.symlink_to(other / ".git")


def _gitfile(git_dir: Path, other: Path) -> None:
    shutil.rmtree(git_dir)
    git_dir.write_text(f"gitdir: {other}/.git\n")


def _commondir(git_dir: Path, other: Path) -> None:
    (git_dir / "commondir").write_text(f"{other}/.git\n")


def _alternates(git_dir: Path, other: Path) -> None:
    (git_dir / "objects" / "info").mkdir(exist_ok=True)
    (git_dir / "objects" / "info" / "alternates").write_text(f"{other}/.git/objects\n")


PLANTS: dict[str, Plant] = {
    "head-pipe": _fifo("HEAD"),
    "head-link": _link("HEAD", "/dev/zero"),
    "head-huge": _sparse("HEAD"),
    "packed-refs-pipe": _fifo("packed-refs"),
    "packed-refs-huge": _sparse("packed-refs"),
    "config-pipe": _fifo("config"),
    "config-link": _link("config", "/dev/zero"),
    "config-dangling": _link("config", "/nonexistent"),
    "refs-link": _link("refs", "/proc"),
    "objects-link": _link("objects", "{other}/.git/objects"),
    "alternates-pipe": _fifo("objects/info/alternates"),
    "alternates-link": _link("objects/info/alternates", "/dev/zero"),
    "alternates": _alternates,
    "objects-info-link": _link("objects/info", "{other}"),
    "commondir": _commondir,
    "gitfile": _gitfile,
    "exchanged": _exchanged,
}


@pytest.fixture
def other(tmp_path: Path) -> Path:
    """A repository of somebody else's."""
    other = Repository(tmp_path / "other")
    other.write("secret.txt", SECRET + "\n")
    other.commit()
    return other.path


@pytest.mark.parametrize("plant", PLANTS.values(), ids=PLANTS)
def test_before_a_run_it_is_refused(repository: Repository, other: Path, plant: Plant) -> None:
    plant(repository.path / ".git", other)
    with pytest.raises(ConfigError) as caught:
        check_shape(open_folder(repository.path))
    assert caught.value.cause in ("worktree", "git-unusable")
    assert str(other) not in caught.value.message


@pytest.mark.parametrize("plant", PLANTS.values(), ids=PLANTS)
def test_after_a_run_nothing_of_it_is_read(repository: Repository, opened: Opener, other: Path, plant: Plant) -> None:
    git = opened(repository)
    before = snapshot(git)
    repository.write("a.txt", "changed\n")
    plant(repository.path / ".git", other)
    with pytest.raises(ConfigError):
        read_change(git, before)


def test_a_links_target_is_no_reference(repository: Repository, tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret").write_text("f" * 40)
    heads = repository.path / ".git" / "refs" / "heads"
    (heads / "folder").symlink_to(tmp_path / "outside")
    (heads / "file").symlink_to(tmp_path / "outside" / "secret")
    os.mkfifo(heads / "pipe")
    deep = heads
    for _ in range(200):
        deep = deep / "n"
        deep.mkdir()

    assert b"f" * 40 not in b"".join(references(repository.path / ".git"))


def test_a_small_file_is_read_and_nothing_else_is(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"content")
    (tmp_path / "link").symlink_to(tmp_path / "file")
    os.mkfifo(tmp_path / "pipe")
    with (tmp_path / "huge").open("wb") as file:
        file.truncate(2**40)

    assert read_small(tmp_path / "file") == b"content"
    assert read_small(tmp_path / "file", 6) is None
    for name in ("link", "pipe", "huge", "absent", "."):
        assert read_small(tmp_path / name) is None


def test_an_object_that_the_agent_rewrote_hides_no_change(repository: Repository, opened: Opener) -> None:
    """The text to compare with is then the agent's; that the file differs is not."""
    git = opened(repository)
    before = snapshot(git)
    forged = b"one line of the agent's\n"
    blob = repository.git("rev-parse", "HEAD:a.txt")
    path = repository.path / ".git" / "objects" / blob[:2] / blob[2:]
    path.chmod(0o644)
    path.write_bytes(zlib.compress(b"blob %d\0" % len(forged) + forged))
    (repository.path / "a.txt").write_bytes(forged)

    change, _ = read_change(git, before)
    assert change.changed
    assert [file.path for file in change.files] == ["a.txt"]


def test_an_object_that_unpacks_to_more_than_memory_ends_git_alone(repository: Repository, opened: Opener) -> None:
    git = opened(repository)
    before = snapshot(git)
    tree = repository.git("rev-parse", "HEAD^{tree}")
    path = repository.path / ".git" / "objects" / tree[:2] / tree[2:]
    path.chmod(0o644)
    size = 4 << 30
    packer = zlib.compressobj(9)
    with path.open("wb") as file:
        file.write(packer.compress(b"tree %d\0" % size))
        block = bytes(64 << 20)
        for _ in range(size // len(block)):
            file.write(packer.compress(block))
        file.write(packer.flush())
    repository.write("a.txt", "changed\n")
    repository.write("new.txt", "new\n")

    change, diff = read_change(git, before)
    assert change.changed
    assert {file.path for file in change.files} == {"a.txt", "new.txt"}
    assert diff is None


def test_many_new_files_are_listed_in_time_and_the_first_are_counted(
    repository: Repository, opened: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pidispatch.workspace.changes.COUNTED", 3)
    git = opened(repository)
    before = snapshot(git)
    for number in range(5):
        repository.write(f"new-{number}.txt", "line\n")

    change, _ = read_change(git, before)
    assert [file.added for file in change.files] == [1, 1, 1, None, None]


def test_a_file_that_became_a_pipe_is_told_and_the_others_too(repository: Repository, opened: Opener) -> None:
    git = opened(repository, Limits(git_timeout_s=20))
    before = snapshot(git)
    (repository.path / "a.txt").unlink()
    os.mkfifo(repository.path / "a.txt")
    repository.write("b.txt", "changed\n")
    try:
        change, _ = read_change(git, before)
    except DispatchError as error:
        pytest.fail(f"the whole change was lost: {error.message}")
    assert change.changed
    assert "b.txt" in {file.path for file in change.files}
