"""What a delivery is called, and which one a thread is at."""

from threading import Thread

import pytest

from pidispatch.values.outcome import Completed, InfraFailed, Outcome, Refused
from pidispatch.values.reason import Reason
from pidispatch.worker.current import Deliveries
from pidispatch.worker.delivery import Delivery, End
from tests.support.ends import record_of


@pytest.mark.parametrize(
    ("outcome", "word"),
    [
        (Completed(), "completed"),
        (Refused(reason=Reason.OPERATOR_CANCEL), "policy operator-cancel"),
        (InfraFailed(reason=Reason.INFRA, cause="exit-1"), "failed infra"),
    ],
)
def test_the_word_of_a_delivery_with_a_record_is_made_of_fixed_words(outcome: Outcome, word: str) -> None:
    assert Delivery("local-1", End.RETURNED, record_of("local-1", outcome)).word == word


def test_the_word_of_one_without_is_its_end() -> None:
    delivery = Delivery("local-1", End.IGNORED)
    assert delivery.word == "ignored"
    delivery.release()


def test_a_thread_knows_its_own_delivery_alone() -> None:
    deliveries = Deliveries()
    mine = Delivery("local-1", End.RETURNED)
    deliveries.open(mine)
    elsewhere: list[Delivery | None] = []
    other = Thread(target=lambda: elsewhere.append(deliveries.of("local-1")))
    other.start()
    other.join()
    assert elsewhere == [None]
    assert deliveries.of("local-1") is mine
    assert (deliveries.of("local-2"), deliveries.of(None)) == (None, None)
    assert deliveries.close() is mine
    assert (deliveries.of("local-1"), deliveries.close()) == (None, None)
