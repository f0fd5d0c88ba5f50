"""Kinds of option that read their text as strictly as a setting does."""

from typing import Any

import click

from pidispatch.config.kinds import at_least, plain_text


class PositiveInt(click.ParamType[int]):
    """A whole number of one or more, in plain decimal digits."""

    name = "n"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """`value` as a number; a usage error says what is wrong with it."""
        try:
            return at_least(1)(value)
        except ValueError as error:
            self.fail(f"{value!r} {error}", param, ctx)


class PlainText(click.ParamType[str]):
    """One line of text as a setting takes it; an empty one counts as left out."""

    name = "text"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """`value` as it is; a usage error says what is wrong with it."""
        try:
            return plain_text(value) if value else ""
        except ValueError as error:
            self.fail(f"{value!r} {error}", param, ctx)


POSITIVE_INT = PositiveInt()
PLAIN_TEXT = PlainText()
