"""What GitHub says its answers and deliveries look like: npm's `@octokit/openapi` and `@octokit/openapi-webhooks`.

Only what is asked for is made into JSON Schema, and more strictly than it stands there: a field that GitHub does not
describe is an error too, so that none can be invented.
"""

import json
from collections.abc import Mapping
from functools import cache
from typing import Any, Final

from jsonschema_rs import Validator, validator_for

from tests.payloads import fetched

_REFERENCE: Final = "#/components/schemas/"
#: Keywords that hold schemas, one or several.
_ONE: Final = ("items", "not")
_SEVERAL: Final = ("allOf", "anyOf", "oneOf")
#: Keywords that are the same in JSON Schema.
_KEPT: Final = (
    "type", "required", "enum", "const", "minimum", "maximum", "minLength", "maxLength", "minItems", "maxItems",
    "pattern", "uniqueItems",
)  # fmt: skip


def answer_errors(method: str, path: str, status: int, body: Any) -> list[str]:
    """What is wrong with the answer of an endpoint; `path` is as GitHub writes it."""
    return _errors(_answer(method.lower(), path, status), body)


def delivery_errors(event: str, action: str, body: Any) -> list[str]:
    """What is wrong with the body of a delivery."""
    name = f"{event.replace('_', '-')}-{action.replace('_', '-')}"
    return _errors(_delivery(name), body)


def _errors(validator: Validator, body: Any) -> list[str]:
    return [f"{'/'.join(map(str, one.instance_path))}: {one.message[:300]}" for one in validator.iter_errors(body)]


@cache
def _document(package: str) -> Mapping[str, Any]:
    file = fetched() / "node_modules" / "@octokit" / package / "generated" / "api.github.com.json"
    found: Mapping[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return found


@cache
def _answer(method: str, path: str, status: int) -> Validator:
    document = _document("openapi")
    responses = document["paths"][path][method]["responses"]
    found = responses.get(str(status), {})
    # Of a refusal it is not said everywhere that it may come, nor what it looks like.
    if status >= 400 and "$ref" not in found and "content" not in found:
        found = {"$ref": "#/components/responses/forbidden"}
    if "$ref" in found:
        found = document["components"]["responses"][found["$ref"].rpartition("/")[2]]
    schema = found.get("content", {}).get("application/json", {}).get("schema", {"type": "null"})
    return _validator(document, schema)


@cache
def _delivery(name: str) -> Validator:
    document = _document("openapi-webhooks")
    body = document["webhooks"][name]["post"]["requestBody"]
    return _validator(document, body["content"]["application/json"]["schema"])


def _validator(document: Mapping[str, Any], schema: Mapping[str, Any]) -> Validator:
    reading = _Reading(document["components"]["schemas"])
    made = reading.schema(schema, closed=True)
    return validator_for({**made, "$defs": reading.definitions()})


class _Reading:
    """One schema, with all that it refers to."""

    def __init__(self, schemas: Mapping[str, Any]) -> None:
        self._schemas = schemas
        self._wanted: dict[str, tuple[str, bool]] = {}

    def definitions(self) -> dict[str, Any]:
        """Everything that is referred to."""
        made: dict[str, Any] = {}
        while missing := {*self._wanted} - {*made}:
            for key in missing:
                name, closed = self._wanted[key]
                made[key] = self.schema(self._schemas[name], closed=closed)
        return made

    def schema(self, given: Mapping[str, Any], *, closed: bool) -> dict[str, Any]:
        """A schema of OpenAPI's as one of JSON Schema's; `closed`: it describes all fields that there are."""
        if "$ref" in given:
            name = given["$ref"].removeprefix(_REFERENCE)
            key = name if closed else f"{name}~"
            self._wanted[key] = (name, closed)
            return {"$ref": f"#/$defs/{key.replace('~', '~0')}"}
        made: dict[str, Any] = {key: given[key] for key in _KEPT if key in given}
        made |= {key: self.schema(given[key], closed=closed) for key in _ONE if key in given}
        for key in _SEVERAL:
            if key in given:
                inside = closed and key != "allOf" and "properties" not in given
                made[key] = [self.schema(one, closed=inside) for one in given[key]]
        if "properties" in given:
            made["properties"] = {key: self.schema(one, closed=True) for key, one in given["properties"].items()}
        made |= self._others(given, closed=closed and not any(key in given for key in _SEVERAL))
        return _or_null(made) if given.get("nullable") else made

    def _others(self, given: Mapping[str, Any], *, closed: bool) -> dict[str, Any]:
        """Whether there may be fields besides those that are described."""
        more = given.get("additionalProperties")
        if isinstance(more, Mapping):
            return {"additionalProperties": self.schema(more, closed=True)}
        if more is not None:
            return {"additionalProperties": more}
        return {"additionalProperties": False} if closed and "properties" in given else {}


def _or_null(schema: dict[str, Any]) -> dict[str, Any]:
    return {"anyOf": [schema, {"type": "null"}]}
