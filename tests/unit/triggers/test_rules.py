"""The rules of a file as events meet them, and what each is known by."""

import json
from pathlib import Path
from typing import Any

import pytest

from pidispatch.triggers.file import parse_triggers
from pidispatch.triggers.identity import breaker_of, oneshot_of
from pidispatch.triggers.rules import Rules
from pidispatch.values.event import Occasion
from pidispatch.values.forge import FORGES, JobKind
from tests.unit.triggers.entries import ABSENT, entry, parsed, rule

ONCE = {"number": 40, "once": True}
MARK = {"at": "2026-01-31T12:00:00Z", "jobId": "gh-1"}


def names(written: Any) -> tuple[str, str | None]:
    [trigger] = parsed(written).triggers
    return breaker_of(trigger), oneshot_of(trigger)


def test_rules_are_kept_by_forge_and_occasion_in_the_order_of_the_file() -> None:
    review = rule("github", "pull_request", {"action": ["review_submitted"]})
    close = rule("github", "pull_request", {"action": ["closed", "closed"]})
    spent = rule("github", "issue", {**ONCE, "disarmed": MARK}, {"flow": "spent"})
    written = [entry(), rule(), review, close, spent, rule("github", "issue"), rule("gitlab"), rule(run={"flow": "b"})]
    found = Rules(parsed(*written, rule("github", "comment", run={"flow": ABSENT, "command": "wf"})))
    places = {
        occasion: [one.index for one in found.of(JobKind.GITHUB, occasion)]
        for occasion in Occasion
        if found.of(JobKind.GITHUB, occasion)
    }
    assert places == {
        Occasion.LABEL: [1, 7],
        Occasion.PULL_REQUEST: [2],
        Occasion.REVIEW: [2],
        Occasion.CLOSE: [3, 5],
        Occasion.COMMENT: [8],
    }
    assert [one.index for one in found.of(JobKind.GITLAB, Occasion.LABEL)] == [6]
    assert not found.of(JobKind.FORGEJO, Occasion.LABEL)
    assert [one.index for one in found.all] == [1, 2, 3, 5, 6, 7, 8]
    assert len(found) == 7
    assert found.forges == {JobKind.GITHUB, JobKind.GITLAB}
    # Of spent rules, of schedules and of commands none is a flow that a comment can name.
    assert found.flows == {"fix", "b"}
    assert [one.index for one in found.all if one.closes] == [3, 5]


@pytest.mark.parametrize("row", [row for row in FORGES.values() if row.close_word], ids=lambda row: str(row.kind))
def test_a_rule_for_closing_fires_on_nothing_else(row: Any) -> None:
    found = Rules(parsed(rule(row.kind, "issue"), rule(row.kind, "pull_request", {"action": [row.close_word]})))
    assert [one.occasions for one in found.all] == [{Occasion.CLOSE}] * 2


def test_a_schedule_is_known_by_its_id_and_never_spent() -> None:
    assert names(entry()) == ("nightly", None)


def test_a_rule_is_counted_by_what_fires_it_and_what_it_runs() -> None:
    known = names(rule())[0]
    assert len(known) == 16
    assert int(known, 16) >= 0
    same = [
        rule(run={"image": "pi-job:2", "replicas": 2, "model": "m"}),
        rule(on={"all": [], "note": 1}),
        dict(reversed(rule().items())),
    ]
    assert {names(one)[0] for one in same} == {known}
    other = [
        rule("forgejo"),
        rule(on={"any": ["pi:fix", "b"]}),
        rule(on={"any": ABSENT, "all": ["pi:fix"]}),
        rule(run={"flow": "other"}),
        rule(run={"flow": ABSENT, "command": "fix"}),
        rule("github", "comment"),
    ]
    assert len({known, *(names(one)[0] for one in other)}) == len(other) + 1


def test_a_rule_that_fires_once_is_known_by_all_of_it_but_its_mark() -> None:
    armed = rule("github", "issue", ONCE)
    known = names(armed)
    assert known[1] is not None
    assert known[0] != known[1]
    assert names(rule("github", "issue", {**ONCE, "disarmed": MARK})) == known
    assert names(rule("github", "issue", ONCE, {"image": "pi-job:2"}))[0] == known[0]
    other = [
        rule("github", "issue", {**ONCE, "number": 41}),
        rule("github", "issue", ONCE, {"image": "pi-job:2"}),
        rule("github", "pull_request", {**ONCE, "action": ["closed"]}),
        rule("forgejo", "issue", ONCE),
    ]
    assert len({known[1], *(names(one)[1] for one in other)}) == len(other) + 1
    assert names(rule("github", "issue", {"number": 40}))[1] is None
    assert names(rule("github", "issue", {"number": 40, "once": False}))[1] is None
    assert names(rule())[1] is None


def test_the_names_stay_what_they_were() -> None:
    # They stand in the store: whoever changes how they are made forgets pauses and marks.
    assert names(rule())[0] == "0c6217517d620c68"
    assert names(rule("github", "issue", ONCE)) == ("0805fb633c994060", "2873ac6d58a84125")


def test_blanks_and_the_order_of_keys_make_no_difference() -> None:
    one = rule("github", "issue", ONCE)
    turned = {part: dict(reversed(fields.items())) for part, fields in one.items()}
    spaced = parse_triggers(json.dumps({"triggers": [turned]}, indent=8), Path("triggers.json"))
    assert (breaker_of(spaced.triggers[0]), oneshot_of(spaced.triggers[0])) == names(one)


def test_rules_carry_their_names() -> None:
    [found] = Rules(parsed(rule("github", "issue", ONCE))).all
    assert (found.breaker, found.oneshot) == names(rule("github", "issue", ONCE))
