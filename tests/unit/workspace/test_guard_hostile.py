"""Whatever an agent does to the git directory, it stands as noted afterwards, and nothing else has changed.

Any order of edits, any crash in the middle, as root and as an ordinary account.
"""

import contextlib
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pidispatch.values.errors import InfraError
from pidispatch.workspace.guarded import GUARDED, Budget
from pidispatch.workspace.keep import Keeper
from tests.unit.workspace.guardfolder import GIT_DIRS, GuardFolder, give_away, picture, remove, unprivileged

NAMES = (
    ".git/config",
    ".git/config.worktree",
    ".git/commondir",
    ".git/hooks",
    ".git/hooks/pre-commit",
    ".git/hooks/post-checkout",
    ".git/hooks/lib",
    ".git/hooks/lib/common",
    ".git/info",
    ".git/info/attributes",
    ".git/remotes",
    ".git/modules",
    ".git/modules/lib",
    ".git/modules/lib/inner",
    ".git/modules/lib/inner/config",
    ".git/modules/lib/inner/hooks",
    ".git/modules/lib/inner/info/attributes",
    ".git/modules/new",
    ".git/modules/new/config",
    ".git/worktrees",
    ".git/worktrees/w",
    ".git/worktrees/w/commondir",
    ".git/worktrees/w/gitdir",
    ".git/pi-dispatch-aside",
    ".git",
    ".git/evil",
    ".git/evil/.git",
    "nest/lib",
    "nest/lib/.git",
    "nest/link/.git",
    "nest/mine",
    "nest/mine/.git",
    "nest/mine/.git/config",
    "nest/mine/.git/commondir",
    "nest/mine/.git/hooks",
    "nest/mine/.git/refs/x/.git",
    "nest/new",
    "nest/new/.git",
    "nest/new/.git/modules/x",
    "nest/deep/er/.git",
)
_LIB = "gitdir: ../../.git/modules/lib/inner\n"


def _nest(folder: GuardFolder) -> None:
    """A submodule's file, a repository of its own and a link, nested in the tree, with room for more."""
    for name in ("lib", "link", "new", "deep/er"):
        (folder.path / "nest" / name).mkdir(parents=True)
    (folder.path / "nest/lib/.git").write_text(_LIB)
    (folder.path / "nest/link/.git").symlink_to(folder.outside)
    mine = folder.path / "nest/mine/.git"
    for name in ("objects", "refs/x", "hooks"):
        (mine / name).mkdir(parents=True)
    for name in ("HEAD", "config", "hooks/pre-commit"):
        (mine / name).write_text("mine\n")


def _runs_nothing(folder: GuardFolder, before: dict[str, tuple[str, int, bytes]]) -> None:
    """Whatever is named `.git` in the folder is as noted, holds nothing guarded, or leads to what is guarded."""
    now = picture(folder.path, "nest") | picture(folder.path, ".git") | picture(folder.path, "sub")
    for name, seen in now.items():
        if not name.endswith("/.git") or seen == before.get(name):
            continue
        assert seen[0] == "dir" or (seen[0] == "file" and seen[2] == _LIB.encode()), name
    for name, seen in now.items():
        parent, _, rest = name.rpartition("/.git/")
        if parent and rest.split("/")[0] in {place.split("/")[0] for place in GUARDED} - {"info"}:
            assert seen == before.get(name), name
    mine = "nest/mine/.git"
    if now.get(mine, ("",))[0] == "dir":
        assert {name for name in before if name.startswith((f"{mine}/config", f"{mine}/hooks"))} <= set(now)


def _write(folder: GuardFolder, path: Path, number: int) -> None:
    with open(
        os.open(path, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_TRUNC, 0o755), "wb"
    ) as file:
        file.write(b"evil %d\n" % number)


def _chmod(folder: GuardFolder, path: Path, number: int) -> None:
    if not path.is_symlink():
        path.chmod((0, 0o777, 0o500, 0o4755)[number])


def _directory(folder: GuardFolder, path: Path, number: int) -> None:
    remove(path)
    for name in ("objects", "refs", "hooks/deep"):
        (path / name).mkdir(parents=True)
    for name in ("HEAD", "config", "hooks/post-checkout"):
        (path / name).write_text("evil\n")


def _link(folder: GuardFolder, path: Path, number: int) -> None:
    remove(path)
    targets = (folder.outside / "canary", folder.outside, Path("../sub"), Path("nowhere"))
    path.symlink_to(targets[number])


def _gitfile(folder: GuardFolder, path: Path, number: int) -> None:
    remove(path)
    targets = ("../../.git/modules/lib/inner", "../../moved", str(folder.outside), "../../.git/modules/lib")
    path.write_text(f"gitdir: {targets[number]}\n")


def _pipe(folder: GuardFolder, path: Path, number: int) -> None:
    remove(path)
    os.mkfifo(path)


def _hard_link(folder: GuardFolder, path: Path, number: int) -> None:
    remove(path)
    os.link(folder.path / "a.txt", path)


def _move(folder: GuardFolder, path: Path, number: int) -> None:
    path.rename(folder.path / "moved" if number % 2 else folder.git / "moved")


def _remove(folder: GuardFolder, path: Path, number: int) -> None:
    if path != folder.git:
        remove(path)


EDITS: dict[str, Callable[[GuardFolder, Path, int], None]] = {
    "write": _write,
    "chmod": _chmod,
    "directory": _directory,
    "link": _link,
    "gitfile": _gitfile,
    "pipe": _pipe,
    "hard link": _hard_link,
    "move": _move,
    "remove": _remove,
}
edits = st.lists(st.tuples(st.sampled_from(sorted(EDITS)), st.sampled_from(NAMES), st.integers(0, 3)), max_size=10)


def _apply(folder: GuardFolder, steps: list[tuple[str, str, int]]) -> None:
    for edit, name, number in steps:
        # What an agent closed or moved, it cannot reach either.
        with contextlib.suppress(OSError):
            EDITS[edit](folder, folder.path / name, number)


def _is_as_noted(folder: GuardFolder, before: dict[str, tuple[str, int, bytes]]) -> None:
    """Everything guarded stands as noted; of a nested git directory that is gone, nothing is left."""
    expected = dict(before)
    for git_dir in GIT_DIRS[1:]:
        if not (folder.path / git_dir).is_dir() or (folder.path / git_dir).is_symlink():
            assert not os.path.lexists(folder.path / git_dir)
            expected = {name: seen for name, seen in expected.items() if not name.startswith(git_dir + "/")}
    assert folder.guarded() == expected
    new = picture(folder.path, ".git/modules/new")
    assert (
        not [name for name in new if name.rpartition("/")[2] in ("config", "post-checkout")]
        or ".git/modules/new/HEAD" not in new
    )


def _put_back(folder: GuardFolder) -> tuple[str, ...] | None:
    """The names; `None` only where the git directory is nowhere to be found."""
    try:
        return folder.put_back()
    except InfraError as error:
        if "gone" in error.message and not os.path.lexists(folder.git):
            return None
        raise


@pytest.mark.parametrize("root", [True, False])
@given(steps=edits, allowed=st.sampled_from([(20_000, 1024), (3, 20), (0, 0)]))
@settings(max_examples=100, deadline=None)
def test_whatever_the_agent_did_the_guarded_stands_as_noted(
    root: bool, steps: list[tuple[str, str, int]], allowed: tuple[int, int]
) -> None:
    """Also where nothing, or hardly anything, of it may be listed and read."""
    with (
        tempfile.TemporaryDirectory(dir="/var/tmp") as home,
        mock.patch.object(Keeper, "budget", side_effect=lambda: Budget(*allowed)),
    ):
        folder = GuardFolder(Path(home))
        _nest(folder)
        account = contextlib.nullcontext if root else unprivileged
        if not root:
            give_away(Path(home))
        with account():
            before, nest = folder.guarded(), picture(folder.path, "nest")
            folder.take()
            _apply(folder, steps)
        tree = folder.tree()
        with account():
            names = _put_back(folder)
            if names is not None:
                _is_as_noted(folder, before)
                _runs_nothing(folder, nest)
                once = picture(folder.path, ".git") | picture(folder.path, "nest")
                assert folder.put_back() == names
                assert picture(folder.path, ".git") | picture(folder.path, "nest") == once
        assert folder.tree() == tree


HOSTILE = [
    ("write", ".git/config", 1),
    ("link", ".git/info", 1),
    ("write", ".git/hooks/pre-commit", 1),
    ("directory", ".git/hooks/lib/common", 1),
    ("chmod", ".git/hooks", 2),
    ("directory", ".git/commondir", 1),
    ("directory", ".git/modules/new", 1),
    ("hard link", ".git/modules/lib/inner/config", 1),
    ("link", ".git/worktrees/w", 1),
    ("chmod", ".git", 1),
    ("move", ".git", 1),
    ("write", ".git", 1),
    ("write", "nest/mine/.git/config", 1),
    ("directory", "nest/mine/.git/refs/x/.git", 1),
    ("directory", "nest/lib/.git", 1),
    ("link", "nest/new/.git", 1),
    ("gitfile", "nest/link/.git", 1),
]


class Crash(BaseException):
    """The process is gone."""


def _dies_at(monkeypatch: pytest.MonkeyPatch, moment: int) -> list[str]:
    """From its `moment`-th step on that changes something, this process does nothing any more."""
    steps: list[str] = []

    def dying(name: str, real: Callable[..., object]) -> Callable[..., object]:
        def step(*arguments: object, **named: object) -> object:
            if len(steps) >= moment:
                raise Crash
            steps.append(name)
            return real(*arguments, **named)

        return step

    for name in ("rename", "mkdir", "unlink", "rmdir", "symlink", "chmod", "chown", "fdopen"):
        monkeypatch.setattr(os, name, dying(name, getattr(os, name)))
    return steps


def test_a_crash_at_any_step_is_made_good_by_a_second_call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    after_crash: list[set[str]] = []
    names: set[str] = set()
    while not names:
        home = tmp_path / str(len(after_crash))
        home.mkdir()
        folder = GuardFolder(home)
        _nest(folder)
        before, nest = folder.guarded(), picture(folder.path, "nest")
        folder.take()
        _apply(folder, HOSTILE)
        tree = folder.tree()
        with monkeypatch.context() as dying:
            _dies_at(dying, len(after_crash))
            with contextlib.suppress(Crash):
                names = set(folder.put_back())
        after_crash.append(set(folder.put_back()))
        _is_as_noted(folder, before)
        _runs_nothing(folder, nest)
        assert (folder.path / "nest/lib/.git").read_text() == _LIB
        assert folder.tree() == tree
        assert not (folder.git / "pi-dispatch-aside").exists()
        assert (folder.kept / ".git/config").exists()
    assert len(after_crash) > 50
    assert after_crash[-1] == names
    # A crash while hooks change places makes all of them look gone; no name is ever lost.
    hooks = {name for name in before if name.startswith(".git/hooks/")}
    assert all(names <= found <= names | hooks for found in after_crash)


def test_what_the_agent_closed_is_opened_and_kept_by_an_ordinary_account() -> None:
    with tempfile.TemporaryDirectory(dir="/var/tmp") as home:
        folder = GuardFolder(Path(home))
        give_away(Path(home))
        with unprivileged():
            before = folder.guarded()
            folder.take()
            (folder.git / "hooks/lib/evil").write_text("evil\n")
            for name in ("hooks/lib", "hooks", "info", "modules", "."):
                (folder.git / name).chmod(0)
            names = folder.put_back()
            assert folder.guarded() == before
            assert (folder.kept / ".git/hooks/lib/evil").read_text() == "evil\n"
        changed = (".git", ".git/hooks", ".git/hooks/lib", ".git/hooks/lib/evil", ".git/info", ".git/modules")
        assert sorted(names) == list(changed)


def test_what_its_owner_cannot_enter_is_a_fault_before_the_run() -> None:
    with tempfile.TemporaryDirectory(dir="/var/tmp") as home:
        folder = GuardFolder(Path(home))
        give_away(Path(home))
        with unprivileged():
            (folder.git / "hooks/lib").chmod(0)
            with pytest.raises(InfraError) as caught:
                folder.take()
            (folder.git / "hooks/lib").chmod(0o755)
        assert caught.value.cause == "folder-unreadable"
