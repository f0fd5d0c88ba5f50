"""Nothing is heard before a receiver knows its own account: how long it asks, and what it says."""

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, cast

import pytest
import structlog
from structlog.testing import LogCapture

from pidispatch.forges.protocol import Account, Answer
from pidispatch.receiver.identity import own_identity
from pidispatch.values.errors import ConfigError, InfraError
from pidispatch.values.event import Authority, Event, Identity
from pidispatch.values.forge import JobKind
from tests.support.clock import FakeClock

ME = Identity(id=9001)


@pytest.fixture
def logs() -> Iterator[list[Any]]:
    capture = LogCapture()
    structlog.configure(processors=[capture])
    yield capture.entries
    structlog.reset_defaults()


@dataclass
class Forge:
    """An account that is not known at first. A try takes `takes_s` of the clock."""

    answers: list[Identity | Exception | Callable[[], Identity]]
    takes_s: float = 0.0
    clock: FakeClock = field(default_factory=lambda: FakeClock(datetime(2030, 1, 1, tzinfo=UTC)))
    gaps: list[float] = field(default_factory=list)

    def identity(self) -> Identity:
        """The next of them; the last one again and again."""
        self.clock.seconds += self.takes_s
        found = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(found, Exception):
            raise found
        return found() if callable(found) else found

    def authority(self, event: Event) -> Answer:
        """Nobody asks."""
        return Answer(Authority.UNKNOWN)

    def sleep(self, seconds: float) -> None:
        """Let the time pass."""
        self.gaps.append(seconds)
        self.clock.seconds += seconds

    def own(self, window_s: float, fuse_s: float = 10.0) -> Identity:
        """Ask as a start does."""
        return own_identity(JobKind.GITHUB, cast(Account, self), window_s, self.clock, self.sleep, fuse_s)


def away() -> InfraError:
    return InfraError("GitHub does not answer", "github-unreachable")


def test_the_first_answer_is_taken(logs: list[Any]) -> None:
    forge = Forge([ME])
    assert forge.own(60) == ME
    assert forge.gaps == []
    assert [(one["event"], one["forge"], one["id"]) for one in logs] == [("self_identity", "github", 9001)]


def test_gaps_double_to_half_a_minute(logs: list[Any]) -> None:
    forge = Forge([*(away() for _ in range(6)), ME])
    assert forge.own(600) == ME
    assert forge.gaps == [5, 10, 20, 30, 30, 30]
    assert [one["cause"] for one in logs[:-1]] == ["github-unreachable"] * 6


def test_the_last_gap_ends_with_the_window() -> None:
    forge = Forge([away()], takes_s=1.0)
    with pytest.raises(InfraError, match="would answer itself: GitHub does not answer") as caught:
        forge.own(60)
    assert caught.value.cause == "github-unreachable"
    # 1 + 5 + 1 + 10 + 1 + 20 + 1 = 39 of 60, and so 21 are left for the fourth, after which it is tried once more.
    assert forge.gaps == [5, 10, 20, 21]


def test_what_can_never_be_known_is_told_at_once() -> None:
    forge = Forge([ConfigError("the token is refused", "setting")])
    with pytest.raises(ConfigError, match="the token is refused"):
        forge.own(600)
    assert forge.gaps == []


def test_an_account_without_a_name_is_none() -> None:
    with pytest.raises(ConfigError, match="does not say which account"):
        Forge([Identity(id=None)]).own(60)
    assert Forge([Identity(id=None, alias="bot@example.com")]).own(60).alias == "bot@example.com"


def test_a_try_that_hangs_is_one_that_failed(logs: list[Any]) -> None:
    over = threading.Event()

    def hang() -> Identity:
        over.wait(30)
        return ME

    forge = Forge([hang, ME])
    assert forge.own(60, fuse_s=0.05) == ME
    over.set()
    assert [one["cause"] for one in logs if one["event"] == "self_identity_retry"] == ["identity-timed-out"]
