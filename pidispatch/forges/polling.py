"""What a module for a forge brings so that it can be polled: what is there now, and the events it stands for.

A poll sees things where a webhook tells of events. Of each thing it is said which event it stands for, with the headers
and the payload that the forge's webhook would have sent, so that both are read by the same projection and judged by
the same gate.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple, Protocol

#: The headers of an event, with lower-case names, and its payload.
Told = tuple[Mapping[str, str], Any]


class Sight(NamedTuple):
    """Something at the forge for which there was an event."""

    #: The forge's number of it, and when it came to be.
    id: int
    at: datetime
    #: The event; what it lacks is asked for then. Raises `ConfigError` or `InfraError`. `None`: no rule is about it.
    told: Callable[[], Told] | None


class Look(NamedTuple):
    """A part of what is at the forge."""

    #: Oldest first.
    sights: Sequence[Sight] = ()
    #: What comes to be known the next time has come to be since then; `None` where there is nothing at all.
    since: datetime | None = None
    #: What the next look is told by that nothing is new.
    etag: str | None = None
    #: Seconds after which the forge wants to be asked again, and no earlier.
    poll_s: int | None = None
    #: Whether there is anything new since the etag that was handed in.
    new: bool = True
    #: Whether there was more than is read at once, and some of it will not be seen.
    missed: bool = False


class OpenPull(NamedTuple):
    """A pull request that is open."""

    number: int
    #: The commit at its head.
    sha: str
    #: The event by which it came to be as it is, `opened`, `synchronize` or `reopened`. Raises like `Sight.told`.
    told: Callable[[str], Told]


class Pulls(NamedTuple):
    """The open pull requests."""

    #: The one that was changed last comes first.
    open: Sequence[OpenPull] = ()
    #: Whether they are all of them.
    whole: bool = True
    etag: str | None = None
    poll_s: int | None = None
    new: bool = True


class Watch(Protocol):
    """One repository in one cycle. All of it raises `ConfigError` or `InfraError`; `RateLimited` where that is why."""

    def begin(self) -> None:
        """Find out what it is called. To be done before all else."""
        ...

    @property
    def repo(self) -> str:
        """What the forge calls it in its events: `owner/name`, in the right case."""
        ...

    def events(self, since: datetime | None, etag: str | None, *, closes: bool) -> Look:
        """Labels that were put on since then, and, with `closes`, what was closed.

        Without `since` nothing is to come of it: a look at what there is. So with `comments`.
        """
        ...

    def comments(self, since: datetime | None, etag: str | None) -> Look:
        """Comments that were written since then."""
        ...

    def pulls(self, etag: str | None) -> Pulls:
        """The open pull requests."""
        ...

    def reviews(self, number: int, etag: str | None) -> Look:
        """All reviews of one of them."""
        ...


class Polling(Protocol):
    """This deployment's account at the forge, as far as it looks for what is new."""

    def repositories(self) -> Sequence[str] | None:
        """Those that the account was given by name; `None` where it cannot be told. Raises like `Watch`."""
        ...

    def watch(self, repo: str) -> Watch:
        """What looks at a repository, with a credential for that. Raises like `Account.mint`."""
        ...
