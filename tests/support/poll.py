"""A poller inside of a test's process, beside a receiver there: on its store, by its rules, at an edge."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from pidispatch.forges.github.module import GitHub
from pidispatch.forges.github.polling import GitHubPolling
from pidispatch.receiver.deciding import Deciding
from pidispatch.receiver.poll import Poller
from pidispatch.receiver.poll_repository import RepositoryPoll
from pidispatch.values.clock import Clock
from pidispatch.workspace import process
from tests.fakes.github.edge import Edge
from tests.fakes.github.rest_activity import note_pushes
from tests.support.receiver import Inbox

REPO = "acme/web"


@dataclass
class PollBox:
    """One of it. `pauses` has how long it would have waited between its cycles."""

    inbox: Inbox
    edge: Edge
    repositories: Sequence[str] = (REPO,)
    listed: bool = False
    interval_s: int = 60
    timeout_s: float = 10.0
    pauses: list[float] = field(default_factory=list)
    #: What is done in the place of waiting; to set `stop` ends it.
    between: list[Callable[[], object]] = field(default_factory=list)

    def __post_init__(self) -> None:
        clock: Clock = self.inbox.clock
        settings, environ = self.inbox.settings, {**self.inbox.environ}
        module = GitHub(clock)
        account = module.account(settings, environ, process)
        self.polling = GitHubPolling.of(settings, environ, process, clock, self.timeout_s)
        deciding = Deciding(
            module, account, account.identity(), lambda: self.inbox.rules, self.inbox.desk, self.inbox.lookups, clock
        )
        self.look = RepositoryPoll(module, deciding, self.inbox.store, self.inbox.desk, lambda: self.inbox.rules, clock)

    def cycle(self, count: int = 1, stop: asyncio.Event | None = None) -> Poller:
        """Look so many times, and wait for nothing in between."""
        return asyncio.run(self._cycles(count, stop))

    async def _cycles(self, count: int, given: asyncio.Event | None) -> Poller:
        stop = given or asyncio.Event()

        async def sleep(seconds: float) -> None:
            self.pauses.append(seconds)
            if self.between:
                self.between.pop(0)()
            if poller.cycles == count:
                stop.set()

        poller = Poller(
            self.polling,
            self.look,
            self.repositories,
            listed=self.listed,
            interval_s=self.interval_s,
            clock=self.inbox.clock,
            stop=stop,
            sleep=sleep,
            jitter=lambda: 7.0,
        )
        await poller.run()
        return poller

    def pushed_by_people(self) -> None:
        """Have GitHub tell who pushes, from now on."""
        note_pushes(self.edge.state)
