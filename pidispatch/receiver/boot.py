"""The receiver as a program: everything that must be right before the first webhook is heard, in its order.

Triggers file, credentials, secrets, the receiver's own account at each forge, the store; only then it listens.
"""

import contextlib
import logging
import os
import signal
import time
import traceback
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Final

from pidispatch.config.clock import SystemClock
from pidispatch.config.log import configure_log, log
from pidispatch.config.receiver_settings import host_and_port
from pidispatch.config.settings import Settings, load_settings
from pidispatch.config.watched import WatchedFile
from pidispatch.forges.protocol import ForgeModule
from pidispatch.forges.registry import MODULES
from pidispatch.jobs.producer import producer, publish_all
from pidispatch.jobs.sent import SentEvents
from pidispatch.jobs.store import JobStore
from pidispatch.receiver.app import Receiver
from pidispatch.receiver.body import Bodies
from pidispatch.receiver.desk import Desk
from pidispatch.receiver.health import Health
from pidispatch.receiver.hook import Hook, Served
from pidispatch.receiver.identity import own_identity
from pidispatch.receiver.lanes import Lane
from pidispatch.receiver.measures import Measures, uncounted
from pidispatch.receiver.server import Listener, listen, serve
from pidispatch.receiver.watching import Unheard, watched_rules
from pidispatch.server.client import warn_unless_durable
from pidispatch.server.use import Server, use_server
from pidispatch.triggers.rules import Rules
from pidispatch.values.clock import Clock
from pidispatch.values.errors import DispatchError, InfraError
from pidispatch.values.forge import JobKind
from pidispatch.values.limits import Limits
from pidispatch.worker.belonging import join_deployment
from pidispatch.worker.ticker import Ticker
from pidispatch.workspace import process

#: Threads in which forges are asked about somebody, and the most that waits for them.
_LOOKUPS: Final = 8
_WAITING: Final = 64
#: Seconds between two words to the store that forges are heard here, and after one that was not heard.
_HEAR_S: Final = 3600.0
_AGAIN_S: Final = 60.0
#: Seconds in which, at the end, what was begun at the store must be done.
_LEAVE_S: Final = 5.0


Modules = Mapping[JobKind, ForgeModule]


def run_receiver(limits: Limits | None = None, modules: Modules = MODULES) -> int:
    """Hear webhooks until told to stop; the exit code: as of `run_program`."""
    return run_program(lambda settings: _run(settings, limits or Limits(), modules))


def run_program(run: Callable[[Settings], None]) -> int:
    """Do what a program is for, until told to stop; the exit code: 0 after SIGTERM or SIGINT, 2 refused, 1 all else."""
    configure_log(events=True, output=True)
    # Libraries word faults for programmers and quote what was sent, so nothing of theirs is printed.
    logging.getLogger().addHandler(logging.NullHandler())
    # Until it listens there is nothing to finish, so being told to stop ends the start where it is.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        run(load_settings())
    except KeyboardInterrupt:
        log().info("receiver_stopping", signal="start")
    except DispatchError as error:
        _tell_failed(error.message.replace("\n", "; "), error.cause)
        return error.exit_code
    except Exception as error:
        at = traceback.extract_tb(error.__traceback__)[-1]
        place = f"{Path(at.filename).name}:{at.lineno}"
        _tell_failed(f"a mistake of this program: {type(error).__name__} at {place}", "internal-error")
        return 1
    return 0


def _tell_failed(reason: str, cause: str | None) -> None:
    """The one line to standard error: a program that does not come up has no log."""
    configure_log(events=True)
    log().error("receiver_start_failed", reason=reason, cause=cause)


def _run(settings: Settings, limits: Limits, modules: Modules) -> None:
    clock = SystemClock()
    with ExitStack() as opened:
        watched = watched_rules(settings, limits)
        rules = watched.load()
        served = served_forges(settings, os.environ, rules, modules, clock, time.sleep)
        unheard = Unheard([one.module.row.kind for one in served], os.environ)
        unheard(rules)
        server = opened.enter_context(use_server(settings))
        warn_unless_durable(server.facts)
        store = JobStore(server.client, settings.key_prefix, limits)
        deployment = join_deployment(store, settings.state_dir)
        desk = desk_at(opened, settings, limits, server, store)
        hear(opened, store, [one.module.row.kind for one in served], watched)
        watched.on_change.append(unheard)
        opened.callback(watched.stop)
        listeners = _listeners(opened, settings, served, watched, desk, clock, server)
        watched.start()
        serve(listeners, partial(_ready, settings, served, watched, server, deployment))


def served_forges(
    settings: Settings,
    environ: Mapping[str, str],
    rules: Rules,
    modules: Modules,
    clock: Clock,
    sleep: Callable[[float], object],
) -> list[Served]:
    """The forges that this receiver hears from now on: those that a rule is about, or that the settings name.

    Raises `ConfigError` for a credential or a secret that is missing, before any forge is asked; and `InfraError`.
    """
    chosen = []
    for kind, module in modules.items():
        if module.configured(settings) or kind in rules.forges:
            account = module.account(settings, environ, process)
            chosen.append((module, module.wire(settings), account))
        elif kind is JobKind.GITHUB:
            log().info("github_arm_skipped")
    window_s = settings.receiver_identity_retry_seconds
    return [
        Served(module, wire, account, own_identity(module.row.kind, account, window_s, clock, sleep))
        for module, wire, account in chosen
    ]


def desk_at(opened: ExitStack, settings: Settings, limits: Limits, server: Server, store: JobStore) -> Desk:
    """Where jobs are handed in, as long as `opened` is."""
    app = producer(settings, server.address, limits)
    events = SentEvents(app)
    opened.callback(events.close)
    desk = Desk(store, lambda tickets: publish_all(app, tickets, events), settings, server.ensure)
    # Before the events, which tell of its tickets.
    opened.callback(desk.close, _LEAVE_S)
    return desk


def hear(opened: ExitStack, store: JobStore, kinds: list[JobKind], watched: WatchedFile[Rules]) -> None:
    """Say that these forges are heard here, now, after each edit, and as long as this program lives.

    Raises `InfraError`.
    """

    def say() -> None:
        store.hear(kinds, faulty=watched.fault is not None)

    def edited() -> None:
        # Without it nothing is lost: it is said again.
        with contextlib.suppress(InfraError):
            say()

    say()
    watched.on_edit.append(edited)
    ticker = Ticker("hear", _HEAR_S, say, _AGAIN_S)
    ticker.start()
    opened.callback(ticker.stop)


def _listeners(
    opened: ExitStack,
    settings: Settings,
    served: list[Served],
    watched: WatchedFile[Rules],
    desk: Desk,
    clock: Clock,
    server: Server,
) -> list[Listener]:
    """What hears the forges, and where it is wanted what tells of that. Raises `InfraError`."""
    lookups, bodies = Lane("lookup", _LOOKUPS, _WAITING), Bodies()
    measures = Measures() if settings.receiver_health_bind is not None else None
    counted = measures.count if measures is not None else uncounted
    hooks: dict[JobKind, Hook] = {
        one.module.row.kind: Hook(one, lambda: watched.value, desk, lookups, bodies, clock, counted) for one in served
    }
    place = settings.receiver_bind, settings.receiver_port, "RECEIVER_BIND and RECEIVER_PORT"
    listeners = [Listener(opened.enter_context(listen(*place)), Receiver(hooks))]
    if measures is not None and settings.receiver_health_bind is not None:
        host, port = host_and_port(settings.receiver_health_bind)
        health = Health(
            lambda: _answers(server), lambda: len(watched.value), lambda: watched.fault is not None, measures
        )
        listeners.append(Listener(opened.enter_context(listen(host, port, "RECEIVER_HEALTH_BIND")), health.app()))
    return listeners


def _answers(server: Server) -> bool:
    try:
        return bool(server.client.ping())
    except Exception:
        return False


def _ready(
    settings: Settings, served: list[Served], watched: WatchedFile[Rules], server: Server, deployment: str
) -> None:
    log().info(
        "receiver_started",
        bind=settings.receiver_bind,
        port=settings.receiver_port,
        health=settings.receiver_health_bind,
        forges=[one.module.row.kind.value for one in served],
        rules=len(watched.value),
        triggers=str(watched.path),
        valkey=server.address.shown,
        deployment=deployment,
    )
