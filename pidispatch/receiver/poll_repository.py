"""One look at one repository: what is new goes the way of a webhook, and then it is noted that it did.

Each part is noted once everything of it was handed in. A crash before that has it all seen again; the ids of the
deliveries make that harmless.
"""

import asyncio
import json
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from datetime import timedelta
from functools import partial
from typing import Final

from pidispatch.config.log import log
from pidispatch.forges.polling import Look, Pulls, Sight, Told, Watch
from pidispatch.forges.protocol import ForgeModule, Unverified
from pidispatch.jobs.polled import Part, Remembered
from pidispatch.jobs.store import JobStore
from pidispatch.receiver.asking import delivery_of
from pidispatch.receiver.deciding import ENQUEUE_FAILED, Deciding, Outcome
from pidispatch.receiver.desk import Desk
from pidispatch.receiver.poll_pulls import changes, known_after, open_ones
from pidispatch.receiver.poll_window import Window
from pidispatch.triggers.entry import PullRequestOn
from pidispatch.triggers.rules import Rules
from pidispatch.values.clock import Clock
from pidispatch.values.errors import InfraError, RateLimited
from pidispatch.values.event import Event, Occasion
from pidispatch.values.forge import REVIEW_ACTION

#: Seconds in which an event must be decided.
_DECIDE_S: Final = 30.0
#: Pull requests whose reviews are looked at in one cycle.
_REVIEWED: Final = 50
#: Cycles in which something may stay undecided: whether somebody may, or who did it.
CYCLES: Final = 5
#: How far a first look at reviews goes back where there are none: as far as clocks may differ.
_BEFORE: Final = timedelta(minutes=10)


class RepositoryPoll:
    """Looks at repositories, one after the other. `verdicts` counts what became of what was new."""

    def __init__(
        self,
        module: ForgeModule,
        deciding: Deciding,
        store: JobStore,
        desk: Desk,
        rules: Callable[[], Rules],
        clock: Clock,
    ) -> None:
        self._module = module
        self._deciding = deciding
        self._store = store
        self._desk = desk
        self._rules = rules
        self._clock = clock
        self.verdicts: Counter[str] = Counter()

    async def __call__(self, watch: Watch) -> int:
        """Look at one; seconds after which the forge wants to be asked again, and no earlier.

        Raises `ConfigError` or `InfraError`: what was noted stays so, and the rest is seen the next time.
        """
        await asyncio.to_thread(watch.begin)
        known = await asyncio.to_thread(self._store.polled, watch.repo)
        if not known.cursors:
            log().info("poll_began", repo=watch.repo)
        waits = [await self._events(watch, known), await self._comments(watch, known)]
        pulls, wait = await self._pulls(watch, known)
        waits += [wait, await self._reviews(watch, known, pulls)]
        await asyncio.to_thread(self._store.keep_polled, watch.repo)
        return max(waits)

    async def _events(self, watch: Watch, known: Remembered) -> int:
        window = Window.read(known.cursors.get(Part.EVENTS))
        closes = bool(self._rules().of(self._module.row.kind, Occasion.CLOSE))
        etag = None if window is None else known.etags.get(Part.EVENTS)
        since = None if window is None else window.since
        look = await asyncio.to_thread(lambda: watch.events(since, etag, closes=closes))
        if look.missed:
            log().warning("poll_events_gap", repo=watch.repo)
        await self._seen(watch, Part.EVENTS, window, look)
        return look.poll_s or 0

    async def _comments(self, watch: Watch, known: Remembered) -> int:
        window = Window.read(known.cursors.get(Part.COMMENTS))
        since = None if window is None else window.since
        etag = None if window is None else known.etags.get(Part.COMMENTS)
        look = await asyncio.to_thread(watch.comments, since, etag)
        await self._seen(watch, Part.COMMENTS, window, look)
        return look.poll_s or 0

    async def _seen(self, watch: Watch, part: Part, window: Window | None, look: Look) -> None:
        """Hand in what is new, and note it."""
        if not look.new:
            return
        after = Window.first(look) if window is None else await self._after(window, look)
        # What is not decided is looked at again, though nothing may be new.
        cursor, etag = after.model_dump_json(), None if after.undecided else look.etag
        await asyncio.to_thread(lambda: self._store.remember(watch.repo, part, cursor, etag=etag))

    async def _after(self, window: Window, look: Look) -> Window:
        """The window once all that is new is handed in."""
        undecided: dict[int, int] = {}
        for sight in window.new(look):
            tries = window.undecided.get(sight.id, 0) + 1
            if not await self._sighted(sight, last=tries >= CYCLES):
                undecided[sight.id] = tries
        return window.after(look, undecided)

    async def _sighted(self, sight: Sight, *, last: bool) -> bool:
        """Hand in what was seen; whether it is dealt with. With `last` it is, also where nothing is decided."""
        if sight.told is None:
            return True
        event = await self._event(sight.told)
        found = await self._decided(event)
        if found.verdict != "retry":
            return True
        if last:
            log().warning("poll_lookup_given_up", delivery=event.delivery, reason=found.reason)
            self._desk.note(event.forge, delivery_of(event, reason=found.reason), "dropped")
            self.verdicts["dropped"] += 1
        return last

    async def _pulls(self, watch: Watch, known: Remembered) -> tuple[list[int], int]:
        """The open pull requests, the one that was changed last first, and how long to wait."""
        text = known.cursors.get(Part.PULLS)
        usual = open_ones(known.pulls)
        # Where not all of them are asked about, those are that were changed last.
        fresh = text is None or len(usual) > _REVIEWED
        pulls = await asyncio.to_thread(watch.pulls, None if fresh else known.etags.get(Part.PULLS))
        if not pulls.new:
            return usual, pulls.poll_s or 0
        after, undecided = known_after(known.pulls, pulls), dict[int, int]()
        if text is not None:
            undecided = await self._changed(known.pulls, pulls, _tries(text))
            after |= {number: known.pulls[number] for number in undecided}
        cursor, etag = json.dumps({"waiting": undecided}), None if undecided else pulls.etag
        await asyncio.to_thread(lambda: self._store.remember(watch.repo, Part.PULLS, cursor, etag=etag, pulls=after))
        return [one.number for one in pulls.open], pulls.poll_s or 0

    async def _changed(self, known: Mapping[int, str], pulls: Pulls, waiting: Mapping[int, int]) -> dict[int, int]:
        """Hand in what became of pull requests; those of which it is not known yet who did it, and since when."""
        undecided: dict[int, int] = {}
        for pull, action in changes(known, pulls):
            event = await self._event(partial(pull.told, action))
            tries = waiting.get(pull.number, 0) + 1
            if event.actor.id is None and action == "synchronize" and tries < CYCLES:
                # GitHub tells who pushed a little later than that somebody did.
                undecided[pull.number] = tries
                continue
            await self._decided(event)
        return undecided

    async def _reviews(self, watch: Watch, known: Remembered, pulls: list[int]) -> int:
        """Reviews, where a rule is about them. A rule that comes later is about those that come after it."""
        if not self._wants_reviews():
            if Part.REVIEWS in known.cursors:
                await asyncio.to_thread(lambda: self._store.remember(watch.repo, Part.REVIEWS, None, review_etags={}))
            return 0
        window = Window.read(known.cursors.get(Part.REVIEWS))
        if len(pulls) > _REVIEWED:
            log().warning("poll_reviews_gap", repo=watch.repo, pulls=len(pulls), looked_at=_REVIEWED)
        looks: dict[int, Look] = {}
        for number in pulls[:_REVIEWED]:
            etag = None if window is None else known.review_etags.get(number)
            looks[number] = await asyncio.to_thread(watch.reviews, number, etag)
        look = _together(list(looks.values()))
        if window is None:
            # Where none was seen, what is older than this is of nobody's business.
            began = self._clock.now() - _BEFORE
            after = Window.first(look._replace(since=max(began, look.since or began)))
        else:
            after = await self._after(window, look)
        etags = {number: one.etag for number, one in looks.items() if one.etag is not None}
        cursor = after.model_dump_json()
        await asyncio.to_thread(lambda: self._store.remember(watch.repo, Part.REVIEWS, cursor, review_etags=etags))
        return look.poll_s or 0

    def _wants_reviews(self) -> bool:
        rules = self._rules().of(self._module.row.kind, Occasion.REVIEW)
        return any(isinstance(rule.on, PullRequestOn) and REVIEW_ACTION in rule.on.action for rule in rules)

    async def _event(self, told: Callable[[], Told]) -> Event:
        """The event that something stands for, as its webhook would have been understood."""
        headers, payload = await asyncio.to_thread(told)
        event = self._module.event(headers, payload)
        assert not isinstance(event, Unverified), "it has an id"
        return event

    async def _decided(self, event: Event) -> Outcome:
        """What becomes of it. Raises `InfraError` where nothing more can be handed in now."""
        found = await self._deciding(event, self._clock.monotonic() + _DECIDE_S)
        if found.reason == ENQUEUE_FAILED:
            raise InfraError("the server of the queue did not take the jobs of an event. Try again", ENQUEUE_FAILED)
        if found.resets is not None:
            raise RateLimited("the forge does not say for now who may start jobs. Try again later", found.resets)
        if found.verdict != "retry":
            self.verdicts[found.verdict] += 1
        return found


def _together(looks: Collection[Look]) -> Look:
    """What several looks saw, as one."""
    sights = sorted((sight for look in looks for sight in look.sights), key=lambda one: (one.at, one.id))
    since = max((look.since for look in looks if look.since is not None), default=None)
    return Look(sights, since, poll_s=max((look.poll_s or 0 for look in looks), default=0))


def _tries(text: str | None) -> dict[int, int]:
    """Pull requests of which it was not known who pushed, and in how many cycles, from what was noted of them."""
    try:
        waiting = json.loads(text or "{}").get("waiting", {})
        return {int(number): int(tries) for number, tries in waiting.items()}
    except (ValueError, AttributeError):
        return {}
