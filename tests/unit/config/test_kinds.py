"""Each kind of value has one strict reading."""

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pidispatch.config.kinds import at_least, name_list, plain_text, strict_integer, switch

BLANKS = st.text(" \t", max_size=3)
WRONG_INTEGERS = [
    "03", "+3", "-3", "1_000", "3.0", "1e2", "1E2", "0x10", "00", "-0", "３", "٣", "²", "", " ", "3 3", "3,0", "nan",
    "3\n", "\n3", "\u00a03", "\u20033", "3\0", "three", "True",
]  # fmt: skip


@given(st.integers(min_value=0, max_value=10**15 - 1), BLANKS, BLANKS)
def test_the_plain_text_of_a_number_is_read(number: int, before: str, after: str) -> None:
    assert strict_integer(f"{before}{number}{after}") == number


@given(st.one_of(st.text(), st.from_regex(r"[ \t]*[-+]?[0-9_.eE]*[ \t]*", fullmatch=True)))
@example("00")
def test_no_other_text_is_read(text: str) -> None:
    stripped = text.strip(" \t")
    if stripped.isascii() and stripped.isdigit() and stripped == str(int(stripped)) and len(stripped) <= 15:
        assert strict_integer(text) == int(stripped)
    else:
        with pytest.raises(ValueError, match=r"must (be a whole number|have at most 15 digits)"):
            strict_integer(text)


@pytest.mark.parametrize("text", WRONG_INTEGERS)
def test_what_looks_like_a_number_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="must be a whole number in plain decimal digits"):
        strict_integer(text)


@pytest.mark.parametrize("value", [True, False, 3.0, None, b"3", [3]])
def test_only_text_and_whole_numbers_are_read(value: object) -> None:
    with pytest.raises(ValueError, match="must be a whole number"):
        strict_integer(value)


def test_a_number_is_taken_as_it_is() -> None:
    assert strict_integer(7) == 7


def test_a_number_of_too_many_digits_is_refused_without_reading_it() -> None:
    with pytest.raises(ValueError, match="at most 15 digits"):
        strict_integer("9" * 1_000_000)


@given(st.integers(min_value=0, max_value=10**6), st.integers(min_value=0, max_value=10**6))
def test_a_floor_is_kept(floor: int, number: int) -> None:
    if number >= floor:
        assert at_least(floor)(str(number)) == number
    else:
        with pytest.raises(ValueError, match=f"must be {floor} or more"):
            at_least(floor)(str(number))


@given(st.text())
@example("yes")
@example("true")
@example("on")
@example("")
@example(" 1")
@example("01")
def test_a_switch_has_two_readings(text: str) -> None:
    if text in {"0", "1"}:
        assert switch(text) is (text == "1")
    else:
        with pytest.raises(ValueError, match="must be 0 or 1"):
            switch(text)


def test_a_switch_takes_a_boolean() -> None:
    assert switch(True) is True
    assert switch(False) is False


@given(st.lists(st.from_regex(re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII), fullmatch=True)), BLANKS)
def test_names_are_split_at_commas(names: list[str], blank: str) -> None:
    assert name_list(f",{blank}".join([*names, ""])) == tuple(names)


@pytest.mark.parametrize("text", ["A B", "1A", "A=1", "A-B", "Ä", "A\nB", "A;B"])
def test_what_is_no_variables_name_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not the name of a variable"):
        name_list(f"GOOD,{text}")


def test_a_tuple_of_names_is_taken_as_it_is() -> None:
    assert name_list(("A", "B")) == ("A", "B")


@pytest.mark.parametrize("text", ["", " x", "x ", "a\tb", "a\nb", "\x1b[31m", "a\u202eb", "x\0", "\u00a0", "a\udcff"])
def test_text_that_is_not_plain_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="without control characters"):
        plain_text(text)


def test_text_with_a_leading_dash_is_refused() -> None:
    with pytest.raises(ValueError, match="must not begin with a dash"):
        plain_text("--privileged")


@pytest.mark.parametrize("text", ["anthropic", "registry.test:5000/a/b@sha256:00", "a b", "modèle"])
def test_plain_text_stays_as_it_is(text: str) -> None:
    assert plain_text(text) == text
