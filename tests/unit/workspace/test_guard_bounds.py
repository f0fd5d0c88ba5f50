"""The guard of the git directory: what an agent leaves there is read, listed and kept within bounds for all of it."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from pidispatch.workspace import dirfd, guarded, keep, putback
from pidispatch.workspace.guarded import Budget, Entry
from pidispatch.workspace.keep import Keeper
from tests.unit.workspace.guardfolder import GuardFolder, huge, picture, swaps, writes

_LIB = "gitdir: ../.git/modules/lib/inner\n"
_PLACES = ("config", "config.worktree", "commondir", "gitdir", "info/attributes", "hooks/x", "remotes/x", "branches/x")
_MIB = 1024 * 1024


@pytest.fixture
def folder(tmp_path: Path) -> GuardFolder:
    """With a submodule's file, and noted."""
    folder = GuardFolder(tmp_path)
    writes("lib/.git", _LIB)(folder)
    folder.take()
    return folder


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How much was read of each file that was opened to be compared or kept."""
    sizes: list[int] = []
    real = dirfd.read_file

    def read_file(parent: int, name: str, limit: int) -> bytes | None:
        content = real(parent, name, limit)
        sizes.append(len(content or b""))
        return content

    monkeypatch.setattr(guarded, "read_file", read_file)
    return sizes


def _allows(monkeypatch: pytest.MonkeyPatch, budget: Callable[[], Budget]) -> None:
    monkeypatch.setattr(Keeper, "budget", lambda _keeper: budget())


def _sparse(path: Path, size: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        file.truncate(size)


def _kept(folder: GuardFolder) -> dict[str, bytes]:
    return {name: seen[2] for name, seen in picture(folder.kept, ".").items() if seen[0] == "file"}


# Content.


def test_what_is_too_large_to_be_kept_is_not_read(folder: GuardFolder, read: list[int]) -> None:
    before = folder.guarded()
    assert folder.put_back() == ()
    alone = sum(read)
    read.clear()
    made = [f"d{number}/.git/{place}" for number in range(20) for place in _PLACES]
    for name in made:
        _sparse(folder.path / name, 64 * _MIB)
    assert folder.put_back()[-1] == f"and {len(made) + 3 * 20 - putback.NAMED} more"
    assert sum(read) == alone
    assert not [name for name in made if os.path.lexists(folder.path / name)]
    assert folder.guarded() == before
    assert _kept(folder) == {}


def test_what_is_read_and_kept_is_bounded_for_all_places_together(
    folder: GuardFolder, read: list[int], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(keep, "KEPT_BYTES", 3 * _MIB)
    assert folder.put_back() == ()
    alone = sum(read)
    read.clear()
    made = [f"d{number}/.git/{place}" for number in range(3) for place in _PLACES]
    for name in made:
        _sparse(folder.path / name, _MIB)
    assert set(made) <= set(folder.put_back())
    assert sum(read) == alone + 2 * 3 * _MIB
    assert not [name for name in made if os.path.lexists(folder.path / name)]
    kept = [path for path in folder.kept.rglob("*") if path.is_file()]
    assert [path.stat().st_size for path in kept] == [_MIB] * 3
    assert capsys.readouterr().out.count("guard_not_kept") == 1


def test_what_was_noted_is_told_by_its_size_first(folder: GuardFolder, read: list[int]) -> None:
    before = folder.guarded()
    assert folder.put_back() == ()
    alone = sum(read)
    read.clear()
    size = (folder.git / "config").stat().st_size
    swaps(".git/config", huge)(folder)
    assert folder.put_back() == (".git/config",)
    assert sum(read) == alone - size
    assert folder.guarded() == before


def test_what_was_noted_is_compared_also_where_nothing_more_may_be_read(
    folder: GuardFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = folder.guarded()
    changed = (folder.git / "hooks/pre-commit").read_text().upper()
    (folder.git / "hooks/pre-commit").write_text(changed)
    writes(".git/config")(folder)
    _allows(monkeypatch, lambda: Budget(entries=0, bytes=0))
    assert folder.put_back() == (".git/config", ".git/hooks/pre-commit")
    assert folder.guarded() == before
    assert _kept(folder) == {"./.git/hooks/pre-commit": changed.encode()}


def test_a_large_file_of_the_owners_is_compared_whole(tmp_path: Path) -> None:
    folder = GuardFolder(tmp_path)
    large = folder.git / "hooks/tool"
    large.write_bytes(b"x" * (2 * _MIB))
    folder.take()
    assert folder.put_back() == ()
    with large.open("r+b") as file:
        file.seek(2 * _MIB - 1)
        file.write(b"y")
    assert folder.put_back() == (".git/hooks/tool",)
    assert large.read_bytes() == b"x" * (2 * _MIB)
    assert _kept(folder) == {}


@pytest.mark.parametrize("much", [True, False])
def test_a_file_that_is_not_read_leads_nowhere(
    folder: GuardFolder, much: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    writes("new/.git", _LIB + "\n" * (_MIB if much else 0))(folder)
    if not much:
        _allows(monkeypatch, lambda: Budget(bytes=0))
    assert folder.put_back() == ("new/.git",)
    assert not os.path.lexists(folder.path / "new/.git")
    assert (folder.path / "lib/.git").read_text() == _LIB


def test_what_was_not_read_is_like_nothing_else() -> None:
    unreadable = Entry("file", 0o600, os.getuid(), os.getgid())
    assert unreadable.same_as(unreadable)
    assert not Entry("file", 0o600, os.getuid(), os.getgid(), unread=True).same_as(unreadable)


# Names.


def test_what_is_listed_is_bounded_for_all_places_together(
    folder: GuardFolder, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _allows(monkeypatch, lambda: Budget(entries=10))
    before = folder.guarded()
    for number in range(5):
        for hook in range(20):
            (folder.path / f"d{number}/.git/hooks/{hook}/deep").mkdir(parents=True)
    (folder.git / "hooks/evil").mkdir()
    names = folder.put_back()
    # Each of the six places, ten names below them, and for each place one name that tells that there are more.
    assert len([name for name in names if name not in before]) <= 5 + 10 + 6
    assert ".git/hooks/evil" in names
    assert [os.listdir(folder.path / f"d{number}/.git") for number in range(5)] == [[]] * 5
    assert folder.guarded() == before
    assert "bounds" in capsys.readouterr().out
    assert folder.put_back() == names


def test_a_new_name_in_a_directory_that_was_empty_is_seen_where_nothing_more_may_be_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = GuardFolder(tmp_path)
    (folder.git / "remotes").mkdir()
    folder.take()
    _allows(monkeypatch, lambda: Budget(entries=0, bytes=0))
    assert folder.put_back() == ()
    for name in ("one", "two"):
        writes(f".git/remotes/{name}")(folder)
    assert len(folder.put_back()) == 1
    assert os.listdir(folder.git / "remotes") == []


# Versions.


def _crashes(folder: GuardFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    """What differs is kept, and then the process is gone."""

    def dies(*_arguments: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as dying:
        dying.setattr(putback, "move_away", dies)
        with pytest.raises(KeyboardInterrupt):
            folder.put_back()


def test_nothing_that_was_kept_is_overwritten_after_a_crash(
    folder: GuardFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = folder.guarded()
    writes(".git/config", "the agent's\n")(folder)
    _crashes(folder, monkeypatch)
    writes(".git/config", "the owner's\n")(folder)
    _crashes(folder, monkeypatch)
    writes(".git/config", "the owner's, later\n")(folder)
    assert folder.put_back() == (".git/config",)
    assert folder.guarded() == before
    assert _kept(folder) == {
        "./.git/config": b"the agent's\n",
        "./.git/config.2": b"the owner's\n",
        "./.git/config.3": b"the owner's, later\n",
    }


def test_what_is_kept_already_is_kept_once(folder: GuardFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    writes(".git/config")(folder)
    _crashes(folder, monkeypatch)
    _crashes(folder, monkeypatch)
    folder.put_back()
    assert _kept(folder) == {"./.git/config": b"evil\n"}


def test_versions_are_bounded_and_all_is_put_back(
    folder: GuardFolder, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(keep, "KEPT_VERSIONS", 2)
    before = folder.guarded()
    for text in ("one", "two", "three"):
        writes(".git/config", text)(folder)
        folder.put_back()
    assert folder.guarded() == before
    assert _kept(folder) == {"./.git/config": b"one", "./.git/config.2": b"two"}
    assert "not-written" in capsys.readouterr().out


def test_names_that_would_meet_where_they_are_kept_are_told_apart(folder: GuardFolder) -> None:
    for name in ("HEAD", "HEAD.replaced", "x", "x.2"):
        writes(f".git/hooks/{name}", name)(folder)
    folder.put_back()
    assert sorted(_kept(folder).values()) == [b"HEAD", b"HEAD.replaced", b"x", b"x.2"]
    assert (folder.kept / ".git/hooks/HEAD.replaced.2").read_text() == "HEAD.replaced"
