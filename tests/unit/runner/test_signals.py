"""Signals reach their reaction however the main thread waits."""

import subprocess
import sys
from pathlib import Path

RUNNER = Path(__file__).resolve().parents[3] / "pidispatch/image/job/runner"

#: The signal is delivered to a thread beside the waiting main thread, so the wait itself is not interrupted.
_PROGRAM = f"""
import queue, signal, sys, threading
sys.path.insert(0, {str(RUNNER)!r})
from pirunner import signals

seen = queue.SimpleQueue()
signals.watch({{signal.SIGUSR1: lambda: seen.put("one"), signal.SIGUSR2: lambda: seen.put("two")}})
bystander = threading.Thread(target=threading.Event().wait, daemon=True)
bystander.start()
for number, expected in ((signal.SIGUSR1, "one"), (signal.SIGUSR2, "two"), (signal.SIGUSR1, "one")):
    # A timer's thread, so that the main thread is waiting or about to wait.
    threading.Timer(0.01, signal.pthread_kill, (bystander.ident, number)).start()
    assert seen.get(timeout=20) == expected
print("all seen")
"""


def test_signal_is_seen_while_the_main_thread_waits() -> None:
    # Handlers belong to a whole process, so this one has a process of its own.
    done = subprocess.run([sys.executable, "-c", _PROGRAM], capture_output=True, text=True, timeout=90)
    assert (done.stdout.strip(), done.stderr) == ("all seen", "")
