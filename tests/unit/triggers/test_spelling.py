"""Who mistypes the name of a bound is told so; who writes something else is not."""

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from pidispatch.triggers.spelling import SPELLINGS, meant

FIELDS = frozenset(SPELLINGS)


@pytest.mark.parametrize(
    ("key", "field"),
    [
        ("waitfor", "waitFor"),
        ("wait_for", "waitFor"),
        ("WAIT-FOR", "waitFor"),
        ("Backend", "backend"),
        ("backends", "backend"),
        ("excludeTool", "excludeTools"),
        ("excluded_tools", "excludeTools"),
        ("providers", "provider"),
        ("provider_ids", "provider"),
        ("providerName", "provider"),
        ("modelId", "model"),
        ("model_name", "model"),
        ("Models", "models"),
        ("modelIds", "models"),
        ("allowed models", "models"),
        ("maxTurn", "maxTurns"),
        ("max-turns", "maxTurns"),
        ("maxCost", "maxCostUsd"),
        ("maxCostUSD", "maxCostUsd"),
        ("maxtokens", "maxTokens"),
        ("Missed", "missed"),
        # Look-alikes: Cyrillic a, e, o in the place of Latin ones; a zero-width space inside.
        ("b\u0430ckend", "backend"),
        ("mod\u0435l", "model"),
        ("maxC\u043estUsd", "maxCostUsd"),
        ("max\u200bTurns", "maxTurns"),
        ("provider\n", "provider"),
    ],
)
def test_what_is_nearly_a_field(key: str, field: str) -> None:
    assert meant(key, FIELDS) == field


@pytest.mark.parametrize(
    "key",
    [
        "",
        "note",
        "modelling",
        "turns",
        "wait",
        "waitForever",
        # Too little is left to tell what it was to be.
        "m\u043ed\u0435l",
        # Nobody is guarded from look-alikes of this one.
        "w\u0430itFor",
        "gem\u00fcse-backend",
    ],
)
def test_what_is_something_else(key: str) -> None:
    assert meant(key, FIELDS) is None


@given(st.sampled_from([(field, spelling) for field, some in SPELLINGS.items() for spelling in some]), st.data())
def test_case_and_signs_make_no_difference(known: tuple[str, str], data: st.DataObject) -> None:
    field, spelling = known
    signs = st.text("-_ .:/$", max_size=2)
    letters = [data.draw(signs) + data.draw(st.sampled_from([letter, letter.upper()])) for letter in spelling]
    key = "".join(letters)
    assume(key not in FIELDS)
    assert meant(key, FIELDS) == field
    assert meant(key, frozenset()) == field
