"""What a worker knows of paused queues, and what it fetches by that."""

from collections.abc import Iterable

import pytest
from kombu.utils.scheduling import round_robin_cycle
from structlog.testing import capture_logs

from pidispatch.values.errors import InfraError
from pidispatch.worker.pauses import NOTHING, OpenQueues, Pauses

SHARED, OWN = "pi-jobs", "pi-jobs@build-1"


class Store:
    """What the store would say."""

    def __init__(self) -> None:
        self.paused: dict[str, object] = {}
        self.away = False
        self.asked: list[tuple[str, ...]] = []

    def __call__(self, queues: Iterable[str]) -> dict[str, object]:
        self.asked.append(tuple(queues))
        if self.away:
            raise InfraError("away", "store-unreachable")
        return self.paused


@pytest.fixture
def store() -> Store:
    return Store()


def test_a_paused_queue_is_held_and_the_change_is_logged_once(store: Store) -> None:
    pauses = Pauses(store, (SHARED, OWN))
    store.paused = {OWN: "since", "pi-jobs@another": "since"}
    with capture_logs() as logs:
        pauses.look()
        pauses.look()
    assert (pauses.holds(OWN), pauses.holds(SHARED)) == (True, False)
    assert store.asked == [(SHARED, OWN)] * 2
    assert logs == [{"event": "queues_paused", "log_level": "info", "queues": [OWN]}]


def test_all_are_held_while_everything_is_paused(store: Store) -> None:
    pauses = Pauses(store, (SHARED, OWN))
    store.paused = {"*": "since"}
    pauses.look()
    assert pauses.holds(OWN)
    assert pauses.holds(SHARED)
    store.paused = {SHARED: "since"}
    with capture_logs() as logs:
        pauses.look()
    assert (pauses.holds(OWN), pauses.holds(SHARED)) == (False, True)
    assert logs == [{"event": "queues_resumed", "log_level": "info", "queues": [OWN]}]


def test_while_the_server_is_away_its_last_word_holds(store: Store) -> None:
    pauses = Pauses(store, (SHARED,))
    store.paused = {SHARED: "since"}
    pauses.look()
    store.away = True
    with pytest.raises(InfraError):
        pauses.look()
    assert pauses.holds(SHARED)


def test_the_cycle_hands_out_open_queues_only_and_turns_as_before(store: Store) -> None:
    pauses = Pauses(store, (SHARED, OWN))
    cycle = OpenQueues(round_robin_cycle(), pauses)
    cycle.update([SHARED, OWN])
    assert cycle.consume(2) == [SHARED, OWN]
    assert cycle.rotate(SHARED) == SHARED
    assert cycle.consume(2) == [OWN, SHARED]
    store.paused = {OWN: "since"}
    pauses.look()
    assert cycle.consume(2) == [SHARED]
    store.paused = {"*": "since"}
    pauses.look()
    # Something is always asked for, so that the connection is not taken for an idle one.
    assert cycle.consume(2) == [NOTHING]
