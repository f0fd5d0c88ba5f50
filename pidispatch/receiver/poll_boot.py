"""The poller as a program: everything that must be right before the first look, in its order.

Triggers file, credential, the list of repositories, its own account at GitHub, the store; only then it looks. It needs
no secret of a webhook, and nobody needs to reach it.
"""

import asyncio
import contextlib
import os
import random
import signal
import time
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Final

from pidispatch.config.clock import SystemClock
from pidispatch.config.log import log
from pidispatch.config.settings import Settings
from pidispatch.forges.polling import Polling
from pidispatch.forges.registry import MODULES
from pidispatch.jobs.store import JobStore
from pidispatch.receiver.boot import Modules, desk_at, hear, run_program
from pidispatch.receiver.deciding import Deciding
from pidispatch.receiver.identity import own_identity
from pidispatch.receiver.lanes import Lane
from pidispatch.receiver.poll import Poller
from pidispatch.receiver.poll_repository import RepositoryPoll
from pidispatch.receiver.watching import Unheard, watched_rules
from pidispatch.server.client import warn_unless_durable
from pidispatch.server.use import use_server
from pidispatch.values.errors import ConfigError
from pidispatch.values.forge import JobKind
from pidispatch.values.limits import Limits
from pidispatch.worker.belonging import join_deployment
from pidispatch.workspace import process

#: Most seconds by which pollers that wait for the same instant begin apart.
_JITTER_S: Final = 30.0


def run_poller(limits: Limits | None = None, modules: Modules = MODULES) -> int:
    """Look for what is new until told to stop; the exit code: as of `run_program`."""
    return run_program(lambda settings: _run(settings, limits or Limits(), modules))


def _run(settings: Settings, limits: Limits, modules: Modules) -> None:
    clock, module = SystemClock(), modules[JobKind.GITHUB]
    kind = module.row.kind
    with ExitStack() as opened:
        watched = watched_rules(settings, limits)
        rules = watched.load()
        account = module.account(settings, os.environ, process)
        polling = module.polling(settings, os.environ, process)
        me = own_identity(kind, account, settings.receiver_identity_retry_seconds, clock, time.sleep)
        repositories = chosen(settings, polling)
        unheard = Unheard([kind], os.environ)
        unheard(rules)
        server = opened.enter_context(use_server(settings))
        warn_unless_durable(server.facts)
        store = JobStore(server.client, settings.key_prefix, limits)
        deployment = join_deployment(store, settings.state_dir)
        desk = desk_at(opened, settings, limits, server, store)
        hear(opened, store, [kind], watched)
        watched.on_change.append(unheard)
        opened.callback(watched.stop)
        deciding = Deciding(module, account, me, lambda: watched.value, desk, Lane("lookup", 1, 1), clock)
        look = RepositoryPoll(module, deciding, store, desk, lambda: watched.value, clock)
        watched.start()
        log().info(
            "poller_started",
            forge=kind,
            repositories=len(repositories),
            rules=len(rules),
            seconds=settings.poll_interval_seconds,
            triggers=str(watched.path),
            valkey=server.address.shown,
            deployment=deployment,
        )
        asyncio.run(_poll(settings, polling, look, repositories, clock))


def chosen(settings: Settings, polling: Polling) -> Sequence[str]:
    """The repositories that are looked at. Raises `ConfigError` where there are none, and `InfraError`."""
    if settings.poll_repos is not None:
        return settings.poll_repos
    found = polling.repositories()
    if found is None:
        raise ConfigError(
            "POLL_REPOS is not set, and only a GitHub App is asked which repositories it is for. Name them, for "
            "example: POLL_REPOS=acme/web,acme/shop; or use an App: GITHUB_AUTH_SOURCE=app",
            "setting",
        )
    if not found:
        raise ConfigError(
            "the GitHub App is installed on no repository, so there is nothing to look at. Install it on one, or name "
            "repositories: POLL_REPOS=acme/web",
            "repository-unseen",
        )
    return found


async def _poll(
    settings: Settings, polling: Polling, look: RepositoryPoll, repositories: Sequence[str], clock: SystemClock
) -> None:
    stop, loop = asyncio.Event(), asyncio.get_running_loop()

    def stopped(name: str) -> None:
        log().info("receiver_stopping", signal=name)
        stop.set()

    async def sleep(seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(stop.wait(), seconds)

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopped, signal.Signals(number).name)
    poller = Poller(
        polling,
        look,
        repositories,
        listed=settings.poll_repos is None,
        interval_s=settings.poll_interval_seconds,
        clock=clock,
        stop=stop,
        sleep=sleep,
        jitter=lambda: random.uniform(1, _JITTER_S),
    )
    await poller.run()
    verdicts = look.verdicts
    log().info(
        "poller_stopped",
        cycles=poller.cycles,
        looked=poller.looked,
        failed=poller.failed,
        queued=verdicts["queued"],
        coalesced=verdicts["coalesced"],
        duplicate=verdicts["duplicate"],
        dropped=verdicts["dropped"],
    )
