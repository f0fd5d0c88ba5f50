"""The thread that goes on whatever happens in it."""

from threading import Event

from structlog.testing import capture_logs

from pidispatch.values.errors import InfraError
from pidispatch.worker.ticker import Ticker

WAIT_S = 30


class Acts:
    """What a ticker does, call by call; the last one is done again and again."""

    def __init__(self, *errors: Exception | None) -> None:
        self._errors = list(errors)
        self.calls = 0
        self.through = Event()

    def __call__(self) -> None:
        self.calls += 1
        error = self._errors.pop(0) if self._errors else None
        if error is not None:
            raise error
        if not self._errors:
            self.through.set()


def test_it_goes_on_after_an_error_of_the_surroundings_and_after_a_mistake() -> None:
    acts = Acts(InfraError("away", "store-unreachable"), KeyError("a text of a job"), None)
    ticker = Ticker("renew", 0.01, acts)
    with capture_logs() as logs:
        ticker.start()
        assert acts.through.wait(WAIT_S)
        ticker.stop()
    assert logs[0] == {
        "event": "tick_failed",
        "log_level": "warning",
        "thread": "renew",
        "cause": "store-unreachable",
    }
    assert {name: logs[1][name] for name in ("event", "log_level", "thread", "cause")} == {
        "event": "tick_broke",
        "log_level": "error",
        "thread": "renew",
        "cause": "KeyError",
    }
    assert logs[1]["at"].startswith("test_ticker.py:")
    assert "text of a job" not in str(logs)


def test_it_does_nothing_after_its_stop() -> None:
    acts = Acts()
    ticker = Ticker("watch", 0.01, acts)
    ticker.start()
    assert acts.through.wait(WAIT_S)
    ticker.stop()
    calls = acts.calls
    assert not Event().wait(0.1)
    assert acts.calls == calls


def test_the_first_call_comes_after_one_interval() -> None:
    acts = Acts()
    ticker = Ticker("sweep", 3600, acts)
    ticker.start()
    ticker.stop()
    assert acts.calls == 0


def test_a_nudge_brings_the_next_call_at_once_and_no_nudge_is_lost() -> None:
    began, go_on, acts = Event(), Event(), Acts(None, None, None)

    def act() -> None:
        acts()
        began.set()
        go_on.wait(WAIT_S)

    ticker = Ticker("comments", 3600, act)
    ticker.start()
    ticker.nudge()
    assert began.wait(WAIT_S)
    # One more comes while it acts, and is heard when that is done.
    began.clear()
    ticker.nudge()
    go_on.set()
    assert began.wait(WAIT_S)
    ticker.stop()
    assert acts.calls == 2


def test_one_that_hangs_is_not_waited_for_for_ever() -> None:
    hanging, end = Event(), Event()

    def act() -> None:
        hanging.set()
        end.wait(WAIT_S)

    ticker = Ticker("beat", 0.01, act)
    ticker.start()
    assert hanging.wait(WAIT_S)
    ticker.stop(timeout_s=0.05)
    end.set()
    ticker.stop()


def test_one_that_never_began_can_be_stopped() -> None:
    acts = Acts()
    Ticker("tick", 0, acts).stop()
    assert acts.calls == 0
