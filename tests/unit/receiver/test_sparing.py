"""What is told now and then."""

from pidispatch.receiver.sparing import REST_S, Sparing


def test_the_same_is_told_once_a_minute_and_another_thing_too() -> None:
    at = 0.0
    sparing = Sparing(lambda: at)
    assert [sparing("a"), sparing("a"), sparing("b")] == [True, False, True]
    at = REST_S - 0.1
    assert not sparing("a")
    at = REST_S
    assert sparing("a")
