"""Keeps what the agent left in place of something guarded, within bounds, as plain files that nothing runs."""

import contextlib
import os
from collections.abc import Mapping
from pathlib import Path

from pidispatch.config.log import log
from pidispatch.workspace.guarded import Budget, Entry

#: Bounds of what is kept of one folder; what is beyond them is named and not kept.
KEPT_FILES = 1000
KEPT_FILE_BYTES = 1024 * 1024
KEPT_BYTES = 16 * 1024 * 1024
KEPT_LEVELS = 100
#: Versions of one file.
KEPT_VERSIONS = 10
#: What makes a git directory of a directory, or leads to one: an index may name any place, that of what is kept too.
_LEADING = ("HEAD", ".git")


class Keeper:
    """Writes entries below a directory of the host's own, each at its path in the folder."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._files = KEPT_FILES
        self._bytes = KEPT_BYTES
        self._complete = True

    def budget(self) -> Budget:
        """What of the agent's is worth reading, in all."""
        # What is named `.git` is read twice: to see where it leads, and to be kept.
        return Budget(bytes=2 * KEPT_BYTES, file_bytes=KEPT_FILE_BYTES)

    def keep(self, entries: Mapping[str, Entry]) -> None:
        """Keep what can be kept; never fails, because putting back matters more."""
        for path, entry in entries.items():
            content = _as_text(entry)
            if entry.kind == "dir":
                continue
            out_of_bounds = self._files == 0 or path.count("/") > KEPT_LEVELS
            if content is None or len(content) > min(KEPT_FILE_BYTES, self._bytes) or out_of_bounds:
                self.give_up("bounds")
                continue
            self._files -= 1
            self._bytes -= len(content)
            try:
                self._write(self._directory / path, content)
            except OSError:
                self.give_up("not-written")

    def give_up(self, cause: str) -> None:
        """Say that something was not kept."""
        if self._complete:
            # Once for all: an agent may have made any number of them.
            log().warning("guard_not_kept", cause=cause)
        self._complete = False

    def _write(self, path: Path, content: bytes) -> None:
        if path.name in _LEADING:
            path = path.with_name(f"{path.name}.replaced")
        # Closed to others with all that is in it.
        self._directory.mkdir(mode=0o700, exist_ok=True)
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        # A call that crashed may have kept the agent's version there, and the owner have written another since.
        for version in (path, *(path.with_name(f"{path.name}.{number}") for number in range(2, KEPT_VERSIONS + 1))):
            if _write_new(version, content) or _holds(version, content):
                return
        raise FileExistsError(path)


def _write_new(path: Path, content: bytes) -> bool:
    """Write a new file; false where something is there already."""
    try:
        # Without the mode that the agent gave it: it is for reading only.
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except FileExistsError:
        return False
    with open(handle, "wb") as file:
        file.write(content)
    return True


def _holds(path: Path, content: bytes) -> bool:
    with contextlib.suppress(OSError):
        return path.stat().st_size == len(content) and path.read_bytes() == content
    return False


def _as_text(entry: Entry) -> bytes | None:
    if entry.kind == "file":
        return entry.content
    if entry.kind == "link":
        # Kept in words: whoever reads it must not be led away.
        return b"a link to " + (entry.content or b"") + b"\n"
    return b"neither a file nor a directory nor a link\n"
