"""How a setting is declared: one field, whose words are its documentation."""

from typing import Any

from pydantic import Field


def setting(default: Any, variable: str, description: str, *, unit: str, bound: str, remedy: str) -> Any:
    """A field of a settings class: its default or what makes it, its variable, and its words for the docs."""
    extra: dict[str, Any] = {"unit": unit, "bound": bound, "remedy": remedy}
    if callable(default):
        return Field(default_factory=default, alias=variable, description=description, json_schema_extra=extra)
    return Field(default=default, alias=variable, description=description, json_schema_extra=extra)
