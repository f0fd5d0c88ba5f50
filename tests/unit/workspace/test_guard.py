"""The guard of the git directory: what is noted, what is put back, what is kept, and what is refused."""

import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from pidispatch.values.errors import ConfigError, InfraError
from pidispatch.workspace import guarded, keep, notes, putback
from pidispatch.workspace.folder import open_folder
from pidispatch.workspace.guard import put_back, take_notes
from tests.unit.workspace.guardfolder import (
    Edit,
    GuardFolder,
    fifo,
    give_away,
    hard_link,
    huge,
    link_out,
    link_out_to_folder,
    modes,
    nothing,
    picture,
    remove,
    swaps,
    writes,
)


@pytest.fixture
def folder(tmp_path: Path) -> GuardFolder:
    return GuardFolder(tmp_path)


EDITS: dict[str, tuple[Edit, tuple[str, ...]]] = {
    "config": (writes(".git/config"), (".git/config",)),
    "config-removed": (swaps(".git/config", nothing), (".git/config",)),
    "config-mode": (modes(".git/config", 0o666), (".git/config",)),
    "config-link": (swaps(".git/config", link_out), (".git/config",)),
    "config-fifo": (swaps(".git/config", fifo), (".git/config",)),
    "config-huge": (swaps(".git/config", huge), (".git/config",)),
    "config-hard-link": (swaps(".git/config", hard_link), (".git/config",)),
    "config-directory": (writes(".git/config.worktree/x"), (".git/config.worktree", ".git/config.worktree/x")),
    "worktree-config": (writes(".git/config.worktree"), (".git/config.worktree",)),
    "commondir": (writes(".git/commondir", "../evil"), (".git/commondir",)),
    "attributes": (writes(".git/info/attributes"), (".git/info/attributes",)),
    "info-link": (swaps(".git/info", link_out_to_folder), (".git/info", ".git/info/attributes")),
    "info-gone": (swaps(".git/info", nothing), (".git/info", ".git/info/attributes")),
    "hook": (writes(".git/hooks/pre-commit"), (".git/hooks/pre-commit",)),
    "hook-executable": (modes(".git/hooks/pre-push.sample", 0o755), (".git/hooks/pre-push.sample",)),
    "hook-new": (writes(".git/hooks/post-checkout"), (".git/hooks/post-checkout",)),
    "hook-link": (swaps(".git/hooks/linked", link_out), (".git/hooks/linked",)),
    "hooks-mode": (modes(".git/hooks", 0o777), (".git/hooks",)),
    "hook-deep": (writes(".git/hooks/lib/common"), (".git/hooks/lib/common",)),
    "legacy-remote": (writes(".git/remotes/origin"), (".git/remotes", ".git/remotes/origin")),
    "git-mode": (modes(".git", 0o777), (".git",)),
    "module-config": (writes(".git/modules/lib/inner/config"), (".git/modules/lib/inner/config",)),
    "module-hook": (
        writes(".git/modules/lib/inner/hooks/post-checkout"),
        (".git/modules/lib/inner/hooks/post-checkout",),
    ),
    "worktree-commondir": (writes(".git/worktrees/w/commondir"), (".git/worktrees/w/commondir",)),
    "worktree-gitdir": (writes(".git/worktrees/w/gitdir"), (".git/worktrees/w/gitdir",)),
}


@pytest.mark.parametrize("name", EDITS)
def test_what_the_agent_changed_is_put_back_and_named(folder: GuardFolder, name: str) -> None:
    edit, names = EDITS[name]
    before, mode = folder.guarded(), folder.git.stat().st_mode
    folder.take()
    edit(folder)
    tree = folder.tree()
    assert folder.guarded() != before or folder.git.stat().st_mode != mode
    assert folder.put_back() == names
    assert (folder.guarded(), folder.git.stat().st_mode) == (before, mode)
    assert folder.tree() == tree
    assert not (folder.git / putback.ASIDE).exists()
    assert folder.put_back() == names


def test_nothing_is_written_and_no_program_started_where_nothing_changed(
    folder: GuardFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = folder.guarded()
    folder.take()
    for name in ("rename", "mkdir", "unlink", "chmod", "posix_spawn", "fork"):
        monkeypatch.setattr(os, name, lambda *_arguments, **_named: pytest.fail("nothing is to be done"))
    assert folder.put_back() == ()
    assert folder.guarded() == before
    assert not folder.kept.exists()


def test_commits_branches_and_ignored_names_stay_the_agents(folder: GuardFolder) -> None:
    folder.take()
    for name in (".git/refs/heads/new", ".git/objects/ab/cd", ".git/index", ".git/info/exclude"):
        writes(name, "the agent's\n")(folder)
    writes(".git/HEAD", "ref: refs/heads/new\n")(folder)
    assert folder.put_back() == ()
    assert (folder.git / "HEAD").read_text() == "ref: refs/heads/new\n"
    assert (folder.git / "refs/heads/new").read_text() == "the agent's\n"
    assert (folder.git / "info/exclude").read_text() == "the agent's\n"


def test_the_agents_versions_are_kept_as_plain_files(folder: GuardFolder) -> None:
    folder.take()
    writes(".git/config", "[alias]\n\tst = !evil\n")(folder)
    writes(".git/hooks/post-checkout", "#!/bin/sh\nevil\n")(folder)
    modes(".git/hooks/post-checkout", 0o4777)(folder)
    swaps(".git/info", link_out_to_folder)(folder)
    swaps(".git/hooks/pre-commit", fifo)(folder)
    folder.put_back()
    assert picture(folder.kept, ".git") == {
        ".git": ("dir", 0o700, b""),
        ".git/config": ("file", 0o600, b"[alias]\n\tst = !evil\n"),
        ".git/hooks": ("dir", 0o700, b""),
        ".git/hooks/post-checkout": ("file", 0o600, b"#!/bin/sh\nevil\n"),
        ".git/hooks/pre-commit": ("file", 0o600, b"neither a file nor a directory nor a link\n"),
        ".git/info.replaced": ("file", 0o600, b"a link to " + os.fsencode(folder.outside) + b"\n"),
    }


def test_what_is_kept_is_bounded_and_named_all_the_same(
    folder: GuardFolder, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(keep, "KEPT_FILE_BYTES", 10)
    monkeypatch.setattr(keep, "KEPT_FILES", 3)
    folder.take()
    for number in range(putback.NAMED + 20):
        writes(f".git/hooks/hook-{number:03}", "x" * (11 if number == 0 else 1))(folder)
    names = folder.put_back()
    assert len(names) == putback.NAMED + 1
    assert names[0] == ".git/hooks/hook-000"
    assert names[-1] == "and 20 more"
    assert sorted(os.listdir(folder.kept / ".git/hooks")) == ["hook-001", "hook-002", "hook-003"]
    assert capsys.readouterr().out.count("guard_not_kept") == 1


def test_what_cannot_be_kept_is_put_back_all_the_same(folder: GuardFolder, capsys: pytest.CaptureFixture[str]) -> None:
    folder.take()
    before = folder.guarded()
    folder.kept.write_text("a file where a directory should be")
    writes(".git/config")(folder)
    assert folder.put_back() == (".git/config",)
    assert folder.guarded() == before
    assert "not-written" in capsys.readouterr().out


def test_a_huge_tree_of_hooks_is_taken_away(folder: GuardFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    folder.take()
    before = folder.guarded()
    monkeypatch.setattr(guarded, "MAX_DEPTH", 5)
    here = os.open(folder.git / "hooks", os.O_RDONLY)
    for _ in range(1500):
        os.mkdir("nest-of-the-agents", dir_fd=here)
        inner = os.open("nest-of-the-agents", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = inner
    os.close(here)
    assert folder.put_back()[0] == ".git/hooks/nest-of-the-agents"
    assert folder.guarded() == before
    assert not (folder.git / putback.ASIDE).exists()


def test_what_takes_too_long_to_remove_is_left_where_nothing_runs_it(
    folder: GuardFolder, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    before = folder.guarded()
    folder.take()
    writes(".git/hooks/many/x")(folder)
    monkeypatch.setattr(putback, "_REMOVE_S", -1.0)
    assert ".git/hooks/many" in folder.put_back()
    assert folder.guarded() == before
    assert "guard_left" in capsys.readouterr().out
    monkeypatch.undo()
    folder.put_back()
    assert not (folder.git / putback.ASIDE).exists()


@pytest.mark.parametrize("make", [link_out_to_folder, fifo, lambda _folder, path: (path / "x/y").mkdir(parents=True)])
def test_what_the_agent_left_at_our_own_name_does_no_harm(
    folder: GuardFolder, make: Callable[[GuardFolder, Path], None]
) -> None:
    before = folder.guarded()
    folder.take()
    make(folder, folder.git / putback.ASIDE)
    writes(".git/config")(folder)
    tree = folder.tree()
    assert folder.put_back() == (".git/config",)
    assert (folder.guarded(), folder.tree()) == (before, tree)
    assert not (folder.git / putback.ASIDE).exists()


def test_where_something_cannot_be_put_back_the_rest_is(folder: GuardFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    before = folder.guarded()
    folder.take()
    for name in ("config", "hooks/pre-commit", "info/attributes"):
        writes(f".git/{name}")(folder)
    real = os.symlink

    def symlink(*arguments: object, **named: object) -> None:
        raise PermissionError("no")

    monkeypatch.setattr(os, "symlink", symlink)
    with pytest.raises(InfraError) as caught:
        folder.put_back()
    assert "'.git/hooks'" in caught.value.message
    assert {name for name, seen in folder.guarded().items() if before[name] != seen} == {".git/hooks/pre-commit"}
    monkeypatch.setattr(os, "symlink", real)
    assert folder.put_back() == (".git/config", ".git/info/attributes", ".git/hooks/pre-commit")
    assert folder.guarded() == before


# Notes.


def test_root_gives_what_it_puts_back_to_its_owner(folder: GuardFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    folder.take()
    writes(".git/hooks/pre-commit")(folder)
    given: list[tuple[int, int]] = []
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(os, "chown", lambda name, uid, gid, **named: given.append((uid, gid)))
    folder.put_back()
    hooks = [name for name in folder.guarded() if name.startswith(".git/hooks")]
    assert given == [(os.getuid(), os.getgid())] * len(hooks)


def test_root_restores_another_owner(folder: GuardFolder) -> None:
    give_away(folder.home)
    folder.take()
    os.chown(folder.git / "info/attributes", 0, 0)
    os.chown(folder.git / "hooks/linked", 0, 0, follow_symlinks=False)
    remove(folder.git / "config")
    assert folder.put_back() == (".git/config", ".git/info/attributes", ".git/hooks/linked")
    names = ("config", "info/attributes", "hooks", "hooks/linked", "hooks/lib/common")
    assert {(folder.git / name).lstat().st_uid for name in names} == {folder.git.stat().st_uid} != {0}


def test_without_notes_there_is_nothing_to_put_back(folder: GuardFolder) -> None:
    writes(".git/config")(folder)
    assert folder.put_back() == ()
    folder.notes.mkdir()
    (folder.notes / ".tmp-abcdefgh").write_text('{"inode"')
    assert folder.put_back() == ()


@pytest.mark.parametrize("text", ["", "{}", "[]", "null", '{"inode": 1, "git_dirs": [], "ways": [], "roots": []}'])
def test_damaged_notes_are_a_fault(folder: GuardFolder, text: str) -> None:
    folder.take()
    (folder.notes / "notes.json").write_text(text)
    with pytest.raises(InfraError) as caught:
        folder.put_back()
    assert caught.value.cause == "git-not-put-back"


def test_the_notes_are_the_hosts_alone(folder: GuardFolder) -> None:
    folder.take()
    assert stat.S_IMODE(folder.notes.stat().st_mode) == 0o700
    with pytest.raises(InfraError) as caught:
        folder.take()
    assert caught.value.cause == "job-dir"


def test_names_that_are_no_text_are_noted(folder: GuardFolder) -> None:
    name = os.fsdecode(b"\xff\n")
    writes(f".git/hooks/{name}", "mine")(folder)
    folder.take()
    writes(f".git/hooks/{name}", "evil")(folder)
    assert folder.put_back() == (f".git/hooks/{name}",)
    assert (folder.git / "hooks" / name).read_text() == "mine"


def test_a_name_cut_by_a_crash_is_left_out(folder: GuardFolder) -> None:
    folder.take()
    (folder.notes / "changed").write_text('".git/config"\n".git/ho')
    assert folder.put_back() == (".git/config",)


# What is refused.


@pytest.mark.parametrize("place", ["modules", "worktrees", "modules/lib", "info", "info-file", "hooks/fifo", "git"])
def test_what_could_not_be_put_back_is_refused(folder: GuardFolder, place: str) -> None:
    if place == "git":
        folder.git.rename(folder.path / "moved")
        folder.git.symlink_to("moved")
    elif place == "hooks/fifo":
        os.mkfifo(folder.git / place)
    elif place == "info-file":
        remove(folder.git / "info")
        (folder.git / "info").touch()
    else:
        (folder.git / place).rename(folder.path / "elsewhere")
        (folder.git / place).symlink_to(folder.path / "elsewhere")
    with pytest.raises(ConfigError) as caught:
        folder.take()
    assert caught.value.cause == "git-unusable"
    assert repr(".git") in caught.value.message or f".git/{place.split('-')[0]}" in caught.value.message
    assert not folder.notes.exists()


@pytest.mark.parametrize(("bound", "value"), [("entries", 3), ("bytes", 30)])
def test_more_than_can_be_guarded_is_refused(
    folder: GuardFolder, bound: str, value: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(notes, "Budget", lambda **given: guarded.Budget(**{bound: value, **given}))
    with pytest.raises(ConfigError) as caught:
        folder.take()
    assert caught.value.cause == "git-unusable"
    assert "'.git/" in caught.value.message
    assert "20000 files, 64 MiB or 32 levels" in caught.value.message


@pytest.mark.parametrize("place", ["hooks", "modules"])
def test_more_than_can_be_looked_through_is_refused(
    folder: GuardFolder, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guarded, "MAX_DEPTH" if place == "hooks" else "MAX_ENTRIES", 1)
    if place == "hooks":
        remove(folder.git / "modules")
        (folder.git / "hooks/1/2").mkdir(parents=True)
    with pytest.raises(ConfigError) as caught:
        folder.take()
    assert caught.value.cause == "git-unusable"


def test_what_cannot_be_read_is_a_fault(folder: GuardFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guarded, "read_file", lambda *_arguments: None)
    with pytest.raises(InfraError) as caught:
        folder.take()
    assert caught.value.cause == "folder-unreadable"
    assert str(folder.home) not in caught.value.message


def test_a_folder_that_cannot_be_examined_is_a_fault(folder: GuardFolder) -> None:
    opened = open_folder(folder.path)
    folder.path.rename(folder.home / "other")
    with pytest.raises(InfraError) as caught:
        take_notes(opened, folder.notes)
    assert caught.value.cause == "folder-unreadable"
    assert put_back(folder.path, folder.notes, folder.kept) == ()
