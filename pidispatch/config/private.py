"""Folders of this account's own: made closed to others, and refused where another account could swap them."""

import contextlib
import os
import stat
from pathlib import Path

from pidispatch.values.errors import ConfigError, InfraError


def private_folder(path: Path, variable: str) -> Path:
    """`path` as a folder of this account with mode 0700, made when absent. Raises `ConfigError` for another's."""
    try:
        facts = _made(path)
        _refuse_swappable(path, variable)
    except FileExistsError:
        raise ConfigError(f"{variable}={path} is not a folder; name another path", "not-a-folder") from None
    except OSError as error:
        raise InfraError(f"{variable}={path} cannot be made: {error.strerror}", "folder-unusable") from None
    if not stat.S_ISDIR(facts.st_mode) or facts.st_uid != os.geteuid():
        raise ConfigError(
            f"{variable}={path} is a link or belongs to another account; name a folder of this account's own",
            "not-own-folder",
        )
    if facts.st_mode & 0o077:
        path.chmod(0o700)
    return path


def _made(path: Path) -> os.stat_result:
    """Like `mkdir -p`, with mode 0700 for every folder that is made; what lies at `path` then."""
    # Looked at first: it is nearly always there.
    with contextlib.suppress(FileNotFoundError):
        facts = path.lstat()
        if stat.S_ISDIR(facts.st_mode):
            return facts
    if not path.parent.exists():
        _made(path.parent)
    path.mkdir(mode=0o700, exist_ok=True)
    return path.lstat()


def _refuse_swappable(path: Path, variable: str) -> None:
    """Raise `ConfigError` where another account could put a folder of its own in the place of `path`."""
    link = path.parent.lstat()
    facts = path.parent.stat() if stat.S_ISLNK(link.st_mode) else link
    foreign = {link.st_uid, facts.st_uid} - {0, os.geteuid()}
    if foreign or (facts.st_mode & stat.S_IWOTH and not facts.st_mode & stat.S_ISVTX):
        raise ConfigError(
            f"{variable}={path} lies in a folder that another account can change; name one below a folder of this "
            "account's own",
            "not-own-folder",
        )
