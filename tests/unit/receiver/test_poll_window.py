"""Up to where a poll has dealt with what it sees, whatever order things are shown in."""

from datetime import UTC, datetime, timedelta

from pidispatch.forges.polling import Look, Sight
from pidispatch.receiver.poll_window import Window

NOON = datetime(2026, 1, 31, 12, 0, tzinfo=UTC)


def sight(number: int, seconds: int) -> Sight:
    """Something that came to be so many seconds after noon."""
    return Sight(number, NOON + timedelta(seconds=seconds), None)


def look(*sights: Sight, since: int | None = None) -> Look:
    """A look that saw these."""
    return Look(sights, None if since is None else NOON + timedelta(seconds=since))


def numbers(window: Window, *sights: Sight) -> list[int]:
    """What of them is new."""
    return [one.id for one in window.new(look(*sights))]


def test_after_the_first_look_all_that_is_there_is_dealt_with() -> None:
    window = Window.first(look(sight(1, -500), sight(2, -5), sight(3, 0), since=-60))
    assert numbers(window, sight(1, -500), sight(2, -5), sight(3, 0), sight(4, 0)) == [4]


def test_where_nothing_is_there_everything_is_new() -> None:
    assert numbers(Window.first(look()), sight(1, -1_000_000)) == [1]


def test_what_is_shown_late_is_new_and_what_is_older_is_not() -> None:
    window = Window.first(look(sight(5, 0), since=-60))
    assert numbers(window, sight(4, -59), sight(3, -61), sight(5, 0)) == [4]


def test_it_never_goes_back_and_remembers_no_more_than_it_must() -> None:
    window = Window.first(look(sight(1, 0), since=-60)).after(look(sight(2, 100), since=40), {})
    assert window.since == NOON + timedelta(seconds=40)
    assert set(window.seen) == {2}
    again = window.after(look(since=-60), {})
    assert again == window
    assert numbers(again, sight(2, 100), sight(3, 50)) == [3], "also where it was not shown in between"


def test_what_is_undecided_is_new_again_and_what_came_with_it_is_not() -> None:
    window = Window.first(look(since=0))
    seen = look(sight(1, 10), sight(2, 20), sight(3, 500), since=440)
    after = window.after(seen, {1: 1})
    assert [one.id for one in after.new(seen)] == [1]
    assert after.undecided == {1: 1}
    assert [one.id for one in after.after(seen, {}).new(seen)] == []


def test_it_is_read_as_it_was_written() -> None:
    window = Window.first(look(sight(1, 0), since=-60)).after(look(sight(2, 10), since=-50), {2: 3})
    assert Window.read(window.model_dump_json()) == window
    later = window.model_dump_json().replace("{", '{"more":1,', 1)
    assert Window.read(later) == window


def test_what_cannot_be_read_is_none() -> None:
    assert [Window.read(text) for text in (None, "", "{", "[]", '{"since":1,"seen":2}')] == [None] * 5
