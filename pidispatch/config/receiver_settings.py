"""The settings of the receiver."""

from pydantic_settings import BaseSettings


class ReceiverSettings(BaseSettings):
    """Part of `Settings`."""
