"""The skills that a rule brings along for its jobs: a folder of the operator's, of which plain files are copied.

It steers the agent as much as the repository's own skills do. So what is copied is what lies there itself: no link is
followed, and all bounds are decided before anything is read (docs/explanation/prompt.md).
"""

import os
import re
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Final, NamedTuple

from pidispatch.values.errors import InfraError
from pidispatch.values.limits import Limits
from pidispatch.values.outcome import Refused
from pidispatch.values.reason import Reason
from pidispatch.workspace.written import write_read_only

_NAME: Final = re.compile(r"[a-z0-9](?:[a-z0-9_.-]{0,62}[a-z0-9])?", re.IGNORECASE | re.ASCII)
_SKILL_FILE: Final = "SKILL.md"
_OPEN: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


@dataclass(frozen=True)
class Copied:
    """What was copied."""

    #: Skills, and files and bytes of all of them.
    dirs: int
    files: int
    bytes: int
    #: Entries that stayed behind: links, devices, pipes, sockets, and what is named otherwise than travels.
    skipped: int
    #: Skills whose `SKILL.md` lies right in their folder: the flows that a job may name.
    skills: frozenset[str]


class _Stop(Exception):
    """The folder is refused."""

    def __init__(self, reason: Reason, detail: str) -> None:
        super().__init__(detail)
        self.refused = Refused(reason=reason, detail=detail)


class _File(NamedTuple):
    path: PurePosixPath
    size: int


@dataclass
class _Found:
    """What of the folder would travel."""

    files: list[_File] = field(default_factory=list)
    skipped: int = 0

    @property
    def skills(self) -> set[str]:
        """Names of skills with a file."""
        return {file.path.parts[0] for file in self.files}


def check(path: Path) -> Refused | None:
    """Why the folder cannot be used, as far as one look at its name tells. Raises `InfraError` where it does not."""
    try:
        facts = os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return _missing("is not there")
    except OSError as error:
        stopped = _stopped(error, PurePosixPath())
        if isinstance(stopped, InfraError):
            raise stopped from None
        return stopped.refused
    return None if stat.S_ISDIR(facts.st_mode) else _missing("is a link, or no folder")


def copy(source: Path, target: Path, limits: Limits, give: Callable[[Path], None]) -> Copied | Refused:
    """Copy the skills of `source` into `target`, which is made when there is something to copy.

    `give` hands each path to the job's user. A refusal writes nothing. Raises `InfraError` where the disk fails.
    """
    if refused := check(source):
        return refused
    found = _Found()
    try:
        _look(source, PurePosixPath(), found, limits)
        contents = _read(source, found, limits)
    except _Stop as stop:
        return stop.refused
    if not contents:
        return Refused(reason=Reason.SKILLS_DIR_EMPTY, detail="the rule's skillsDir holds no file of a skill")
    write_read_only(target, contents, give)
    flows = {path.parts[0] for path in contents if path.parts[1:] == (_SKILL_FILE,)}
    return Copied(
        dirs=len(found.skills),
        files=len(contents),
        bytes=sum(map(len, contents.values())),
        skipped=found.skipped,
        skills=frozenset(flows),
    )


def _look(source: Path, below: PurePosixPath, found: _Found, limits: Limits) -> None:
    """Add what travels of the folder `below`. Raises `_Stop` at the first bound that is passed."""
    for name, mode, size in _entries(source, below):
        path = below / name
        if _NAME.fullmatch(name) and stat.S_ISDIR(mode):
            if len(path.parts) > limits.skills_dir_depth:
                detail = f"folders of the rule's skillsDir lie more than {limits.skills_dir_depth} deep in one another"
                raise _Stop(Reason.SKILLS_DIR_TOO_DEEP, detail)
            _look(source, path, found, limits)
        elif _NAME.fullmatch(name) and stat.S_ISREG(mode) and below.parts:
            found.files.append(_File(path, size))
            _check_bounds(found, limits)
        else:
            found.skipped += 1


def _entries(source: Path, below: PurePosixPath) -> Iterator[tuple[str, int, int]]:
    """Name, mode and size of what is in a folder, in the order of their names."""
    try:
        for name in sorted(os.listdir(source / below)):
            facts = os.lstat(source / below / name)
            yield name, facts.st_mode, facts.st_size
    except OSError as error:
        raise _stopped(error, below) from None


def _check_bounds(found: _Found, limits: Limits) -> None:
    if len(found.files) > limits.skills_dir_files:
        detail = f"the rule's skillsDir holds more than {limits.skills_dir_files} files"
        raise _Stop(Reason.SKILLS_DIR_TOO_MANY_FILES, detail)
    if len(found.skills) > limits.skills_dir_skills:
        raise _Stop(
            Reason.SKILLS_DIR_TOO_LARGE, f"the rule's skillsDir holds more than {limits.skills_dir_skills} skills"
        )
    if sum(file.size for file in found.files) > limits.skills_dir_bytes:
        raise _too_large(limits)


def _read(source: Path, found: _Found, limits: Limits) -> dict[PurePosixPath, bytes]:
    left = limits.skills_dir_bytes
    contents = {}
    for path, _ in found.files:
        contents[path] = content = _content(source, path, left)
        left -= len(content)
        if left < 0:
            # It grew since it was looked at.
            raise _too_large(limits)
    return contents


def _content(source: Path, path: PurePosixPath, limit: int) -> bytes:
    """Content of a plain file, of which at most one byte more than `limit` is read."""
    try:
        with open(os.open(source / path, _OPEN), "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise _fault("something in it changed while it was copied")
            return file.read(limit + 1)
    except OSError as error:
        raise _stopped(error, path) from None


def _stopped(error: OSError, path: PurePosixPath) -> _Stop | InfraError:
    """What may not be read is refused. Anything else may be another thing by the next time."""
    if isinstance(error, PermissionError):
        place = f"{path} in it" if path.parts else "it"
        return _Stop(Reason.SKILLS_DIR_UNREADABLE, f"the worker may not read the rule's skillsDir: {place}")
    return _fault(error.strerror)


def _fault(what: str | None) -> InfraError:
    # The path itself stays out of the message: it may end in a log.
    return InfraError(f"the rule's skillsDir cannot be read: {what}", "folder-unreadable")


def _too_large(limits: Limits) -> _Stop:
    detail = f"the files of the rule's skillsDir have more than {limits.skills_dir_bytes:,} bytes"
    return _Stop(Reason.SKILLS_DIR_TOO_LARGE, detail)


def _missing(what: str) -> Refused:
    return Refused(reason=Reason.SKILLS_DIR_MISSING, detail=f"the rule's skillsDir {what}")
