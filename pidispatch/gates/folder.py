"""The folder mutex: one job at a time in an operator's folder, always, since two would spoil each other's work."""

import os
import threading
import unicodedata
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from pidispatch.config.log import log
from pidispatch.values.job import Job, LocalJob
from pidispatch.values.limits import Limits
from pidispatch.values.verdict import Admit, Defer, Verdict, Why
from pidispatch.workspace.locks import overlap


def canonical_scope(folder: str | Path) -> str:
    """One spelling for all spellings of a folder: trimmed, NFC, absolute, without `.`, `..` and doubled slashes.

    By its letters alone: no link is followed, and case counts. A relative one is of this process's current folder.
    """
    path = os.path.abspath(unicodedata.normalize("NFC", str(folder).strip()))
    # POSIX lets two slashes at the beginning mean something else, and Python keeps them.
    return "/" + path.lstrip("/")


@dataclass(frozen=True)
class Scope:
    """A folder by everything by which it can be recognised."""

    spelt: str
    #: With its links resolved.
    path: Path
    #: Device and inode, for a folder that is mounted at two places; `None` where it cannot be looked at.
    inode: tuple[int, int] | None

    @classmethod
    def of(cls, folder: Path) -> "Scope":
        """The scope of an absolute `folder`, which need not be there. Never raises."""
        spelt = canonical_scope(folder)
        try:
            path = Path(os.path.realpath(folder))
            facts = path.stat()
        except (OSError, ValueError):
            # Whether it can be worked in is for the ladder to say.
            return cls(spelt, Path(spelt), None)
        return cls(spelt, path, (facts.st_dev, facts.st_ino))

    def meets(self, other: "Scope") -> bool:
        """Whether both are one folder, or one lies in the other, whose agent could then rewrite its repository."""
        same = self.spelt == other.spelt or (self.inode is not None and self.inode == other.inode)
        return same or overlap(self.path, other.path)


def scope_busy(job: Job, limits: Limits) -> Defer:
    """Somebody works in the job's folder: come back later. The log hears of it without the folder's name."""
    delay = limits.scope_busy_recheck_ms
    log().info("scope_busy_deferred", jobId=job.id, kind=job.kind.value, delayMs=delay)
    return Defer(why=Why.SCOPE_BUSY, delay_ms=delay)


class FolderMutex:
    """The folders that jobs of this process work in; forgotten with it, as their containers end with it."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._lock = threading.Lock()
        self._held: dict[str, Scope] = {}

    def check(self, job: Job, _: datetime) -> Verdict:
        """Take the folder, or come back later. A job that has one is not let in beside itself."""
        if not isinstance(job, LocalJob):
            # It works in a clone of its own.
            return Admit()
        scope = Scope.of(job.folder)
        with self._lock:
            if job.id not in self._held and not any(scope.meets(held) for held in self._held.values()):
                self._held[job.id] = scope
                return Admit()
        return scope_busy(job, self._limits)

    def release(self, job: Job) -> None:
        """Free the job's folder, if it has one."""
        with self._lock:
            self._held.pop(job.id, None)
