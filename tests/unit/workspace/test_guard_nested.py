"""The guard of repositories nested in the tree: what is put back, taken away, kept, left to the agent, and refused."""

import os
import stat
import tempfile
from pathlib import Path

import pytest

from pidispatch.values.errors import ConfigError, InfraError
from pidispatch.workspace import notes, putback, replace
from tests.unit.workspace.guardfolder import (
    Edit,
    GuardFolder,
    fifo,
    give_away,
    link_out,
    link_out_to_folder,
    modes,
    picture,
    remove,
    swaps,
    unprivileged,
    writes,
)

_LIB = "gitdir: ../.git/modules/lib/inner\n"


def _git_dir(path: Path) -> None:
    for name in ("objects", "refs", "hooks"):
        (path / name).mkdir(parents=True)
    for name in ("HEAD", "config", "hooks/pre-commit"):
        (path / name).write_text("theirs\n")


@pytest.fixture
def folder(tmp_path: Path) -> GuardFolder:
    """With a submodule, a repository of its own, and one whose git directory lies beside it in the tree."""
    folder = GuardFolder(tmp_path)
    writes("lib/.git", _LIB)(folder)
    _git_dir(folder.path / "vendor/x/.git")
    _git_dir(folder.path / "vendor/x/.git/modules/y")
    _git_dir(folder.path / "stores/s")
    writes("s/.git", "gitdir: ../stores/s\n")(folder)
    (folder.path / "l").mkdir()
    (folder.path / "l/.git").symlink_to("../stores/l")
    return folder


def _made(name: str) -> Edit:
    return lambda folder: _git_dir(folder.path / name)


def _file(folder: GuardFolder, path: Path) -> None:
    path.write_text(_LIB)


PUT_BACK: dict[str, tuple[Edit, tuple[str, ...]]] = {
    "config": (writes("vendor/x/.git/config"), ("vendor/x/.git/config",)),
    "config-link": (swaps("vendor/x/.git/config", link_out), ("vendor/x/.git/config",)),
    "config-fifo": (swaps("vendor/x/.git/config", fifo), ("vendor/x/.git/config",)),
    "hook": (writes("vendor/x/.git/hooks/post-commit"), ("vendor/x/.git/hooks/post-commit",)),
    "hook-executable": (modes("vendor/x/.git/hooks/pre-commit", 0o755), ("vendor/x/.git/hooks/pre-commit",)),
    "commondir": (writes("vendor/x/.git/commondir"), ("vendor/x/.git/commondir",)),
    "module": (writes("vendor/x/.git/modules/y/config"), ("vendor/x/.git/modules/y/config",)),
    "mode": (modes("vendor/x/.git", 0o700), ("vendor/x/.git",)),
    "file": (writes("lib/.git", "gitdir: ../evil\n"), ("lib/.git",)),
    "file-mode": (modes("lib/.git", 0o600), ("lib/.git",)),
    "file-link": (swaps("lib/.git", link_out), ("lib/.git",)),
    "file-fifo": (swaps("lib/.git", fifo), ("lib/.git",)),
    "file-directory": (
        swaps("lib/.git", lambda _folder, path: writes("lib/.git/config")(_folder)),
        ("lib/.git", "lib/.git/config"),
    ),
    "link": (swaps("l/.git", link_out_to_folder), ("l/.git",)),
    "link-file": (swaps("l/.git", _file), ("l/.git",)),
    "elsewhere": (writes("stores/s/config"), ("stores/s/config",)),
    "elsewhere-new": (writes("stores/l/config"), ("stores/l/config",)),
    "elsewhere-file": (writes("stores/l", "gitdir: ../evil\n"), ("stores/l",)),
}


def _nested(folder: GuardFolder) -> dict[str, tuple[str, int, bytes]]:
    return {
        name: seen
        for top in ("lib", "vendor", "stores", "s", "l")
        for name, seen in picture(folder.path, top).items()
        if name != "stores/l" or seen[0] != "dir"
    }


@pytest.mark.parametrize("name", PUT_BACK)
def test_what_was_there_before_is_put_back_and_named(folder: GuardFolder, name: str) -> None:
    edit, names = PUT_BACK[name]
    before, own = _nested(folder), folder.guarded()
    folder.take()
    edit(folder)
    outside = picture(folder.outside, ".")
    assert folder.put_back() == names
    assert (_nested(folder), folder.guarded()) == (before, own)
    assert picture(folder.outside, ".") == outside
    assert folder.put_back() == names


def test_nothing_is_written_where_nothing_changed(folder: GuardFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    modes("vendor/x", 0o555)(folder)
    before = _nested(folder)
    folder.take()
    for name in ("rename", "mkdir", "unlink", "chmod", "posix_spawn", "fork"):
        monkeypatch.setattr(os, name, lambda *_arguments, **_named: pytest.fail("nothing is to be done"))
    assert folder.put_back() == ()
    assert _nested(folder) == before


TAKEN: dict[str, tuple[Edit, tuple[str, ...]]] = {
    "directory": (_made("new/.git"), ("new/.git/config", "new/.git/hooks", "new/.git/hooks/pre-commit")),
    "no-git-directory": (writes("new/.git/config"), ("new/.git/config",)),
    "its-module": (
        _made("new/.git/modules/m"),
        tuple(f"new/.git/modules/m/{name}" for name in ("config", "hooks", "hooks/pre-commit")),
    ),
    "file-out": (writes("new/.git", "gitdir: /elsewhere\n"), ("new/.git",)),
    "file-in-the-tree": (writes("new/.git", "gitdir: ../evil\n"), ("new/.git",)),
    "file-to-no-module": (writes("new/.git", "gitdir: ../.git/modules/lib\n"), ("new/.git",)),
    "file-to-objects": (writes("new/.git", "gitdir: ../.git/modules/lib/inner/objects\n"), ("new/.git",)),
    "file-by-a-detour": (writes("new/.git", f"gitdir: x/../{_LIB[8:]}"), ("new/.git",)),
    "no-gitfile": (writes("new/.git", "text\n"), ("new/.git",)),
    "link": (lambda folder: _linked(folder, "../.git/modules/lib/inner"), ("new/.git",)),
    "fifo": (lambda folder: _piped(folder), ("new/.git",)),
}


def _linked(folder: GuardFolder, target: str) -> None:
    (folder.path / "new").mkdir()
    (folder.path / "new/.git").symlink_to(target)


def _piped(folder: GuardFolder) -> None:
    (folder.path / "new").mkdir()
    os.mkfifo(folder.path / "new/.git")


@pytest.mark.parametrize("name", TAKEN)
def test_what_the_agent_made_is_taken_away_as_far_as_git_could_run_it(folder: GuardFolder, name: str) -> None:
    edit, names = TAKEN[name]
    before = _nested(folder)
    folder.take()
    edit(folder)
    assert folder.put_back() == names
    assert [name for name in names if os.path.lexists(folder.path / name)] == []
    assert _nested(folder) == before
    assert folder.put_back() == names


def test_what_the_agent_made_is_kept(folder: GuardFolder) -> None:
    folder.take()
    writes("vendor/z/.git/config")(folder)
    writes("lib/.git", "gitdir: ../evil\n")(folder)
    folder.put_back()
    assert (folder.kept / "vendor/z/.git/config").read_text() == "evil\n"
    assert (folder.kept / "lib/.git.replaced").read_text() == "gitdir: ../evil\n"


@pytest.mark.parametrize("target", [_LIB, "gitdir: {}/.git/worktrees/w\n", "gitdir: ../vendor/x/.git/modules/y\n"])
def test_a_file_that_leads_to_what_is_guarded_is_left(folder: GuardFolder, target: str) -> None:
    folder.take()
    writes("new/.git", target.format(folder.path))(folder)
    assert folder.put_back() == ()
    assert (folder.path / "new/.git").read_text() == target.format(folder.path)


def test_a_submodule_may_be_moved_and_removed(folder: GuardFolder) -> None:
    folder.take()
    (folder.path / "lib").rename(folder.path / "moved")
    for name in ("s", "vendor", "l/.git"):
        remove(folder.path / name)
    writes("vendor", "a file\n")(folder)
    assert folder.put_back() == ()
    assert (folder.path / "moved/.git").read_text() == _LIB
    assert (folder.path / "vendor").read_text() == "a file\n"
    assert not os.path.lexists(folder.path / "lib")


def test_a_repository_may_become_a_submodule(folder: GuardFolder) -> None:
    """As `git submodule absorbgitdirs` does it."""
    folder.take()
    (folder.path / "vendor/x/.git").rename(folder.git / "modules/x")
    writes("vendor/x/.git", "gitdir: ../../.git/modules/x\n")(folder)
    names = folder.put_back()
    assert {name.rpartition("/")[0] for name in names} == {
        ".git/modules/x",
        ".git/modules/x/hooks",
        ".git/modules/x/modules/y",
        ".git/modules/x/modules/y/hooks",
    }
    assert (folder.path / "vendor/x/.git").is_file()


def test_a_directory_in_the_place_of_a_way_stays_the_trees(folder: GuardFolder) -> None:
    folder.take()
    (folder.path / "vendor").rename(folder.path / "other")
    (folder.path / "vendor").symlink_to("other")
    assert set(folder.put_back()) == {
        f"other/x/.git/{inner}{name}"
        for inner in ("", "modules/y/")
        for name in ("config", "hooks", "hooks/pre-commit")
    }
    assert os.readlink(folder.path / "vendor") == "other"


def test_what_leads_to_a_guarded_place_is_made_a_directory_again(folder: GuardFolder) -> None:
    folder.take()
    (folder.path / "stores").rename(folder.path / "other")
    (folder.path / "stores").symlink_to("other")
    assert folder.put_back() == ("stores",)
    assert not os.path.lexists(folder.path / "stores")
    assert (folder.kept / "stores.replaced").read_text() == "a link to other\n"


@pytest.mark.parametrize("mode", [0, 0o300, 0o400])
def test_what_is_closed_is_opened_and_searched(mode: int) -> None:
    with tempfile.TemporaryDirectory(dir="/var/tmp") as home:
        folder = GuardFolder(Path(home))
        give_away(Path(home))
        with unprivileged():
            folder.take()
            writes("closed/x/.git/config")(folder)
            modes("closed/x/.git", mode)(folder)
            modes("closed", mode)(folder)
            assert folder.put_back() == ("closed/x/.git/config",)
        assert (folder.path / "closed").stat().st_mode & stat.S_IRWXU == stat.S_IRWXU


def test_a_crash_after_a_file_was_taken_away_is_made_good(folder: GuardFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    folder.take()
    remove(folder.path / "lib/.git")
    _git_dir(folder.path / "lib/.git")
    real = replace.move_away

    def dies(handle: int, name: str, aside: int) -> None:
        real(handle, name, aside)
        raise KeyboardInterrupt

    with monkeypatch.context() as dying:
        dying.setattr(putback, "move_away", dies)
        with pytest.raises(KeyboardInterrupt):
            folder.put_back()
    assert not os.path.lexists(folder.path / "lib/.git")
    assert "lib/.git" in folder.put_back()
    assert (folder.path / "lib/.git").read_text() == _LIB
    # The owner's own doing later is none of ours.
    remove(folder.path / "lib")
    assert "lib/.git" in folder.put_back()
    assert not os.path.lexists(folder.path / "lib")


def test_what_cannot_be_searched_whole_is_said_and_the_rest_put_back(
    folder: GuardFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, own = _nested(folder), folder.guarded()
    folder.take()
    for name in ("vendor/x/.git/config", "lib/.git", ".git/config"):
        writes(name)(folder)
    monkeypatch.setattr(putback, "MAX_NAMES_AFTER", 1)
    with pytest.raises(InfraError) as caught:
        folder.put_back()
    assert caught.value.cause == "git-not-put-back"
    assert "cannot be searched whole" in caught.value.message
    assert (_nested(folder), folder.guarded()) == (before, own)


def test_a_folder_that_could_not_be_searched_is_refused(folder: GuardFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notes, "MAX_NAMES", 1)
    with pytest.raises(ConfigError) as caught:
        folder.take()
    assert caught.value.cause == "git-unusable"
    assert "more than 1 names" in caught.value.message


@pytest.mark.parametrize("target", ["../sub/../stores/s", "../turn/s", "..", "."])
def test_a_file_that_could_be_turned_elsewhere_is_refused(folder: GuardFolder, target: str) -> None:
    (folder.path / "turn").symlink_to("stores")
    writes("s/.git", f"gitdir: {target}\n")(folder)
    if target == ".":
        folder.take()
        writes("s/config")(folder)
        assert folder.put_back() == ("s/config",)
        return
    with pytest.raises(ConfigError) as caught:
        folder.take()
    assert caught.value.cause == "git-unusable"
    assert "'s/.git'" in caught.value.message


def test_second_names_of_the_folders_own_are_no_hindrance(folder: GuardFolder) -> None:
    writes("docs/.git", "gitdir: ../.git\n")(folder)
    (folder.path / "pages").mkdir()
    (folder.path / "pages/.git").symlink_to("../.git")
    folder.take()
    writes(".git/config")(folder)
    assert folder.put_back() == (".git/config",)


def test_what_was_a_pipe_before_stays_one(folder: GuardFolder) -> None:
    _piped(folder)
    folder.take()
    assert folder.put_back() == ()
    writes("other/.git/config")(folder)
    swaps("new/.git", link_out)(folder)
    assert folder.put_back() == ("new/.git", "other/.git/config")
    assert not os.path.lexists(folder.path / "new/.git")
