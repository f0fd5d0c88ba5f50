"""The base of every value: frozen, strict about unknown fields, camelCase where it becomes JSON."""

from decimal import Decimal
from typing import Annotated

from pydantic import BaseModel, ConfigDict, PlainSerializer
from pydantic.alias_generators import to_camel


class Value(BaseModel):
    """A frozen value. Fields are snake_case in Python and camelCase in JSON."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        alias_generator=to_camel,
        validate_by_name=True,
        validate_by_alias=True,
        serialize_by_alias=True,
        use_enum_values=False,
    )


def _json_number(value: Decimal) -> int | float:
    return int(value) if value == value.to_integral_value() else float(value)


#: A number that is exact inside the house and a plain JSON number outside it.
Number = Annotated[Decimal, PlainSerializer(_json_number, when_used="json")]
