"""The operator's files: what is refused, and in which words."""

import os
from pathlib import Path
from typing import Literal

import pytest
from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, field_validator

from pidispatch.config import operator_file
from pidispatch.config.operator_file import at_index, parse_file, parse_json, read_bytes, text_of
from pidispatch.values.errors import ConfigError

PATH = Path("/etc/pi-dispatch/rules.json")
SECRET = "sk-hush"


class On(BaseModel):
    model_config = ConfigDict(extra="forbid")
    id: str = Field(examples=["nightly"])
    kind: Literal["a", "b"] = "a"
    tags: list[str] | None = Field(default=None, min_length=1)

    @field_validator("id", mode="after")
    @classmethod
    def _plain(cls, text: str, _: ValidationInfo) -> str:
        if ":" in text:
            raise ValueError("holds a colon")
        return text


class Rule(BaseModel):
    model_config = ConfigDict(json_schema_extra={"examples": [{"on": {"id": "nightly"}}]})
    on: On
    count: int = Field(default=1, strict=True)


class Rules(BaseModel):
    rules: list[Rule]


def refusal(text: str, **more: object) -> list[str]:
    """The lines of the message, without the path that each of them begins with."""
    with pytest.raises(ConfigError) as caught:
        parse_file(Rules, text, PATH, **more)  # type: ignore[arg-type]
    assert (caught.value.cause, caught.value.exit_code) == ("operator-file", 2)
    assert SECRET not in caught.value.message
    lines = caught.value.message.split("\n")
    assert all(line.startswith(f"{PATH}: ") for line in lines)
    return [line.removeprefix(f"{PATH}: ") for line in lines]


def test_what_is_good_becomes_the_model() -> None:
    assert parse_file(Rules, '{"rules": [{"on": {"id": "x"}, "new": 1}]}', PATH).rules[0].on.id == "x"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("[]", "must be an object. See the schema of the file"),
        ("{}", 'field "rules": is missing. See the schema of the file'),
        ('{"rules": {}}', 'field "rules": must be a list. See the schema of the file'),
        ('{"rules": [7]}', 'entry at index 0: must be an object. Write for example: {"on": {"id": "nightly"}}'),
        (
            '{"rules": [{"on": {"id": "x"}}, {"on": {"id": 7}}]}',
            'entry at index 1, field "on.id": must be text. Write for example: "id": "nightly"',
        ),
        (
            '{"rules": [{"on": {"id": "sk-hush:"}}]}',
            'entry at index 0, field "on.id": holds a colon. Write for example: "id": "nightly"',
        ),
        (
            '{"rules": [{"on": {"id": "x", "sk\\u001bx": "sk-hush"}}]}',
            'entry at index 0, field "on.sk\\u{001B}x": is no field of this file. '
            'Write for example: {"on": {"id": "nightly"}}',
        ),
        (
            '{"rules": [{"on": {"id": "x", "tags": []}}]}',
            'entry at index 0, field "on.tags": must not be empty. Write for example: {"on": {"id": "nightly"}}',
        ),
        (
            '{"rules": [{"on": {"id": "x", "tags": ["a", 7]}}]}',
            'entry at index 0, field "on.tags[1]": must be text. Write for example: {"on": {"id": "nightly"}}',
        ),
        (
            '{"rules": [{"on": {"id": "x"}, "count": "sk-hush"}]}',
            'entry at index 0, field "count": must be a whole number. Write for example: {"on": {"id": "nightly"}}',
        ),
        (
            '{"rules": [{"on": {"id": "x", "kind": "sk-hush"}}]}',
            "entry at index 0, field \"on.kind\": Input should be 'a' or 'b'. "
            'Write for example: {"on": {"id": "nightly"}}',
        ),
    ],
)
def test_a_fault_names_entry_field_reason_and_remedy(text: str, line: str) -> None:
    assert refusal(text) == [line]


def test_all_faults_are_told_at_once_and_not_without_end() -> None:
    many = '{"rules": [' + ", ".join(["1"] * 50) + "]}"
    lines = refusal(many)
    assert (len(lines), lines[-1]) == (21, "and 30 more")


def test_entries_can_have_names() -> None:
    def named(index: int, entry: object) -> str:
        return f"rule {entry['on']['id']!r}" if isinstance(entry, dict) else at_index("rule")(index, entry)

    lines = refusal('{"rules": [{"on": {"id": "a", "kind": 1}}, 7]}', named=named)
    assert [line.split(":")[0] for line in lines] == ["rule 'a', field \"on.kind\"", "rule at index 1"]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ('{"rules": [\n  sk-hush]}', "line 2, column 3: is no JSON: Expecting value. Mend it there"),
        ("", "line 1, column 1: is no JSON: Expecting value. Mend it there"),
        *[
            (text, "is no JSON that can be read: a number or a nesting is out of bounds. Write plain JSON")
            for text in ('{"rules": NaN}', "[" * 200_000, "9" * 5_000)
        ],
    ],
    ids=["line", "empty", "nan", "nesting", "digits"],
)
def test_what_is_no_json(text: str, line: str) -> None:
    assert refusal(text) == [line]


def test_a_key_that_stands_twice_is_told_with_its_place() -> None:
    text = '{"rules": [{"on": {"id": "x", "id": "sk-hush", "id": "y"}}], "a": [[{"b": 1, "b": 1}]], "a": 2, "a": [{}]}'
    assert refusal(text, unique_keys=True) == [
        'field "a" stands twice at the top. Leave one of them',
        'field "id" stands twice in "rules[0].on". Leave one of them',
    ]
    assert parse_json('{"a": [{"b": 1}], "b": {"a": 1}}', PATH, unique_keys=True) == {"a": [{"b": 1}], "b": {"a": 1}}
    # Where that is no fault the last one counts, as everywhere.
    assert parse_file(Rules, text, PATH).rules[0].on.id == "y"


def reading(path: Path) -> str:
    with pytest.raises(ConfigError) as caught:
        text_of(read_bytes(path), path)
    assert caught.value.cause == "operator-file"
    return caught.value.message


def test_a_file_that_cannot_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert reading(tmp_path / "none").startswith(f"{tmp_path}/none: cannot be read: No such file or directory. ")
    assert "cannot be read: Is a directory" in reading(tmp_path)
    assert "its name cannot be used" in reading(Path("a\0b"))
    os.mkfifo(tmp_path / "pipe")
    assert reading(tmp_path / "pipe") == f"{tmp_path}/pipe: is no ordinary file. Name one"
    (tmp_path / "latin").write_bytes(b"{\xe4}")
    assert reading(tmp_path / "latin") == f"{tmp_path}/latin: is not UTF-8 at byte 1. Save it as UTF-8"
    monkeypatch.setattr(operator_file, "MOST_BYTES", 4)
    (tmp_path / "long").write_text("12345")
    assert reading(tmp_path / "long") == f"{tmp_path}/long: is larger than 4 bytes. Name another file"


def test_the_mark_that_some_editors_begin_a_file_with_is_no_part_of_it(tmp_path: Path) -> None:
    (tmp_path / "marked").write_bytes(b"\xef\xbb\xbf{}")
    assert text_of(read_bytes(tmp_path / "marked"), tmp_path) == "{}"
