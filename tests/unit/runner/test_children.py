"""Finding and collecting child processes."""

import subprocess
import sys
from pathlib import Path

from pirunner import children

RUNNER = Path(__file__).resolve().parents[3] / "pidispatch/image/job/runner"


def _process(proc: Path, pid: int, parent: int, name: str = "x") -> None:
    (proc / str(pid)).mkdir()
    (proc / str(pid) / "stat").write_text(f"{pid} ({name}) S {parent} 1 1 0 -1")


def test_descendants_are_found_by_parent_ids(tmp_path: Path) -> None:
    _process(tmp_path, 1, 0)
    _process(tmp_path, 10, 1)
    _process(tmp_path, 11, 10, "a) S 99 (b")
    _process(tmp_path, 12, 11)
    _process(tmp_path, 20, 1)
    _process(tmp_path, 99, 20)
    (tmp_path / "30").mkdir()
    (tmp_path / "self").mkdir()
    assert children.descendants(10, tmp_path) == {11, 12}
    assert children.descendants(1, tmp_path) == {10, 11, 12, 20, 99}
    assert children.descendants(12, tmp_path) == set()


#: The functions under test touch every child of their process, so they get a process of their own.
_PREAMBLE = f"""
import os, sys
sys.path.insert(0, {str(RUNNER)!r})
from pirunner import children

def ended_child():
    pid = os.spawnlp(os.P_NOWAIT, "true", "true")
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    return pid

def is_ours(pid):
    try:
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True
"""


def _shows(body: str) -> str:
    """What `body` prints in an interpreter of its own."""
    done = subprocess.run([sys.executable, "-c", _PREAMBLE + body], capture_output=True, text=True, timeout=30)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_orphans_are_collected_and_the_kept_one_is_not() -> None:
    body = "pid = ended_child(); children.reap_orphans(keep={keep}); print(is_ours(pid))"
    assert _shows(body.format(keep="0")) == "False"
    assert _shows(body.format(keep="pid")) == "True"


def test_reaping_without_children() -> None:
    assert _shows("children.reap_orphans(keep=0); print('done')") == "done"


def test_kill_of_a_process_that_is_gone() -> None:
    body = "pid = ended_child(); os.waitpid(pid, 0); children.kill(pid); print(is_ours(pid))"
    assert _shows(body) == "False"


def test_running_children_are_killed_and_collected() -> None:
    body = """
pid = os.spawnlp(os.P_NOWAIT, "sleep", "sleep", "3600")
print(children.kill_descendants(10), is_ours(pid))
"""
    assert _shows(body) == "True False"


def test_orphans_are_adopted_and_killed() -> None:
    body = """
children.adopt_orphans()
reading, writing = os.pipe()
if os.fork() == 0:
    if os.fork() == 0:
        os.setsid()
        os.write(writing, b"%d" % os.getpid())
        os.execlp("sleep", "sleep", "3600")
    os._exit(0)
orphan = int(os.read(reading, 20))
print(children.kill_descendants(10), os.path.exists(f"/proc/{orphan}"))
"""
    assert _shows(body) == "True False"


def test_without_children_there_is_nothing_to_wait_for() -> None:
    assert _shows("print(children.kill_descendants(0))") == "True"
