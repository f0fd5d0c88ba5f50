"""What a GraphQL document asks for: its operation, and the fields that may be in the answer.

Clients are strict: what they have not asked for must not come, and what they have must.
https://spec.graphql.org/October2021/#sec-Language
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

_TOKEN = re.compile(r'[\s,]+|#[^\n]*|(?P<token>\.\.\.|\$?[A-Za-z_]\w*|"(?:[^"\\]|\\.)*"|-?\d[\d.]*|[{}()\[\]:!=@|&])')


class Unfit(Exception):
    """A document that is none, or asks for what the edge does not have."""


@dataclass
class Field:
    """One field that is asked for. `key` is what the answer calls it."""

    name: str
    key: str
    arguments: dict[str, str]
    inside: "list[Field | Spread]"


@dataclass
class Spread:
    """Fields of a fragment: named, or written in place for one type."""

    name: str | None
    inside: "list[Field | Spread]"
    type: str | None = None


@dataclass
class Document:
    """One operation with its fragments."""

    name: str = ""
    asked: list[Field | Spread] = field(default_factory=list)
    fragments: dict[str, Spread] = field(default_factory=dict)

    def first(self) -> Field:
        """The first field that is asked for."""
        found = self.asked[0]
        assert isinstance(found, Field), "an operation begins with a field"
        return found

    def cut(self, data: Mapping[str, Any]) -> dict[str, Any]:
        """Of `data` what is asked for. Raises `Unfit` where something is missing."""
        return self._cut(data, self.asked, self.name)

    def _cut(self, data: Mapping[str, Any], asked: "list[Field | Spread]", where: str) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for one in asked:
            if isinstance(one, Spread):
                spread = one if one.name is None else self.fragments[one.name]
                if data.get("__typename", spread.type) == spread.type or one.name is not None:
                    found |= self._cut(data, spread.inside, where)
                continue
            name = one.key if one.key in data else one.name
            if name not in data:
                raise Unfit(f"the edge has no {where}.{one.name}")
            found[one.key] = self._inside(data[name], one, f"{where}.{one.name}")
        return found

    def _inside(self, value: Any, one: Field, where: str) -> Any:
        if isinstance(value, list):
            return [self._inside(each, one, where) for each in value]
        return self._cut(value, one.inside, where) if isinstance(value, Mapping) else value


def read(text: str) -> Document:
    """A document. Raises `Unfit`."""
    try:
        return _Reader(list(_tokens(text))).document()
    except IndexError:
        raise Unfit("the document ends in the middle") from None


def _tokens(text: str) -> Iterator[str]:
    at = 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise Unfit(f"no GraphQL at {at}")
        at = match.end()
        if match["token"] is not None:
            yield match["token"]


class _Reader:
    def __init__(self, tokens: list[str]) -> None:
        self._tokens = tokens
        self._at = 0

    def document(self) -> Document:
        made = Document()
        while self._at < len(self._tokens):
            word = self._tokens[self._at]
            if word == "fragment":
                self._at += 1
                name, _, kind = self._take(), self._take(), self._take()
                made.fragments[name] = Spread(name, self._selection(), kind)
                continue
            if word in ("query", "mutation"):
                self._at += 1
                made.name = self._take() if self._peek() not in ("{", "(") else ""
                self._arguments()
            made.asked = self._selection()
        return made

    def _peek(self) -> str:
        return self._tokens[self._at]

    def _take(self) -> str:
        self._at += 1
        return self._tokens[self._at - 1]

    def _selection(self) -> list[Field | Spread]:
        if self._take() != "{":
            raise Unfit("no fields where some are due")
        found: list[Field | Spread] = []
        while self._peek() != "}":
            found.append(self._spread() if self._peek() == "..." else self._field())
        self._at += 1
        return found

    def _spread(self) -> Spread:
        self._at += 1
        if self._peek() == "on":
            self._at += 1
            kind = self._take()
            return Spread(None, self._selection(), kind)
        return Spread(self._take(), [])

    def _field(self) -> Field:
        key = name = self._take()
        if self._peek() == ":":
            self._at += 1
            name = self._take()
        arguments = self._arguments()
        return Field(name, key, arguments, self._selection() if self._peek() == "{" else [])

    def _arguments(self) -> dict[str, str]:
        """What stands in brackets: names and single values; of anything longer the beginning."""
        found: dict[str, str] = {}
        if self._peek() != "(":
            return found
        depth = 0
        while True:
            word = self._take()
            depth += {"(": 1, ")": -1}.get(word, 0)
            if depth == 0:
                return found
            if depth == 1 and self._peek() == ":":
                found[word] = self._tokens[self._at + 1].strip('"')
