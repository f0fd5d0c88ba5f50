"""The one object that ends a job: the first reason wins."""

import threading

from pidispatch.box.abort import Abort
from pidispatch.values.reason import AbortReason


def test_the_first_reason_wins() -> None:
    abort = Abort()
    heard: list[int] = []
    abort.listen(lambda: heard.append(1))

    before = abort.reason
    assert before is None
    assert abort.set(AbortReason.SHUTDOWN)
    assert not abort.set(AbortReason.OPERATOR_CANCEL)
    assert abort.reason is AbortReason.SHUTDOWN
    assert heard == [1]


def test_a_late_listener_is_told_at_once() -> None:
    abort = Abort()
    abort.set(AbortReason.JOB_TIMEOUT)
    heard: list[int] = []
    abort.listen(lambda: heard.append(1))

    assert heard == [1]


def test_of_many_threads_one_wins() -> None:
    abort = Abort()
    wins: list[bool] = []
    threads = [threading.Thread(target=lambda: wins.append(abort.set(AbortReason.SHUTDOWN))) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert wins.count(True) == 1
