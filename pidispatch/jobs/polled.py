"""What the poller remembers of the repositories it looks at, so that it goes on where it was after a restart.

All of it ends together, 35 days after the last good poll: longer than jobs are known by their ids, so that nothing is
seen as new whose job is forgotten.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Final, NamedTuple

from pidispatch.jobs.calls import Calls
from pidispatch.jobs.keys import POLL_CURSOR, POLL_ETAG, POLL_PULLS, POLL_REVIEW_ETAGS, Key

_KEPT_MS: Final = 35 * 86_400_000


class Part(StrEnum):
    """What of a repository is looked at, each for itself."""

    EVENTS = "events"
    COMMENTS = "comments"
    PULLS = "prs"
    REVIEWS = "reviews"


#: What the list of a part is called where that is one list.
_LISTS: Final = {Part.EVENTS: "events", Part.COMMENTS: "comments", Part.PULLS: "pulls"}


class Remembered(NamedTuple):
    """What is known of a repository; the texts are the poller's."""

    cursors: Mapping[Part, str]
    etags: Mapping[Part, str]
    #: By number.
    pulls: Mapping[int, str]
    review_etags: Mapping[int, str]


class Polled(Calls):
    """Written by the poller, for itself."""

    def polled(self, repo: str) -> Remembered:
        """What is known of a repository. Raises `InfraError`."""
        with self._client.pipeline(transaction=True) as asked:
            asked.mget([_named(self._prefix, POLL_CURSOR, repo, part) for part in Part])
            asked.mget([_named(self._prefix, POLL_ETAG, repo, name) for name in _LISTS.values()])
            asked.hgetall(_named(self._prefix, POLL_PULLS, repo))
            asked.hgetall(_named(self._prefix, POLL_REVIEW_ETAGS, repo))
            cursors, etags, pulls, reviews = self._ask(asked.execute)
        return Remembered(
            {part: text for part, text in zip(Part, cursors, strict=True) if text is not None},
            {part: text for part, text in zip(_LISTS, etags, strict=True) if text is not None},
            {int(number): text for number, text in pulls.items()},
            {int(number): text for number, text in reviews.items()},
        )

    def remember(
        self,
        repo: str,
        part: Part,
        cursor: str | None,
        *,
        etag: str | None = None,
        pulls: Mapping[int, str] | None = None,
        review_etags: Mapping[int, str] | None = None,
    ) -> None:
        """Note of a part up to where it is dealt with; `None`: that it is not looked at. Raises `InfraError`."""
        texts = {_named(self._prefix, POLL_CURSOR, repo, part): cursor}
        if part in _LISTS:
            texts[_named(self._prefix, POLL_ETAG, repo, _LISTS[part])] = etag
        hashes = {POLL_PULLS: pulls, POLL_REVIEW_ETAGS: review_etags}
        with self._client.pipeline(transaction=True) as noted:
            for name, text in texts.items():
                if text is None:
                    noted.delete(name)
                else:
                    noted.set(name, text, px=_KEPT_MS)
            for key, fields in hashes.items():
                if fields is not None:
                    _replace(noted, _named(self._prefix, key, repo), fields)
            self._ask(noted.execute)

    def keep_polled(self, repo: str) -> None:
        """Have all that is known of a repository end as late as what was noted just now. Raises `InfraError`."""
        with self._client.pipeline(transaction=True) as kept:
            for part in Part:
                kept.pexpire(_named(self._prefix, POLL_CURSOR, repo, part), _KEPT_MS)
            for name in _LISTS.values():
                kept.pexpire(_named(self._prefix, POLL_ETAG, repo, name), _KEPT_MS)
            kept.pexpire(_named(self._prefix, POLL_PULLS, repo), _KEPT_MS)
            kept.pexpire(_named(self._prefix, POLL_REVIEW_ETAGS, repo), _KEPT_MS)
            self._ask(kept.execute)


def _named(prefix: str, key: Key, repo: str, what: str = "") -> str:
    return prefix + key.name.replace("<repo>", repo).replace("<what>", what)


def _replace(noted: Any, name: str, fields: Mapping[int, str]) -> None:
    noted.delete(name)
    if fields:
        noted.hset(name, mapping={str(number): text for number, text in fields.items()})
        noted.pexpire(name, _KEPT_MS)
