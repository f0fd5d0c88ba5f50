"""The guard of the git directory: further git directories in it, and `.git` itself gone, moved or replaced."""

import os
from pathlib import Path

import pytest

from pidispatch.values.errors import InfraError
from pidispatch.workspace import guarded, putback
from tests.unit.workspace.guardfolder import GuardFolder, remove, writes


@pytest.fixture
def folder(tmp_path: Path) -> GuardFolder:
    return GuardFolder(tmp_path)


def _new_git_dir(path: Path) -> None:
    for name in ("objects", "refs", "hooks"):
        (path / name).mkdir(parents=True)
    for name in ("HEAD", "config", "hooks/post-checkout"):
        (path / name).write_text("evil\n")


@pytest.mark.parametrize("place", [".git/modules/new", ".git/modules/lib/inner/modules/a/b", ".git/worktrees/w2"])
def test_a_git_directory_that_the_agent_made_runs_nothing(folder: GuardFolder, place: str) -> None:
    before = folder.guarded()
    folder.take()
    _new_git_dir(folder.path / place)
    assert folder.put_back() == (f"{place}/config", f"{place}/hooks", f"{place}/hooks/post-checkout")
    assert sorted(os.listdir(folder.path / place)) == ["HEAD", "objects", "refs"]
    assert folder.guarded() == before


@pytest.mark.parametrize("place", ["modules/new", "modules", "modules/lib/inner", "worktrees/w", "modules/lib"])
def test_a_link_to_a_git_directory_elsewhere_is_taken_away(folder: GuardFolder, place: str) -> None:
    folder.take()
    _new_git_dir(folder.path / "evil")
    remove(folder.git / place)
    (folder.git / place).symlink_to(folder.path / "evil")
    assert f".git/{place}" in folder.put_back()
    assert not os.path.lexists(folder.git / place)
    assert (folder.path / "evil/config").read_text() == "evil\n"


def test_a_submodule_that_the_agent_removed_is_not_made_anew(folder: GuardFolder) -> None:
    folder.take()
    remove(folder.git / "modules/lib")
    remove(folder.git / "worktrees/w")
    (folder.git / "worktrees/w").write_text("a file")
    assert folder.put_back() == (".git/worktrees/w",)
    assert sorted(os.listdir(folder.git / "modules")) == []
    assert not os.path.lexists(folder.git / "worktrees/w")


def test_more_git_directories_than_can_be_looked_through_are_said(
    folder: GuardFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = folder.guarded()
    folder.take()
    writes(".git/config")(folder)
    monkeypatch.setattr(guarded, "MAX_ENTRIES", 20)
    for number in range(30):
        (folder.git / f"modules/{number}").mkdir()
    with pytest.raises(InfraError) as caught:
        folder.put_back()
    assert caught.value.cause == "git-not-put-back"
    assert ".git/modules" in caught.value.message
    assert folder.guarded() == before


def test_a_directory_too_deep_for_a_submodule_is_taken_away(
    folder: GuardFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder.take()
    monkeypatch.setattr(guarded, "MAX_DEPTH", 4)
    (folder.git / "modules/1/2/3/4").mkdir(parents=True)
    assert folder.put_back() == (".git/modules/1/2/3/4",)
    assert os.listdir(folder.git / "modules/1/2/3") == []


@pytest.mark.parametrize("make", [None, "file", "link", "fifo"])
def test_a_git_directory_that_was_moved_is_brought_back(folder: GuardFolder, make: str | None) -> None:
    before = folder.guarded()
    folder.take()
    moved = folder.path / "moved"
    folder.git.rename(moved)
    (moved / "config").write_text("evil\n")
    if make == "file":
        folder.git.write_text("gitdir: moved\n")
    elif make == "link":
        folder.git.symlink_to("moved")
    elif make == "fifo":
        os.mkfifo(folder.git)
    tree = folder.tree()
    assert folder.put_back() == (".git", ".git/config")
    assert (folder.guarded(), folder.tree()) == (before, tree)
    assert not moved.exists()


def test_another_git_directory_in_its_place_is_guarded_alike(folder: GuardFolder) -> None:
    before = folder.guarded()
    folder.take()
    folder.git.rename(folder.path / "moved")
    _new_git_dir(folder.git)
    names = folder.put_back()
    assert {".git/config", ".git/hooks/post-checkout", ".git/info/attributes"} <= set(names)
    main = {name: seen for name, seen in before.items() if name.split("/")[1] not in ("modules", "worktrees")}
    assert folder.guarded() == main


@pytest.mark.parametrize("decoy", [False, True])
def test_a_git_directory_that_is_gone_is_a_fault(
    folder: GuardFolder, decoy: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder.take()
    if decoy:
        # A directory that was given the number of the one that is gone.
        folder.git.rename(folder.path / "src")
        (folder.path / "src/HEAD").unlink()
    else:
        remove(folder.git)
    folder.git.write_text("gitdir: /nowhere\n")
    tree = folder.tree()
    with pytest.raises(InfraError) as caught:
        folder.put_back()
    assert caught.value.cause == "git-not-put-back"
    assert "gone" in caught.value.message
    assert (folder.kept / ".git.replaced").read_text() == "gitdir: /nowhere\n"
    assert folder.tree() == tree
    with pytest.raises(InfraError):
        folder.put_back()


def test_a_folder_that_is_gone_is_a_fault(folder: GuardFolder) -> None:
    folder.take()
    remove(folder.path)
    with pytest.raises(InfraError) as caught:
        folder.put_back()
    assert caught.value.cause == "git-not-put-back"
    assert str(folder.home) not in caught.value.message


def test_a_git_directory_that_cannot_be_replaced_is_a_fault(
    folder: GuardFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder.take()
    folder.git.rename(folder.path / "moved")
    folder.git.touch()

    def unlink(*_arguments: object, **_named: object) -> None:
        raise PermissionError(1, "not permitted")

    monkeypatch.setattr(os, "unlink", unlink)
    with pytest.raises(InfraError) as caught:
        folder.put_back()
    assert caught.value.cause == "git-not-put-back"
    assert "not permitted" in caught.value.message


def test_what_was_noted_is_put_back_also_where_nothing_else_can_be_looked_for(
    folder: GuardFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = folder.guarded()
    folder.take()
    for name in ("config", "modules/lib/inner/config"):
        writes(f".git/{name}")(folder)

    def fail(*_arguments: object, **_named: object) -> None:
        raise PermissionError

    monkeypatch.setattr(putback, "git_dirs", fail)
    with pytest.raises(InfraError) as caught:
        folder.put_back()
    assert "'.git/modules'" in caught.value.message
    assert folder.guarded() == before
