"""The settings of GitHub."""

from pydantic_settings import BaseSettings


class GitHubSettings(BaseSettings):
    """Part of `Settings`."""
