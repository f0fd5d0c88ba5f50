"""A cancel is told to be heard only where the job ends by it, whatever happens at the same moment."""

from threading import Barrier, Thread

from hypothesis import given
from hypothesis import strategies as st

from pidispatch.jobs.rows import Lease
from pidispatch.values.progress import CheckPassed, TurnEnded
from pidispatch.values.reason import AbortReason
from pidispatch.worker.held import Held

LEASE = Lease(job_id="local-1", owner="w#e#n", gen=0, attempt=1)
OTHERS = (AbortReason.SHUTDOWN, AbortReason.LEASE_LOST)


@given(st.lists(st.sampled_from(["cancel", "decide", *OTHERS]), max_size=8))
def test_what_was_answered_holds(moves: list[str]) -> None:
    held = Held(LEASE)
    taken: list[bool] = []
    decided: list[bool] = []
    first: str | None = None
    for move in moves:
        if move == "cancel":
            taken.append(held.cancel())
            # Taken only before the outcome is decided, and by nobody but the first who ended the job.
            assert taken[-1] is (not decided and first in (None, "cancel"))
            first = "cancel" if taken[-1] else first
        elif move == "decide":
            decided.append(held.decide())
            assert decided[-1] is any(taken)
        else:
            held.abort.set(AbortReason(move))
            first = first or move
    assert held.lost is (held.abort.reason is AbortReason.LEASE_LOST)
    assert held.decide() is any(taken)


def test_a_cancel_and_the_end_at_the_same_moment_agree() -> None:
    for _ in range(300):
        held, both = Held(LEASE), Barrier(2)
        said: list[bool] = []

        def cancel(held: Held = held, both: Barrier = both, said: list[bool] = said) -> None:
            both.wait()
            said.append(held.cancel())

        asking = Thread(target=cancel)
        asking.start()
        both.wait()
        ended_so = held.decide()
        asking.join()
        assert said == [ended_so]


def test_of_the_progress_the_last_turn_is_news_once() -> None:
    held = Held(LEASE)
    held.tell(CheckPassed(name="folder"))
    assert held.news() is None
    held.tell(TurnEnded(turns=1, tokens=5))
    held.tell(TurnEnded(turns=2, tokens=9))
    assert held.news() == TurnEnded(turns=2, tokens=9)
    assert held.news() is None
