"""A folder whose git directory has one of everything that is guarded, and pictures of it to compare."""

import contextlib
import os
import shutil
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

from pidispatch.workspace.folder import open_folder
from pidispatch.workspace.guard import put_back, take_notes
from pidispatch.workspace.guarded import GUARDED

_NOBODY = 65534
GIT_DIRS = (".git", ".git/modules/lib/inner", ".git/worktrees/w")
_FILES = {
    ".git/config": "[core]\n\tbare = false\n",
    ".git/hooks/pre-commit": "#!/bin/sh\n",
    ".git/hooks/pre-push.sample": "#!/bin/sh\nexit 1\n",
    ".git/hooks/lib/common": "x\n",
    ".git/info/attributes": "*.png binary\n",
    ".git/info/exclude": "*.o\n",
    ".git/branches/empty": "",
    ".git/modules/lib/inner/config": "[core]\n\tworktree = ../../../../lib\n",
    ".git/modules/lib/inner/hooks/pre-commit": "#!/bin/sh\n",
    ".git/modules/lib/inner/info/attributes": "* text\n",
    ".git/worktrees/w/commondir": "../..\n",
    ".git/worktrees/w/gitdir": "/somewhere/w/.git\n",
    ".git/worktrees/w/config.worktree": "[core]\n",
    "a.txt": "one\n",
    "sub/b.txt": "two\n",
}


class GuardFolder:
    """`home/folder`, with notes and what is kept beside it, and a folder outside that nothing may touch."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.path = home / "folder"
        self.git = self.path / ".git"
        self.notes = home / "notes"
        self.kept = home / "kept"
        self.outside = home / "outside"
        self.outside.mkdir()
        (self.outside / "canary").write_text("untouched\n")
        (self.outside / "canary").chmod(0o640)
        for git_dir in GIT_DIRS:
            for name in ("objects", "refs"):
                (self.path / git_dir / name).mkdir(parents=True)
            (self.path / git_dir / "HEAD").write_text("ref: refs/heads/main\n")
        for name, text in _FILES.items():
            path = self.path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        (self.git / "hooks" / "pre-commit").chmod(0o755)
        (self.git / "config").chmod(0o640)
        (self.git / "hooks" / "linked").symlink_to("../../a.txt")

    def take(self) -> None:
        """Take the notes."""
        take_notes(open_folder(self.path), self.notes)

    def put_back(self) -> tuple[str, ...]:
        """Put back."""
        return put_back(self.path, self.notes, self.kept)

    def guarded(self) -> dict[str, tuple[str, int, bytes]]:
        """Everything guarded as it stands: kind, mode, content."""
        found = {}
        for git_dir in GIT_DIRS:
            for name in GUARDED:
                found.update(picture(self.path, f"{git_dir}/{name}"))
        return found

    def tree(self) -> dict[str, tuple[str, int, bytes]]:
        """Everything outside of git directories, also what is not in the folder."""
        found = picture(self.outside, ".")
        for name in os.listdir(self.path):
            if name not in (".git", "moved", "nest"):
                inner = picture(self.path, name)
                found.update({path: seen for path, seen in inner.items() if ".git" not in path.split("/")})
        return found


def picture(top: Path, name: str) -> dict[str, tuple[str, int, bytes]]:
    """Kind, mode and content of `name` and all below it; empty where it is absent."""
    path = top / name
    try:
        facts = path.lstat()
    except OSError:
        return {}
    mode = stat.S_IMODE(facts.st_mode)
    if stat.S_ISLNK(facts.st_mode):
        return {name: ("link", mode, os.fsencode(os.readlink(path)))}
    if stat.S_ISREG(facts.st_mode):
        content = b"closed"
        with contextlib.suppress(PermissionError), path.open("rb") as file:
            content = file.read(1024)
        return {name: ("file", mode, content)}
    if not stat.S_ISDIR(facts.st_mode):
        return {name: ("other", mode, b"")}
    found = {name: ("dir", mode, b"")}
    with contextlib.suppress(PermissionError):
        for inner in sorted(os.listdir(path)):
            found.update(picture(top, f"{name}/{inner}"))
    return found


def give_away(home: Path) -> None:
    """Everything below `home` belongs to an ordinary account; for anyone but root it does anyway."""
    if os.geteuid() != 0:
        return
    for folder, folders, files in os.walk(home):
        for name in (".", *folders, *files):
            os.chown(os.path.join(folder, name), _NOBODY, _NOBODY, follow_symlinks=False)


@contextlib.contextmanager
def unprivileged() -> Iterator[None]:
    """The block runs as that account."""
    if os.geteuid() != 0:
        yield
        return
    os.setegid(_NOBODY)
    os.seteuid(_NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)
        os.setegid(0)


def remove(path: Path) -> None:
    """Remove whatever lies at `path`."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


Edit = Callable[[GuardFolder], None]


def writes(name: str, text: str = "evil\n") -> Edit:
    """Writes a file."""

    def edit(folder: GuardFolder) -> None:
        path = folder.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    return edit


def swaps(name: str, make: Callable[[GuardFolder, Path], None]) -> Edit:
    """Replaces a name."""

    def edit(folder: GuardFolder) -> None:
        remove(folder.path / name)
        make(folder, folder.path / name)

    return edit


def modes(name: str, mode: int) -> Edit:
    """Changes a mode."""
    return lambda folder: (folder.path / name).chmod(mode)


def link_out(folder: GuardFolder, path: Path) -> None:
    """A link to a file outside."""
    path.symlink_to(folder.outside / "canary")


def link_out_to_folder(folder: GuardFolder, path: Path) -> None:
    """A link to a directory outside."""
    path.symlink_to(folder.outside)


def fifo(_folder: GuardFolder, path: Path) -> None:
    """A pipe."""
    os.mkfifo(path)


def huge(_folder: GuardFolder, path: Path) -> None:
    """A file of a terabyte that takes no room."""
    with path.open("wb") as file:
        file.truncate(2**40)


def hard_link(folder: GuardFolder, path: Path) -> None:
    """A second name of a file of the tree."""
    os.link(folder.path / "a.txt", path)


def nothing(_folder: GuardFolder, _path: Path) -> None:
    """Nothing at all."""
    return
