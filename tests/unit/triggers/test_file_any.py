"""Whatever stands in the file: it is taken whole, or refused in words that repeat nothing of it."""

import copy
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pidispatch.triggers.entry import EVENT_PARTS, CronOn, ForgeRun, LocalRun
from pidispatch.triggers.file import parse_triggers
from pidispatch.triggers.refused import (
    CLOSING,
    EVENTS,
    NEVER_CRON,
    OLD_TOOLS,
    SWITCHES_CRON,
    SWITCHES_RULES,
    UNSERVED_CRON,
    UNSERVED_RULES,
)
from pidispatch.triggers.vocabulary import VERDICTS
from pidispatch.values.errors import ConfigError
from pidispatch.values.forge import FORGES
from tests.unit.triggers.entries import ABSENT, PATH, entry, refusal, rule, text

HUSH = "hush-hush"
_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5) | st.just(HUSH),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


def _aliases(*models: Any) -> list[str]:
    return [str(field.alias) for model in models for field in model.model_fields.values()]


_ON = sorted({*_aliases(CronOn, *EVENT_PARTS.values()), *CLOSING})
_RUN = sorted(
    {
        *_aliases(LocalRun, ForgeRun),
        *(*UNSERVED_CRON, *UNSERVED_RULES, *SWITCHES_CRON, *SWITCHES_RULES, *NEVER_CRON, *OLD_TOOLS, "waitfor"),
    }
)

_WORDS = st.text("abc :é", min_size=1, max_size=4).filter(lambda word: word.strip() != "")
_LABELS = st.lists(_WORDS, max_size=2)


@st.composite
def good_rules(draw: st.DrawFn) -> dict[str, Any]:
    """Rules that are good."""
    row = draw(st.sampled_from(list(FORGES.values())))
    trigger = draw(st.sampled_from([one for one in EVENTS if one != "issue" or row.close_word]))
    on: dict[str, Any] = {}
    if trigger == "pull_request":
        words = st.sampled_from([word for word in row.pull_actions if word != row.close_word])
        on["action"] = draw(st.lists(words, min_size=1, max_size=3))
        if row.close_word and draw(st.booleans()):
            on["action"] = [row.close_word]
        elif "review_submitted" in on["action"] and draw(st.booleans()):
            on["reviewState"] = draw(st.lists(st.sampled_from(VERDICTS), min_size=1))
    closing = trigger == "issue" or on.get("action") == [row.close_word]
    if closing and draw(st.booleans()):
        on |= {"number": draw(st.integers(1)), "once": draw(st.booleans())}
        if on["once"] and draw(st.booleans()):
            on["disarmed"] = {"at": draw(_WORDS)} | draw(st.sampled_from([{}, {"jobId": "gh-1"}]))
    if trigger == "label" or (trigger == "pull_request" and not closing and row.pull_labels):
        on |= {"any": draw(st.lists(_WORDS, min_size=1)), "all": draw(_LABELS), "none": draw(_LABELS)}
    if trigger == "comment":
        on["phrase"] = draw(_WORDS)
    run: dict[str, Any] = draw(
        st.fixed_dictionaries(
            {},
            optional={
                "provider": st.none() | st.just("openai"),
                "maxTurns": st.none() | st.integers(1, 99),
                "maxTokens": st.integers(1, 99),
                "packages": st.just(False),
                "skillsDir": st.just("/srv/skills"),
                "instructions": _WORDS,
            },
        )
    )
    if not on.get("once") and draw(st.booleans()):
        run["replicas"] = draw(st.integers(2, 3))
    if draw(st.booleans()):
        run |= {"flow": ABSENT, "command": draw(st.sampled_from(["wf", "wf deploy"])), "instructions": ABSENT}
    return rule(str(row.kind), trigger, on, run)


def _entries(least: int) -> Any:
    # At most one rule for comments of each forge.
    return st.lists(
        good_rules(),
        min_size=least,
        max_size=4,
        unique_by=lambda one: one["run"]["kind"] if "phrase" in one["on"] else id(one),
    )


_CRON = st.sampled_from([[], [entry()], [entry({"missed": "once"}), entry({"id": "b"}, {"maxTokens": 1})]])


@given(_entries(0), _CRON, st.randoms(use_true_random=False))
def test_what_comes_out_goes_in_again_and_comes_out_the_same(rules: Any, schedules: Any, random: Any) -> None:
    written = [*rules, *schedules]
    random.shuffle(written)
    file = parse_triggers(text(*written), PATH)
    again = parse_triggers(json.dumps(file.document()), PATH)
    assert again == file
    assert again.document() == file.document()
    assert len(file.triggers) == len(written)
    # Nothing that was written is lost but what asks for nothing.
    document: Any = file.document()
    for one, out in zip(written, document["triggers"], strict=True):
        assert out == {
            part: {key: value for key, value in fields.items() if value not in (None, [])}
            for part, fields in one.items()
        }


@settings(max_examples=400)
@given(_entries(1), _CRON, st.data())
def test_a_good_file_with_anything_in_it_is_taken_or_refused(rules: Any, schedules: Any, data: st.DataObject) -> None:
    written = copy.deepcopy([*schedules, *rules])
    for _ in range(data.draw(st.integers(1, 3))):
        part = data.draw(st.sampled_from(["on", "run"]))
        fields = data.draw(st.sampled_from(written))[part]
        match data.draw(st.sampled_from(["set", "take", "add", "swap"])):
            case "set":
                fields[data.draw(st.sampled_from(_ON if part == "on" else _RUN))] = data.draw(_JSON)
            case "take":
                fields.pop(data.draw(st.sampled_from(sorted(fields))))
            case "add":
                fields[data.draw(st.text(max_size=5) | st.sampled_from([*_ON, *_RUN]))] = data.draw(_JSON)
            case "swap":
                fields |= data.draw(st.sampled_from(written))[part]
        if not fields:
            break
    _assert_taken_or_refused(text(*written), len(written))


@given(_JSON)
def test_any_json_is_taken_or_refused(value: Any) -> None:
    _assert_taken_or_refused(json.dumps(value), None)
    _assert_taken_or_refused(json.dumps({"triggers": value}), None)
    _assert_taken_or_refused(json.dumps({"triggers": [value]}), 1)
    _assert_taken_or_refused(json.dumps({"triggers": [{"on": value, "run": value}]}), 1)


def _assert_taken_or_refused(content: str, entries: int | None) -> None:
    try:
        file = parse_triggers(content, PATH)
    except ConfigError:
        # Of ids and keys nothing is promised: they name the place.
        told = [line.partition('": ')[2] for line in refusal(content).splitlines()]
        assert not any(HUSH in line for line in told)
        return
    assert entries in (None, len(file.triggers))
    assert parse_triggers(json.dumps(file.document()), PATH) == file


@pytest.mark.parametrize("part", ["on", "run"])
@pytest.mark.parametrize("base", [entry(), rule(), rule("gitlab", "comment"), rule("github", "pull_request")])
def test_no_message_repeats_what_stands_in_a_field(base: Any, part: str) -> None:
    for name in _ON if part == "on" else _RUN:
        for value in (HUSH + "/ !", [HUSH + "!"], {HUSH: HUSH}):
            written = copy.deepcopy(base)
            written[part][name] = value
            try:
                parse_triggers(text(written), PATH)
            except ConfigError as error:
                place, _, told = error.message.partition('": ')
                assert HUSH not in told, (name, told)
                assert f'field "{part}.{name}' in place
