"""The settings that a program with an environment of a test's own has."""

from collections.abc import Mapping

from pidispatch.config.settings import Settings


def settings_of(environment: Mapping[str, str]) -> Settings:
    """What of the environment is a setting, and the defaults of all else."""
    known = {field.alias for field in Settings.model_fields.values()}
    return Settings.model_validate({name: value for name, value in environment.items() if name in known})
