"""The triggers file is taken as a whole or refused as a whole, in words that lead to the place."""

import json
from pathlib import Path
from typing import Any

import pytest

from pidispatch.triggers.entry import Missed
from pidispatch.triggers.file import parse_triggers
from pidispatch.triggers.refused import NEVER_CRON, NULL_IS_ABSENT, SWITCHES_CRON, UNSERVED_CRON
from pidispatch.values.errors import ConfigError
from tests.unit.triggers.entries import ABSENT, PATH, document, entry, refusal, text

ROOT = Path(__file__).resolve().parents[3]
NAMED = 'cron trigger "nightly"'


def test_an_entry_comes_out_as_it_was_written_and_nothing_is_added() -> None:
    assert document(entry()) == [entry()]
    whole = entry(
        {"missed": "once"},
        {
            "provider": "openai",
            "model": "~openai/gpt-5.4:mini@x",
            "maxTurns": 7,
            "maxTokens": 70_000,
            "image": "registry.local:5000/pi/job:latest",
            "github": False,
            "packages": False,
            "resume": False,
            "portfolio": False,
        },
    )
    assert document(whole) == [whole]


def test_what_is_unknown_is_dropped_and_null_is_left_out_where_it_may_be() -> None:
    nulls = dict.fromkeys(("provider", "model", "maxTurns", "models", "maxCostUsd"))
    unknown = {"note": "x", "repository": 1, "any": ["a"], "phrase": None}
    assert document(entry(unknown, nulls | unknown) | {"more": 1}) == [entry()]
    assert document(entry({"any": ["a"], "all": [], "none": [1], "action": "x", "reviewState": 1})) == [entry()]


def test_the_place_of_an_entry_is_its_index_and_what_is_left_out_is_none() -> None:
    found = parse_triggers(text(entry(), entry({"id": "Other.1_x-", "pattern": " */5 0 3 * * * "})), PATH)
    (_, first), (_, second) = found.schedules
    assert (first.on.id, second.on.id) == ("nightly", "Other.1_x-")
    assert second.on.pattern == " */5 0 3 * * * "
    assert (first.on.missed, first.run.provider, first.run.max_turns, first.run.resume) == (None, None, None, None)
    assert first.run.folder == Path("/srv/site")
    assert document(entry({"missed": "skip"}))[0]["on"]["missed"] == Missed.SKIP
    with pytest.raises(ValueError, match="frozen"):
        first.run.task = "another"


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("", "is no JSON"),
        ("{]", "line 1, column 2: is no JSON"),
        ('{"triggers": [NaN]}', "is no JSON"),
        ('{"triggers": [' + "[" * 100_000, "is no JSON"),
        (f'{{"triggers": [{"9" * 5000}]}}', "is no JSON"),
        ("[]", 'it is no object. Write {"triggers": [...]}'),
        ("null", "it is no object"),
        ("{}", 'field "triggers": is missing. Write {"triggers": [...]}'),
        ('{"triggers": {}}', 'field "triggers": must be a list'),
        ('{"triggers": null}', 'field "triggers": must be a list'),
        ('{"triggers": [], "triggers": []}', 'field "triggers" stands twice at the top'),
    ],
)
def test_a_file_that_is_no_triggers_file(content: str, told: str) -> None:
    assert told in refusal(content)


def test_a_doubled_key_is_found_at_any_depth() -> None:
    once = text(entry({"note": {"deep": [{"x": 1, "y": 2}]}}))
    twice = once.replace('"y"', '"x"')
    assert 'field "x" stands twice in "triggers[0].on.note.deep[0]"' in refusal(twice)
    assert 'field "flow" stands twice in "triggers[0].run"' in refusal(once.replace('"task"', '"flow": "a", "task"'))


@pytest.mark.parametrize(
    ("run", "place"),
    [
        ({"task": "a\ud800"}, "triggers[0].run.task"),
        ({"\udfff": 1}, "triggers[0].run.\\u{DFFF}"),
        ({"x": [{"y": "\ud800"}]}, "triggers[0].run.x[0].y"),
    ],
)
def test_text_that_cannot_be_written_is_refused(run: dict[str, Any], place: str) -> None:
    assert f'field "{place}": holds half of a surrogate pair' in refusal(text(entry(run=run)))


#: What an entry has instead, and what is told of it, with its name.
SHAPES: dict[str, tuple[Any, str]] = {
    "no object": ("x", "trigger at index 0: it is no object"),
    "null": (None, "trigger at index 0: it is no object"),
    "no on": ({"run": {}}, 'trigger at index 0, field "on": is missing'),
    "no run": ({"on": {}}, 'trigger at index 0, field "run": is missing'),
    "on is a list": ({"on": [], "run": {}}, 'trigger at index 0, field "on": must be an object'),
    "run is null": ({"on": {}, "run": None}, 'trigger at index 0, field "run": must be an object'),
    # The order of the checks: shapes, then the two kinds, then their pairing, then fields.
    "type before kind": ({"on": {}, "run": {}}, 'field "on.type": must be one of cron, label'),
    "disarmed is no type": ({"on": {"type": "disarmed"}, "run": {}}, 'field "on.type": must be one of'),
    "type is a list": ({"on": {"type": ["cron"]}, "run": {}}, 'field "on.type": must be one of'),
    "kind": ({"on": {"type": "cron"}, "run": {"kind": "svn"}}, 'field "run.kind": must be one of local, github'),
    "type before kind, again": ({"on": {"type": "closed"}, "run": {"kind": "svn"}}, 'field "on.type": must be one of'),
    "kind before the pair": ({"on": {"type": "label"}, "run": {}}, 'Write for example: "kind": "github"'),
    "the pair before fields": (
        {"on": {"type": "label", "waitFor": 1}, "run": {"kind": "local", "portfolio": 1}},
        'field "run.kind": must not be local where an event starts the job. Name the forge: github, gitlab, forgejo',
    ),
}


@pytest.mark.parametrize("name", SHAPES)
def test_an_entry_that_is_none(name: str) -> None:
    written, told = SHAPES[name]
    assert told in refusal(text(written))


#: `on`, `run`, the field that is named, and a part of the reason.
FIELDS: dict[str, tuple[dict[str, Any], dict[str, Any], str, str]] = {
    "id missing": ({"id": ABSENT}, {}, "on.id", "is missing"),
    "id blank": ({"id": " "}, {}, "on.id", "must not be empty or blank"),
    "id null": ({"id": None}, {}, "on.id", "must be text"),
    "id number": ({"id": 7}, {}, "on.id", "must be text"),
    "id charset": ({"id": "a b"}, {}, "on.id", "letters, digits"),
    "id foreign": ({"id": "nächtlich"}, {}, "on.id", "letters, digits"),
    "id newline": ({"id": "a\n"}, {}, "on.id", "letters, digits"),
    "id long": ({"id": "a" * 129}, {}, "on.id", "1 to 128"),
    "pattern missing": ({"pattern": ABSENT}, {}, "on.pattern", "is missing"),
    "pattern null": ({"pattern": None}, {}, "on.pattern", "must be text"),
    "pattern blank": ({"pattern": "  "}, {}, "on.pattern", "must not be empty or blank"),
    "pattern seven": ({"pattern": "* * * * * * *"}, {}, "on.pattern", "must have 5 fields"),
    "pattern grammar": ({"pattern": "0 25 * * *"}, {}, "on.pattern", "is no cron pattern: bad hour"),
    "pattern never": ({"pattern": "0 0 30 2 *"}, {}, "on.pattern", "is no cron pattern: bad day-of-month"),
    "missed": ({"missed": "twice"}, {}, "on.missed", "must be skip or once"),
    "missed true": ({"missed": True}, {}, "on.missed", "must be skip or once"),
    "missed null": ({"missed": None}, {}, "on.missed", "must be skip or once"),
    "missed list": ({"missed": ["once"]}, {}, "on.missed", "must be skip or once"),
    "number": ({"number": 4}, {}, "on.number", "has no meaning for a schedule"),
    "once": ({"once": False}, {}, "on.once", "has no meaning for a schedule"),
    "disarmed": ({"disarmed": {"at": "x"}}, {}, "on.disarmed", "has no meaning for a schedule"),
    "folder missing": ({}, {"folder": ABSENT}, "run.folder", "is missing"),
    "folder blank": ({}, {"folder": "\t"}, "run.folder", "must not be empty or blank"),
    "folder null": ({}, {"folder": None}, "run.folder", "must be text"),
    "folder relative": ({}, {"folder": "site"}, "run.folder", "must be an absolute path"),
    "folder with a null character": ({}, {"folder": "/a\0b"}, "run.folder", "null character"),
    "task missing": ({}, {"task": ABSENT}, "run.task", "is missing"),
    "task blank": ({}, {"task": " \n"}, "run.task", "must not be empty or blank"),
    "task list": ({}, {"task": ["x"]}, "run.task", "must be text"),
    "neither flow nor command": ({}, {"flow": ABSENT}, "run.flow", "is missing"),
    "flow blank": ({}, {"flow": ""}, "run.flow", "must not be empty or blank"),
    "flow null": ({}, {"flow": None}, "run.flow", "must be text"),
    "flow that no skill is called": ({}, {"flow": "Fix!"}, "run.flow", "lower-case letters"),
    "flow and command": ({}, {"command": "wf deploy"}, "run.command", "stands beside run.flow"),
    "flow and command, null": ({}, {"command": None}, "run.command", "stands beside run.flow"),
    "provider": ({}, {"provider": "-x"}, "run.provider", "must be 1 to 64"),
    "provider long": ({}, {"provider": "a" * 65}, "run.provider", "must be 1 to 64"),
    "provider number": ({}, {"provider": 1}, "run.provider", "must be text"),
    "model": ({}, {"model": "a b"}, "run.model", "must be a model's id"),
    "model sign alone": ({}, {"model": "~"}, "run.model", "must be a model's id"),
    "model long": ({}, {"model": "@" + "a" * 64}, "run.model", "must be a model's id"),
    "turns 0": ({}, {"maxTurns": 0}, "run.maxTurns", "must be 1 or more"),
    "turns text": ({}, {"maxTurns": "7"}, "run.maxTurns", "must be a whole number"),
    "turns true": ({}, {"maxTurns": True}, "run.maxTurns", "must be a whole number"),
    "turns fraction": ({}, {"maxTurns": 7.0}, "run.maxTurns", "must be a whole number"),
    "turns without end": ({}, {"maxTurns": 10**10}, "run.maxTurns", "must be at most"),
    "tokens 0": ({}, {"maxTokens": 0}, "run.maxTokens", "must be 1 or more"),
    "tokens text": ({}, {"maxTokens": "7"}, "run.maxTokens", "must be a whole number"),
    "tokens null": ({}, {"maxTokens": None}, "run.maxTokens", "must be a whole number"),
    "image dash": ({}, {"image": "-x"}, "run.image", "is no image reference"),
    "image blank": ({}, {"image": " "}, "run.image", "must not be empty or blank"),
    "image blank around": ({}, {"image": "pi-job "}, "run.image", "is no image reference"),
    "image null": ({}, {"image": None}, "run.image", "must be text"),
    "packages text": ({}, {"packages": "false"}, "run.packages", "must be false"),
    "packages null": ({}, {"packages": None}, "run.packages", "must be false"),
    "packages 0": ({}, {"packages": 0}, "run.packages", "must be false"),
    "resume text": ({}, {"resume": "no"}, "run.resume", "must be false"),
    "resume": ({}, {"resume": True}, "run.resume", "cannot be true in a schedule"),
    "tools": ({}, {"tools": []}, "run.tools", "is no field"),
    "noTools": ({}, {"noTools": True}, "run.noTools", "is no field"),
    "nearly a field": ({}, {"modelId": "x"}, "run.modelId", "is no field, and run.model is one"),
    "a field of run in on": ({"backend": "x"}, {}, "on.backend", "is no field, and run.backend is one"),
    "a field of on in run": ({}, {"missed": "once"}, "run.missed", "is no field, and on.missed is one"),
    "waitfor": ({}, {"waitfor": []}, "run.waitfor", "is no field, and run.waitFor is one"),
    "on.waitFor": ({"waitFor": []}, {}, "on.waitFor", "is no field, and run.waitFor is one"),
}


@pytest.mark.parametrize("name", FIELDS)
def test_a_field_that_cannot_stand_so(name: str) -> None:
    on, run, field, reason = FIELDS[name]
    message = refusal(text(entry(on, run)))
    assert f'field "{field}": ' in message
    assert reason in message
    # Only what names the entry is repeated, and what it may be.
    for value in (*on.values(), *run.values()):
        if isinstance(value, str) and len(value) > 5 and field not in ("on.id", "on.missed"):
            assert value.strip() not in message.partition(". ")[0]


@pytest.mark.parametrize("name", [*UNSERVED_CRON, *SWITCHES_CRON])
@pytest.mark.parametrize("value", [True, "x", ["x"]])
def test_what_nothing_serves_refuses_the_file(name: str, value: object) -> None:
    run = {name: value, "flow": ABSENT} if name == "command" else {name: value}
    told = f'{NAMED}, field "run.{name}": '
    message = refusal(text(entry(run=run)))
    unserved = value is True or name in UNSERVED_CRON
    assert (f"{told}is not served by this version" if unserved else f"{told}must be false") in message


@pytest.mark.parametrize("name", [name for name in UNSERVED_CRON if name not in NULL_IS_ABSENT and name != "command"])
def test_null_is_a_value_where_the_page_does_not_say_otherwise(name: str) -> None:
    assert f'{NAMED}, field "run.{name}": is not served by this version' in refusal(text(entry(run={name: None})))


@pytest.mark.parametrize("name", NEVER_CRON)
@pytest.mark.parametrize("value", [None, 1, [], "x", {}])
def test_what_a_schedule_never_has_refuses_the_file_whatever_it_holds(name: str, value: object) -> None:
    assert f'{NAMED}, field "run.{name}": cannot stand in a schedule' in refusal(text(entry(run={name: value})))


def test_every_broken_entry_is_told_by_its_own_name() -> None:
    message = refusal(text(entry(run={"task": ""}), entry({"id": "b"}), entry({"id": ""}), "x", entry({"id": "b"})))
    assert [line.partition(": ")[0] for line in message.splitlines()] == [
        'cron trigger "nightly", field "run.task"',
        'trigger at index 2, field "on.id"',
        "trigger at index 3",
        'trigger at index 4, field "on.id"',
    ]


def test_the_path_is_shown_fit_for_a_terminal() -> None:
    with pytest.raises(ConfigError, match=r"^/a\\u\{001B\}b: "):
        parse_triggers("", Path("/a\x1bb"))


@pytest.mark.parametrize("path", sorted((ROOT / "triggers").rglob("*.json")), ids=lambda path: path.name)
def test_the_shipped_files_load(path: Path) -> None:
    content = path.read_text(encoding="utf-8")
    if path.name.endswith(".schema.json"):
        assert "is missing" in refusal(content)
        return
    found = parse_triggers(content, path)
    shipped = json.loads(content)["triggers"]
    assert found.document()["triggers"] == shipped
    assert bool(shipped) is (path.parent.name == "examples")
