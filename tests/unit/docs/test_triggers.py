"""The schema of the triggers file says what the program says, as far as a schema can."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from jsonschema_rs import validator_for

from pidispatch.triggers.file import parse_triggers
from pidispatch.triggers.refused import CLOSING, NEVER_CRON, OLD_TOOLS, UNSERVED_CRON, UNSERVED_RULES
from pidispatch.values.forge import FORGES
from tests.unit.triggers import test_file, test_file_any, test_file_rules
from tests.unit.triggers.entries import PATH, entry, rule, text
from tests.unit.triggers.test_file_rules import PAIRS
from tools.docs_triggers import PARTS, triggers_schema
from tools.docs_values import triggers_page

ROOT = Path(__file__).resolve().parents[3]
SCHEMA: Any = json.loads(triggers_schema())
VALIDATOR = validator_for(SCHEMA)


def fields(part: str) -> dict[str, Any]:
    found: dict[str, Any] = SCHEMA["$defs"][PARTS[part].__name__]["properties"]
    return found


@pytest.mark.parametrize("part", PARTS)
def test_each_served_field_has_its_words_and_an_example_that_the_schema_takes(part: str) -> None:
    served = {
        name: schema for name, schema in fields(part).items() if isinstance(schema, dict) and "description" in schema
    }
    assert served.keys() == {str(field.alias) for field in PARTS[part].model_fields.values()}
    for name, schema in served.items():
        assert schema["description"].endswith("."), name
        [example] = schema["examples"]
        assert validator_for({**schema, "$defs": SCHEMA["$defs"]}).is_valid(example), name
        assert f"| `{name}` |" in triggers_page()


def test_what_refuses_the_file_is_false_in_the_schema_and_on_the_page() -> None:
    page = triggers_page()
    for part, place, names in (
        ("`on` of a schedule", "on", CLOSING),
        ("`on` of a rule for labels", "on", CLOSING),
        ("`on` of a rule for comments", "on", ("missed", *CLOSING)),
        ("`run` of a schedule", "run", (*NEVER_CRON, *OLD_TOOLS, *UNSERVED_CRON)),
        ("`run` of a rule for events", "run", ("portfolio", *OLD_TOOLS, *UNSERVED_RULES)),
    ):
        for name in names:
            assert fields(part)[name] in (False, {"type": "null"}), name
            assert f"| `{place}.{name}` |" in page


def test_every_word_of_every_forge_is_on_the_page() -> None:
    page = triggers_page()
    for row in FORGES.values():
        [line] = [line for line in page.splitlines() if line.startswith(f"| {row.title} |")]
        for word in (row.kind, *row.pull_actions, row.pull_label_action, row.close_word):
            assert word is None or f"`{word}`" in line


def test_the_smallest_entry_has_what_the_schema_asks_for_and_no_more() -> None:
    smallest = [("schedule", entry()), *((" ".join(pair), rule(*pair)) for pair in PAIRS)]
    for name, written in smallest:
        assert VALIDATOR.is_valid({"triggers": [written]}), name
        for part, given_fields in written.items():
            for field in given_fields:
                less = {key: value for key, value in given_fields.items() if key != field}
                assert not VALIDATOR.is_valid({"triggers": [written | {part: less}]}), (name, part, field)


#: What a schema cannot say, or only in a way that nobody could read: spellings of keys, grammars of cron and of images,
#: what two entries have in common, and that 7.0 is no whole number.
UNSAID = {
    "a look-alike",
    "a field of run in on",
    "a field of on in run",
    "a field of schedules in run",
    "a misspelling of one",
    "model_name",
    "modelId",
    "nearly a field",
    "on.waitFor",
    "run.waitfor",
    "waitfor",
    "duplicate cron id",
    "second github comment trigger",
    "pattern grammar",
    "pattern never",
    "image",
    "image blank around",
    "image dash",
    "number fraction",
    "turns fraction",
    "replicas fraction",
}


def refused() -> Iterator[tuple[str, Any]]:
    """Files that the program refuses."""
    for name, (on, run, _, _) in test_file.FIELDS.items():
        yield name, [entry(on, run)]
    for name, (kind, trigger, on, run, _, _) in test_file_rules.FIELDS.items():
        yield name, [rule(kind, trigger, on, run)]
    for name, (entries, _) in test_file_rules.E12.items():
        yield name, entries
    for name, (written, _) in test_file.SHAPES.items():
        yield name, [written]


@pytest.mark.parametrize(("name", "entries"), [pytest.param(*one, id=one[0]) for one in refused()])
def test_the_schema_refuses_what_it_can_say(name: str, entries: Any) -> None:
    assert VALIDATOR.is_valid({"triggers": entries}) is (name in UNSAID)


@given(test_file_any.good_rules())
def test_the_schema_takes_what_the_program_takes(written: Any) -> None:
    assert parse_triggers(text(written), PATH)
    assert VALIDATOR.is_valid({"triggers": [written]})


@pytest.mark.parametrize("path", sorted((ROOT / "triggers").rglob("*.json")), ids=lambda path: path.name)
def test_the_shipped_files_are_good(path: Path) -> None:
    shipped = json.loads(path.read_text(encoding="utf-8"))
    if path.name.endswith(".schema.json"):
        return
    VALIDATOR.validate(shipped)
    if path.parent.name == "examples":
        assert shipped["$schema"] == "../triggers.schema.json"
        assert re.search(rf"\bexamples/{re.escape(path.name)}\b", (ROOT / "docs/how-to/triggers.md").read_text())
