"""The settings of the poller."""

import re
from typing import Annotated, Final

from pydantic import BeforeValidator
from pydantic_settings import BaseSettings, NoDecode

from pidispatch.config.field import setting
from pidispatch.config.kinds import at_least

#: Asked more often, a forge would be asked for nothing most of the time.
_LEAST_INTERVAL_S: Final = 30
#: What GitHub has for an owner and a name.
_REPOSITORY: Final = re.compile(r"(?!\.+/)[A-Za-z0-9_.-]{1,100}/(?!\.{1,2}$)[A-Za-z0-9_.-]{1,100}")


def repository_list(value: object) -> tuple[str, ...]:
    """Repositories from a comma-separated text, each once: names at a forge do not differ by case alone."""
    if isinstance(value, tuple):
        return value
    names = [part.strip() for part in str(value).split(",") if part.strip()]
    if not names or not all(map(_REPOSITORY.fullmatch, names)):
        raise ValueError("must be one repository or several, `owner/name`, separated by commas")
    found: dict[str, str] = {}
    for name in names:
        found.setdefault(name.lower(), name)
    return tuple(found.values())


RepositoryList = Annotated[tuple[str, ...], BeforeValidator(repository_list)]
#: Seconds between two looks; a shorter time is made this one.
Interval = Annotated[int, BeforeValidator(lambda value: max(_LEAST_INTERVAL_S, at_least(1)(value)))]


class PollSettings(BaseSettings):
    """Part of `Settings`."""

    poll_repos: Annotated[RepositoryList | None, NoDecode] = setting(
        None,
        "POLL_REPOS",
        "The repositories of GitHub's that pi-dispatch-receiver poll looks at. Only a GitHub App may leave it unset: "
        "then they are those on which it is installed.",
        unit="names",
        bound="`owner/name`, separated by commas; not empty",
        remedy="POLL_REPOS=acme/web,acme/shop",
    )
    poll_interval_seconds: Interval = setting(
        60,
        "POLL_INTERVAL_SECONDS",
        "Seconds between two looks at all of them; the forge may ask for more.",
        unit="seconds",
        bound=f"1 or more; less than {_LEAST_INTERVAL_S} counts as {_LEAST_INTERVAL_S}",
        remedy="POLL_INTERVAL_SECONDS=60",
    )
