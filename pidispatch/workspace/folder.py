"""The operator's folder: whether a job may work in it, and whose it is."""

import os
import stat
from dataclasses import dataclass
from pathlib import Path

from pidispatch.values.errors import ConfigError, InfraError


@dataclass(frozen=True)
class Folder:
    """A folder that holds a git repository of its own."""

    #: Absolute, links resolved. Never logged or recorded in full.
    path: Path
    #: Owner, as numbers.
    uid: int
    gid: int

    @property
    def git_dir(self) -> Path:
        """The folder's own git directory."""
        return self.path / ".git"


def open_folder(path: Path) -> Folder:
    """The folder at `path`, checked. Raises `ConfigError` for what cannot work and `InfraError` for what may pass.

    Whether its git directory can be used is for `pidispatch.workspace.shape.check_shape` to say.
    """
    resolved = Path(os.path.realpath(path))
    name = resolved.name or "/"
    _refuse_unmountable(resolved, name)
    facts = _stat(resolved, f"the folder {name!r} does not exist", "folder-missing")
    if not stat.S_ISDIR(facts.st_mode):
        raise ConfigError(f"{name!r} is not a folder; name the folder of a git repository", "folder-missing")
    _stat(
        resolved / ".git",
        f"the folder {name!r} is not the root of a git repository (it holds no .git). "
        "Make it one: git init && git add -A && git commit -m start",
        "folder-not-git",
    )
    return Folder(resolved, facts.st_uid, facts.st_gid)


def _stat(path: Path, absent: str, cause: str) -> os.stat_result:
    try:
        return path.stat()
    except (FileNotFoundError, NotADirectoryError):
        raise ConfigError(absent, cause) from None
    except OSError as error:
        raise _unreadable(path, error) from None


def _unreadable(path: Path, error: OSError) -> InfraError:
    # The path itself stays out of the message: it may end in a log.
    return InfraError(f"{path.name!r} cannot be examined: {error.strerror}", "folder-unreadable")


def _refuse_unmountable(path: Path, name: str) -> None:
    try:
        str(path).encode("utf-8")
    except UnicodeEncodeError:
        raise ConfigError(
            f"the path of {name!r} is not valid UTF-8, so the container engine cannot mount it; rename the folder",
            "folder-name",
        ) from None
