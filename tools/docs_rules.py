"""What the schema of the triggers file says of rules for events by their type and their forge, from the forges' table.

Each constraint is a JSON Schema for a whole entry: `if` it is of this kind, `then` so.
"""

from collections.abc import Iterator
from typing import Any, Final

from pidispatch.triggers.entry import EVENT_PARTS
from pidispatch.triggers.refused import CLOSING
from pidispatch.triggers.refusedrules import NAMES_REPOSITORY, SELECTORS
from pidispatch.triggers.vocabulary import VERDICTS, words_of
from pidispatch.values.forge import FORGES, REVIEW_ACTION, ForgeRow

Schema = dict[str, Any]

#: At least one label that must be there.
_POSITIVE: Final[Schema] = {
    "anyOf": [{"required": [name], "properties": {name: {"minItems": 1}}} for name in ("any", "all")]
}


def constraints() -> Iterator[Schema]:
    """All of them."""
    for trigger, model in EVENT_PARTS.items():
        yield _when(trigger, None, on={"$ref": f"#/$defs/{model.__name__}"})
    yield _when("label", None, on=_POSITIVE)
    yield _when(None, None, run=_what_is_run())
    yield _fires_once()
    for row in FORGES.values():
        yield from _of_pull_requests(row)
        yield _of_issues(row)
        yield from _of_the_repository(row)


def _when(trigger: str | None, kind: str | None, **then: Schema) -> Schema:
    """That parts of an entry of this type and this kind are so."""
    asked = {}
    if trigger is not None:
        asked["on"] = _is("type", trigger)
    if kind is not None:
        asked["run"] = _is("kind", kind)
    made = {"properties": then}
    return {"if": {"properties": asked}, "then": made} if asked else made


def _is(name: str, value: Any) -> Schema:
    return {"required": [name], "properties": {name: {"const": value}}}


def _none_of(*names: str) -> Schema:
    return dict.fromkeys(names, False)


def _words(words: list[str]) -> Schema:
    return {"action": {"items": {"enum": words}}}


def _what_is_run() -> Schema:
    return {
        "oneOf": [{"required": ["flow"]}, {"required": ["command"]}],
        "dependentSchemas": {"command": {"properties": _none_of("instructions")}},
    }


def _fires_once() -> Schema:
    once = {"properties": {"on": _is("once", True)}}
    alone = {"on": {"required": ["number"]}, "run": {"properties": _none_of("replicas")}}
    return {
        "if": once,
        "then": {"properties": alone},
        "else": {"properties": {"on": {"properties": _none_of("disarmed")}}},
    }


def _of_pull_requests(row: ForgeRow) -> Iterator[Schema]:
    known = words_of(row, "pull_request")
    others = [word for word in known if word != row.close_word]
    open_ = _words(others) | _none_of(*CLOSING) | ({} if row.pull_labels else _none_of(*SELECTORS))
    kinds: list[Schema] = [{"properties": open_}]
    if row.close_word is not None:
        kinds.append({"properties": _words([row.close_word]) | _none_of(*SELECTORS)})
    yield _when("pull_request", row.kind, on={"anyOf": kinds} if len(kinds) > 1 else kinds[0])
    reviews: Schema = {"properties": _none_of("reviewState")}
    if REVIEW_ACTION in known:
        verdicts = {"reviewState": {"items": {"enum": list(VERDICTS)}}}
        beside = {"properties": {"action": {"contains": {"const": REVIEW_ACTION}}}}
        reviews = {"properties": verdicts, "dependentSchemas": {"reviewState": beside}}
    yield _when("pull_request", row.kind, on=reviews)
    if row.pull_label_action is not None:
        labeled = {"properties": {"action": {"contains": {"const": row.pull_label_action}}}}
        yield _when("pull_request", row.kind, on={"if": labeled, "then": _POSITIVE})


def _of_issues(row: ForgeRow) -> Schema:
    if row.close_word is None:
        return _when("issue", row.kind, on={"properties": _none_of("type")})
    return _when("issue", row.kind, on={"properties": _words([row.close_word]) | _none_of(*SELECTORS)})


def _of_the_repository(row: ForgeRow) -> Iterator[Schema]:
    for trigger in EVENT_PARTS:
        if row.names_repository and trigger in NAMES_REPOSITORY:
            yield _when(trigger, row.kind, run={"required": ["repository"]})
        elif row.names_repository:
            yield _when(trigger, row.kind, run={"properties": _none_of("repository")})
    if not row.names_repository:
        yield _when(None, row.kind, run={"properties": _none_of("repository")})
