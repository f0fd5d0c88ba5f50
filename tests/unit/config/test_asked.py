"""A question in a thread of its own: its answer, its fault, and what comes of one that hangs."""

import subprocess
import sys
import threading

import pytest

from pidispatch.config.asked import asked


def test_the_answer_and_the_fault_come_out_as_they_are() -> None:
    assert asked(lambda: 7).result(30) == 7

    def refuse() -> None:
        raise KeyError("no")

    with pytest.raises(KeyError, match="no"):
        asked(refuse).result(30)


def test_one_that_hangs_is_left_alone() -> None:
    release = threading.Event()
    answer = asked(release.wait)
    with pytest.raises(TimeoutError):
        answer.result(0)
    release.set()
    assert answer.result(30) is True


def test_a_program_ends_while_a_question_hangs() -> None:
    code = "import threading; from pidispatch.config.asked import asked; asked(threading.Event().wait); print('end')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=30, check=True)
    assert done.stdout == "end\n"
