"""The search for git directories nested in a folder's tree, and where a file or a link of that name leads."""

import os
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from pidispatch.workspace.dirfd import remove_tree
from pidispatch.workspace.guarded import Entry
from pidispatch.workspace.nested import Nested, leads_to, search, straight
from tests.unit.workspace.guardfolder import give_away, unprivileged

_NAMES = 10_000


@pytest.fixture
def folder() -> Iterator[Path]:
    """Where an ordinary account may work, and where no depth keeps it from being removed."""
    path = Path(tempfile.mkdtemp(dir="/var/tmp"))
    yield path
    parent = os.open(path.parent, os.O_RDONLY)
    remove_tree(parent, path.name, 60)
    os.close(parent)


def _search(folder: Path, names: int = _NAMES, *, unlock: bool = False) -> Nested:
    top = os.open(folder, os.O_RDONLY)
    try:
        found = search(top, names, unlock=unlock)
    finally:
        os.close(top)
    return Nested(sorted(found.dirs), sorted(found.others), found.partial)


def _deepen(folder: Path, levels: int) -> int:
    here = os.open(folder, os.O_RDONLY)
    for _ in range(levels):
        os.mkdir("d", dir_fd=here)
        inner = os.open("d", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = inner
    return here


def test_every_git_but_the_folders_own_is_found(folder: Path) -> None:
    for name in (".git/objects/x/.git", "a/b/.git/refs/c/.git", "a/.github", "d/.gitx/.git"):
        (folder / name).mkdir(parents=True)
    for name in (".git/.git", "a/.git"):
        (folder / name).write_text("gitdir: x\n")
    (folder / "a/l").mkdir()
    (folder / "a/l/.git").symlink_to("../b/.git")
    (folder / "d/p").mkdir()
    os.mkfifo(folder / "d/p/.git")
    assert _search(folder) == Nested(
        [".git/objects/x/.git", "a/b/.git", "a/b/.git/refs/c/.git", "d/.gitx/.git"],
        [".git/.git", "a/.git", "a/l/.git", "d/p/.git"],
    )


def test_links_are_not_followed(folder: Path) -> None:
    (folder / "in/there/.git").mkdir(parents=True)
    (folder / "in/link").symlink_to("there")
    (folder / "in/loop").symlink_to("..")
    assert _search(folder / "in") == Nested(["there/.git"])


def test_it_ends_with_the_names_it_may_look_at(folder: Path) -> None:
    for number in range(20):
        (folder / f"{number}/{number}").mkdir(parents=True)
    assert not _search(folder, 40).partial
    assert _search(folder, 39).partial


def test_many_nested_repositories_are_too_much_sooner_than_many_names(folder: Path) -> None:
    for number in range(20):
        (folder / f"{number}/.git").mkdir(parents=True)
    assert not _search(folder, 2100).partial
    assert _search(folder, 2000).partial


@pytest.mark.parametrize("levels", [99, 100, 101, 350, 1900])
def test_any_depth_is_searched_that_git_can_open(folder: Path, levels: int) -> None:
    here = _deepen(folder, levels)
    os.mkdir(".git", dir_fd=here)
    os.close(here)
    assert _search(folder, 300_000) == Nested(["d/" * levels + ".git"])


def test_deeper_than_git_can_open_is_not_searched(folder: Path) -> None:
    os.close(_deepen(folder, 2500))
    assert _search(folder) == Nested(partial=True)
    assert _search(folder, 1_000_000) == Nested()


@pytest.mark.parametrize("mode", [0, 0o200, 0o300, 0o400, 0o600])
def test_what_is_closed_is_opened_only_where_it_may_be(folder: Path, mode: int) -> None:
    (folder / "closed/x/.git").mkdir(parents=True)
    give_away(folder)
    with unprivileged():
        (folder / "closed").chmod(mode)
        assert _search(folder) == Nested()
        assert stat.S_IMODE((folder / "closed").stat().st_mode) == mode
        assert _search(folder, unlock=True) == Nested(["closed/x/.git"])


def test_what_can_be_searched_keeps_its_mode(folder: Path) -> None:
    (folder / "kept/x/.git").mkdir(parents=True)
    give_away(folder)
    with unprivileged():
        (folder / "kept").chmod(0o555)
        assert _search(folder, unlock=True) == Nested(["kept/x/.git"])
        assert stat.S_IMODE((folder / "kept").stat().st_mode) == 0o555


def test_another_accounts_directory_is_left_out(folder: Path) -> None:
    (folder / "mine").mkdir()
    give_away(folder)
    (folder / "theirs").mkdir(mode=0o700)
    with unprivileged():
        assert _search(folder, unlock=True) == Nested()


def test_what_goes_away_meanwhile_is_left_out(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "gone").mkdir()
    (folder / "there/.git").mkdir(parents=True)
    real = os.open

    def opening(name: str, flags: int, *, dir_fd: int | None = None) -> int:
        if name == "gone":
            raise FileNotFoundError(name)
        return real(name, flags, dir_fd=dir_fd)

    with monkeypatch.context() as meanwhile:
        meanwhile.setattr(os, "open", opening)
        found = _search(folder)
    assert found == Nested(["there/.git"])


@pytest.mark.parametrize(
    ("kind", "content", "target"),
    [
        ("file", b"gitdir: ../x\n", "../x"),
        ("file", b"gitdir: x\r\n\n", "x"),
        ("file", b"gitdir: x\ny", "x\ny"),
        ("file", b"gitdir:x", None),
        ("file", b"gitdir: \n", None),
        ("file", b"gitdir: x\0y", None),
        ("file", None, None),
        ("link", b"../x", "../x"),
        ("other", None, None),
    ],
)
def test_where_it_leads(kind: str, content: bytes | None, target: str | None) -> None:
    assert leads_to(Entry(kind, 0o644, 0, 0, content)) == target


@pytest.mark.parametrize(
    ("target", "end"),
    [
        ("../../.git/modules/x", ".git/modules/x"),
        ("/home/folder/.git/modules/x/", ".git/modules/x"),
        ("x", "a/b/x"),
        ("./x/.", "a/b/x"),
        ("../../../folder/x", "x"),
        ("../../..", None),
        ("../..", None),
        ("../../../x", None),
        ("/elsewhere", None),
        ("/home/folder/../folder/x", None),
        ("x/../../../.git/modules/x", None),
    ],
)
def test_a_straight_way_stays_in_the_folder(target: str, end: str | None) -> None:
    assert straight(Path("/home/folder"), "a/b/.git", target) == end
