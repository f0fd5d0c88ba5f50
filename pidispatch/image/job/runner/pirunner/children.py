"""Every process below the runner, however it was started, ends before the exit line is printed.

The agent's shell commands run in sessions of their own, and one put in the background outlives pi. The runner adopts
such orphans (Linux "child subreaper", prctl(2)), so all of them stay reachable from it by parent ids.
"""

import os
import signal
import time
from contextlib import suppress
from pathlib import Path

_PR_SET_DUMPABLE = 4
_PR_SET_CHILD_SUBREAPER = 36


def adopt_orphans() -> None:
    """Make this process the parent of every descendant whose own parent ends. Raises OSError when refused."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def close_to_others() -> None:
    """Keep processes of the same user, the agent's tools among them, from this one's memory and open files.

    Raises OSError when refused. A program that this process starts is open again from its start.
    """
    _prctl(_PR_SET_DUMPABLE, 0)


def _prctl(option: int, value: int) -> None:
    # Imported late: it is slow to load, and pi is starting meanwhile.
    import ctypes

    if ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), f"prctl({option}, {value}) failed")


def reap_orphans(keep: int) -> None:
    """Collect ended children without waiting, except process `keep`, whose status its owner collects.

    Called while the agent works: an uncollected child counts against the container's process limit.
    """
    while True:
        try:
            ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:
            return
        if ended is None or ended.si_pid == keep:
            return
        # The final sweep may collect the same child first.
        with suppress(ChildProcessError):
            os.waitpid(ended.si_pid, os.WNOHANG)


def descendants(root: int, proc: Path = Path("/proc")) -> set[int]:
    """Ids of all processes below `root`, found by parent ids; `root` itself is not among them."""
    children: dict[int, list[int]] = {}
    for entry in os.listdir(proc):
        if entry.isdecimal():
            parent = _parent(proc / entry / "stat")
            if parent is not None:
                children.setdefault(parent, []).append(int(entry))
    found: set[int] = set()
    pending = [root]
    while pending:
        for child in children.get(pending.pop(), ()):
            if child not in found:
                found.add(child)
                pending.append(child)
    return found


def _parent(stat: Path) -> int | None:
    try:
        content = stat.read_bytes()
    except OSError:
        return None
    # "pid (name) state ppid": the name may hold blanks and parentheses, so count from its last one.
    fields = content.rpartition(b")")[2].split()
    return int(fields[1]) if len(fields) > 1 else None


def kill_descendants(timeout: float) -> bool:
    """SIGKILL and collect everything below this process; False when some are left after `timeout` seconds.

    "No child left" is the kernel's word, not a scan's: as all orphans are adopted, no child means no descendant.
    """
    deadline = time.monotonic() + timeout
    while _has_children():
        for pid in descendants(os.getpid()):
            kill(pid)
        _collect()
        if time.monotonic() > deadline:
            return not _has_children()
        # A killed process needs a moment to end; there is no call that waits for any child with a time limit.
        time.sleep(0.002)
    return True


def _has_children() -> bool:
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True


def kill(pid: int) -> None:
    """SIGKILL, unless the process is gone already."""
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return


def _collect() -> None:
    while True:
        try:
            pid, _status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid == 0:
            return
