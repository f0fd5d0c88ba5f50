"""The same wish is the same id, and another wish is another."""

import re
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pidispatch.jobs.ids import chain_id, forge_id, local_id, semantic_key, sibling_id
from pidispatch.triggers.occurrences import cron_id
from pidispatch.values.job import Matched
from tests.support.oneshots import fired_by, rule

MINUTE = datetime(2026, 5, 4, 3, 0, tzinfo=UTC)
FOLDER, FLOW, TASK = Path("/srv/site"), "tidy", "run the nightly tidy"
#: Parts as they can come from a command line: no null byte, but undecodable ones.
PART = st.text(st.characters(exclude_characters="\0", exclude_categories=()), max_size=8)


@pytest.mark.example("ch1 E11", "Ids of jobs on a folder, of chained jobs and of occurrences, digit by digit.")
def test_the_worked_ids() -> None:
    assert local_id(FOLDER, FLOW, TASK, MINUTE) == "local-73199fb7ec9f4303"
    assert local_id(FOLDER, None, None, MINUTE, command="wf deploy") == "local-0151a13c392ab098"
    named = local_id(FOLDER, FLOW, TASK, MINUTE, provider="openai", model="gpt-5.4-mini")
    assert named == "local-ef9efc29c3aa054c"
    assert local_id(FOLDER, FLOW, TASK, MINUTE, models=["openai/gpt-5.4-mini"]) == "local-98559426b5d79a3d"
    assert chain_id("local-0011223344556677", "review", "check the diff") == "chain-93b3406ee175a416"
    at = datetime(2026, 5, 5, 3, 0, tzinfo=UTC)
    assert cron_id("nightly", round(at.timestamp() * 1000)) == "repeat:nightly:1777950000000"


def test_a_wish_is_the_same_for_a_minute_wherever_the_clock_stands() -> None:
    within = MINUTE + timedelta(seconds=59.9)
    elsewhere = MINUTE.astimezone(timezone(timedelta(hours=5, minutes=30)))
    assert local_id(FOLDER, FLOW, TASK, within) == local_id(FOLDER, FLOW, TASK, elsewhere)
    assert local_id(FOLDER, FLOW, TASK, MINUTE) == local_id(str(FOLDER), FLOW, TASK, within)
    assert local_id(FOLDER, FLOW, TASK, MINUTE) != local_id(FOLDER, FLOW, TASK, MINUTE + timedelta(minutes=1))


def test_a_command_is_no_flow_of_its_name() -> None:
    assert local_id(FOLDER, "deploy", "", MINUTE) != local_id(FOLDER, None, "", MINUTE, command="deploy")


Wish = tuple[str, str, str, str, str, tuple[str, ...]]
WISHES = st.tuples(PART, PART, PART, PART, PART, st.lists(PART, max_size=2).map(tuple))


@given(WISHES, WISHES)
def test_two_wishes_have_two_ids(one: Wish, other: Wish) -> None:
    ids = [
        local_id(folder, flow, task, MINUTE, provider=provider, model=model, models=models)
        for folder, flow, task, provider, model, models in (one, other)
    ]
    assert (ids[0] == ids[1]) is (one == other)
    assert all(re.fullmatch(r"local-[0-9a-f]{16}", job_id) for job_id in ids)


@given(st.tuples(PART, PART, PART), st.tuples(PART, PART, PART))
def test_two_chained_wishes_have_two_ids(one: tuple[str, str, str], other: tuple[str, str, str]) -> None:
    assert (chain_id(*one) == chain_id(*other)) is (one == other)


def test_the_ids_of_deliveries() -> None:
    assert [forge_id(kind, "d") for kind in ("github", "gitlab", "forgejo", "azure")] == [
        "gh-d",
        "gl-d",
        "fj-d",
        "az-d",
    ]
    assert forge_id("github", "d", 2) == "gh-d-r2"


@pytest.mark.parametrize(
    ("kind", "delivery", "replica"), [("local", "d", None), ("github", "", None), ("github", "d", 0)]
)
def test_no_id_is_made_up(kind: str, delivery: str, replica: int | None) -> None:
    with pytest.raises(ValueError, match=r"delivery|counted from 1"):
        forge_id(kind, delivery, replica)


def test_what_two_wishes_have_in_common() -> None:
    close = fired_by(rule())
    single = close.model_copy(update={"replica": None})
    second = close.model_copy(update={"replica": 2})
    assert semantic_key(single) == f"{close.target_name}:closed:{close.flow}"
    assert semantic_key(second) == f"{close.target_name}:closed:{close.flow}:r2"
    assert semantic_key(single.model_copy(update={"flow": None, "command": "wf deploy"})).endswith(
        ":closed:cmd:wf deploy"
    )
    labelled = single.trigger.model_copy(update={"matched": Matched(index=0, type="label", label="x")})
    assert semantic_key(single.model_copy(update={"trigger": labelled})) == f"{close.target_name}:{close.flow}"
    delivery = close.trigger.delivery_id
    assert (sibling_id(single), sibling_id(second)) == (f"gh-{delivery}-r1", f"gh-{delivery}")
