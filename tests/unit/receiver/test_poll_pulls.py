"""What became of pull requests between two looks."""

from collections.abc import Mapping

import pytest

from pidispatch.forges.polling import OpenPull, Pulls
from pidispatch.receiver.poll_pulls import changes, known_after, open_ones


def there(*pulls: tuple[int, str], whole: bool = True) -> Pulls:
    """Those that are open, the one that was changed last first."""
    return Pulls([OpenPull(number, sha, lambda _: ({}, {})) for number, sha in pulls], whole)


@pytest.mark.parametrize(
    ("known", "found"),
    [
        ({}, [(1, "opened"), (2, "opened")]),
        ({1: "a", 2: "b"}, []),
        ({1: "a", 2: "z"}, [(2, "synchronize")]),
        ({1: "closed", 2: "b"}, [(1, "reopened")]),
        ({1: "closed", 2: "b", 3: "c"}, [(1, "reopened")]),
    ],
)
def test_changes(known: Mapping[int, str], found: list[tuple[int, str]]) -> None:
    assert [(one.pull.number, one.action) for one in changes(known, there((2, "b"), (1, "a")))] == found


def test_one_that_is_gone_is_closed_and_stays_so() -> None:
    known = known_after({1: "a", 2: "b", 3: "closed"}, there((2, "c")))
    assert known == {1: "closed", 2: "c", 3: "closed"}
    assert open_ones({**known, 9: "d"}) == [9, 2]


def test_of_too_many_none_is_taken_for_closed() -> None:
    assert known_after({1: "a", 2: "b"}, there((2, "c"), whole=False)) == {1: "a", 2: "c"}
