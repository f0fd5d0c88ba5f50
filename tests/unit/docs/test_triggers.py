"""The schema of the triggers file says what the program says, as far as a schema can."""

import json
import re
from typing import Any

import pytest

from pidispatch.triggers.refused import CLOSING, NEVER_CRON, OLD_TOOLS, UNSERVED
from tests.unit.triggers.entries import entry
from tools.docs_triggers import PARTS, triggers_schema
from tools.docs_values import triggers_page

SCHEMA: Any = json.loads(triggers_schema())


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
        assert example in schema.get("enum", [example]), name
        assert example == schema.get("const", example), name
        if "pattern" in schema:
            assert re.search(schema["pattern"], example), name
        assert f"| `{name}` |" in triggers_page()


def test_what_refuses_the_file_is_false_in_the_schema_and_on_the_page() -> None:
    page = triggers_page()
    for part, names in {"on": CLOSING, "run": (*NEVER_CRON, *OLD_TOOLS, *UNSERVED)}.items():
        for name in names:
            assert fields(part)[name] in (False, {"type": "null"}), name
            assert f"| `{part}.{name}` |" in page


def test_the_smallest_entry_has_what_the_schema_asks_for_and_no_more() -> None:
    smallest = entry()
    for part, model in PARTS.items():
        assert sorted(smallest[part]) == sorted(SCHEMA["$defs"][model.__name__]["required"])
