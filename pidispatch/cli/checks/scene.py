"""What several checks look at: server and engine, each asked once, at the same time, and never waited for long."""

import contextlib
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TypeVar

import redis

from pidispatch.box.engine import Engine, EngineFacts
from pidispatch.box.images import engine_faults
from pidispatch.cli.checks.known import VARIABLES, Known, asked_accounts, used_forges
from pidispatch.cli.checks.row import Told
from pidispatch.config.asked import asked
from pidispatch.config.operator_file import read_text
from pidispatch.config.settings import Settings, load_only
from pidispatch.jobs.rows import WorkerSeen
from pidispatch.jobs.store import JobStore
from pidispatch.server.address import OWN_FOLDER, Address
from pidispatch.server.client import ServerFacts, check_server, connect
from pidispatch.server.daemon import Daemon
from pidispatch.server.embedded import Embedded
from pidispatch.server.use import load_server_settings
from pidispatch.triggers.disarm import triggers_path
from pidispatch.triggers.entry import TriggersFile
from pidispatch.triggers.file import parse_triggers
from pidispatch.values.errors import ConfigError, DispatchError
from pidispatch.values.forge import JobKind
from pidispatch.values.limits import Limits

T = TypeVar("T")


@dataclass(frozen=True)
class Reached:
    """A server that answered and can serve."""

    address: Address
    client: redis.Redis
    facts: ServerFacts
    store: JobStore
    #: pi-dispatch's own, of which this is no user.
    own: bool


@dataclass(frozen=True)
class Asleep:
    """Our own server, which nobody uses now."""

    address: Address


@dataclass(frozen=True)
class Connected:
    """An engine that answered."""

    engine: Engine
    facts: EngineFacts
    version: str


class Scene:
    """The surroundings. `patience_s` is how long server, engine and a forge may take to answer.

    `repositories` are those that are looked at besides those of the settings.
    """

    def __init__(self, patience_s: float, repositories: Sequence[str] = ()) -> None:
        self.patience_s = patience_s
        self._named = tuple(repositories)
        self._server = asked(_reach)
        self._engine = asked(_connect)

    def settings(self, *variables: str) -> Settings:
        """These variables alone; a malformed one of them has a row already."""
        try:
            return load_only(variables)
        except DispatchError:
            raise Told from None

    @cached_property
    def triggers(self) -> tuple[Path, TriggersFile]:
        """The triggers file that receivers read, and where it is.

        What is wrong with it, or that there is none, has a row of its own.
        """
        path = triggers_path(self.settings("PI_TRIGGERS_FILE"))
        try:
            return path, parse_triggers(read_text(path), path)
        except ConfigError:
            raise Told from None

    @cached_property
    def accounts(self) -> dict[JobKind, Future[Known]]:
        """The accounts at the forges in use, which are asked from the first look on."""
        try:
            _, file = self.triggers
        except Told:
            file = None
        settings = self.settings(*VARIABLES)
        return asked_accounts(used_forges(settings, file, bool(self.repositories)), settings)

    @property
    def repositories(self) -> tuple[str, ...]:
        """Those at GitHub that a person or the settings name, each once."""
        polled = self.settings(*VARIABLES).poll_repos or ()
        return tuple(dict.fromkeys((*self._named, *polled)))

    def server(self) -> Reached | Asleep:
        """The server. Raises why it does not serve; `TimeoutError` where it does not answer."""
        return self._server.result(self.patience_s)

    def reached(self) -> Reached:
        """The server, for a check that stands on it."""
        found = _or_told(self.server)
        if isinstance(found, Asleep):
            raise Told
        return found

    def workers(self) -> tuple[WorkerSeen, ...]:
        """Every worker that is there, for a check that stands on it."""
        return () if isinstance(_or_told(self.server), Asleep) else self.reached().store.workers()

    def engine(self) -> Connected:
        """The engine. Raises why it does not serve; `TimeoutError` where it does not answer."""
        return self._engine.result(self.patience_s)

    def connected(self) -> Connected:
        """The engine, for a check that stands on it."""
        return _or_told(self.engine)

    def close(self) -> None:
        """Close what is open."""
        if isinstance(server := _answer(self._server), Reached):
            server.client.close()
        if (connected := _answer(self._engine)) is not None:
            connected.engine.close()


def _or_told(look: Callable[[], T]) -> T:
    try:
        return look()
    except (DispatchError, TimeoutError):
        raise Told from None


def _answer(asked_: Future[T]) -> T | None:
    """The answer that came, if one did."""
    return asked_.result() if asked_.done() and asked_.exception() is None else None


def _reach() -> Reached | Asleep:
    try:
        settings = load_server_settings()
        address = Address.of(settings)
    except DispatchError:
        # A malformed variable has a row already.
        raise Told from None
    if settings.valkey_url is None:
        # Where it was never started, only its start would tell.
        Daemon(settings.state_dir / OWN_FOLDER).refuse_long_path()
        if not Embedded(settings.state_dir).look().lives:
            return Asleep(address)
    client = connect(address)
    try:
        facts = check_server(client, address)
    except BaseException:
        client.close()
        raise
    store = JobStore(client, settings.key_prefix, Limits())
    return Reached(address, client, facts, store, own=settings.valkey_url is None)


def _connect() -> Connected:
    engine = Engine.connect()
    with contextlib.ExitStack() as open_:
        open_.callback(engine.close)
        facts = engine.facts()
        with engine_faults("say its version"):
            version = str(engine.client.version()["Version"])
        open_.pop_all()
    return Connected(engine, facts, version)
