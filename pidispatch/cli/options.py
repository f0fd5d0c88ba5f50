"""Kinds of option that read their text as strictly as a setting does."""

from typing import Any

import click

from pidispatch.config.kinds import at_least


class PositiveInt(click.ParamType[int]):
    """A whole number of one or more, in plain decimal digits."""

    name = "n"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """`value` as a number; a usage error says what is wrong with it."""
        try:
            return at_least(1)(value)
        except ValueError as error:
            self.fail(f"{value!r} {error}", param, ctx)


POSITIVE_INT = PositiveInt()
