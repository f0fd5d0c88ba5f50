"""Names as parts of an address, each of which stays one part of it whatever it holds."""

from typing import Final
from urllib.parse import quote, urlsplit, urlunsplit

from pidispatch.forges.github.payload import clean_segment
from pidispatch.values.errors import ConfigError

#: The port that goes without saying.
_PORTS: Final = {"https": ":443", "http": ":80"}


def part(text: str) -> str:
    """`text` as one part of an address."""
    return quote(text, safe="")


def owner_and_name(repo: str) -> tuple[str, str]:
    """The two parts of a repository's name. Raises `ConfigError` where it has not two that can be asked about."""
    parts = repo.split("/")
    if len(parts) != 2 or not all(map(clean_segment, parts)):
        raise ConfigError(f"{repo!a} is no repository of GitHub's. Write owner/name", "repository-unseen")
    return parts[0], parts[1]


def repository(repo: str) -> str:
    """The path of a repository, for what is asked about it. Raises `ConfigError`."""
    return "/".join(("/repos", *map(part, owner_and_name(repo))))


def plain_url(url: str) -> str:
    """`url` as everybody else writes it: git asks for a credential, and gh for its host, letter by letter."""
    parts = urlsplit(url)
    return urlunsplit(parts._replace(netloc=parts.netloc.lower().removesuffix(_PORTS[parts.scheme])))
