"""Kinds of option that read their text as strictly as a setting does."""

import re
from collections.abc import Callable
from typing import Any, Generic, TypeVar

import click

from pidispatch.config.kinds import at_least, plain_text
from pidispatch.values.job import FLOW_NAME
from pidispatch.values.reference import image_reference

T = TypeVar("T")


class Strict(click.ParamType[T], Generic[T]):
    """An option read by `check`, whose `ValueError` becomes the usage error. An empty text counts as left out."""

    def __init__(self, name: str, check: Callable[[object], T]) -> None:
        self.name = name
        self._check = check

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> T | None:  # type: ignore[override]
        """`value` as it is to be used."""
        if value == "":
            return None
        try:
            return self._check(value)
        except ValueError as error:
            self.fail(f"{value!r} {error}", param, ctx)


def _flow(value: object) -> str:
    if not isinstance(value, str) or not re.fullmatch(FLOW_NAME, value):
        raise ValueError("is no flow: lower-case letters, digits, '-' and '_', at most 64")
    return value


FLOW = Strict("name", _flow)
POSITIVE_INT = Strict("n", at_least(1))
PLAIN_TEXT = Strict("text", plain_text)
IMAGE_REFERENCE = Strict("reference", image_reference)
