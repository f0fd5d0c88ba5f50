"""When a worker gives itself up: deaf, idle, and while the server answers."""

from dataclasses import dataclass, field
from datetime import UTC, datetime

import pytest
from structlog.testing import capture_logs

from pidispatch.values.limits import Limits
from pidispatch.worker.liveness import Liveness
from tests.support.clock import FakeClock

LIMITS = Limits(deaf_s=150)


@dataclass
class World:
    """A consumer of a test's own."""

    answers: bool = True
    sent: int = 0
    ended: int = 0
    listens: bool = True
    clock: FakeClock = field(default_factory=lambda: FakeClock(datetime(2026, 1, 1, tzinfo=UTC)))

    def __post_init__(self) -> None:
        self.liveness = Liveness(self._send, lambda: self.answers, self._end, lambda: self.listens, LIMITS, self.clock)

    def _send(self) -> None:
        self.sent += 1

    def _end(self) -> None:
        self.ended += 1


def test_a_tick_is_sent_and_its_age_is_since_the_last_that_came() -> None:
    world = World()
    world.clock.seconds = 40
    world.liveness.beat(running=0)
    assert (world.sent, world.liveness.age_s) == (1, 40)
    world.liveness.heard()
    assert world.liveness.age_s == 0


def test_a_deaf_worker_with_nothing_to_do_gives_up() -> None:
    world = World()
    world.clock.seconds = 150
    world.liveness.beat(running=0)
    assert (world.sent, world.ended) == (1, 0)
    world.clock.seconds = 151
    with capture_logs() as logs:
        world.liveness.beat(running=0)
        # It takes the main thread a while to leave.
        world.liveness.beat(running=0)
    assert (world.sent, world.ended) == (1, 1)
    assert logs == [{"event": "consumer_deaf", "log_level": "error", "ageS": 151}]


@pytest.mark.parametrize(
    ("running", "answers"), [pytest.param(1, True, id="a job runs"), pytest.param(0, False, id="the server is away")]
)
def test_a_silence_that_has_another_reason_ends_nothing(running: int, answers: bool) -> None:
    world = World(answers=answers)
    world.clock.seconds = 1000
    world.liveness.beat(running)
    assert (world.sent, world.ended) == (1, 0)


def test_while_nothing_would_be_fetched_silence_says_nothing() -> None:
    world = World(listens=False)
    world.clock.seconds = 1000
    world.liveness.beat(running=3)
    assert (world.sent, world.ended, world.liveness.age_s) == (0, 0, 0)
    # The time until the next tick comes begins when a slot is free.
    world.listens = True
    world.clock.seconds = 1140
    world.liveness.beat(running=0)
    assert (world.sent, world.ended) == (1, 0)
