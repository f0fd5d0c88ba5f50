"""The queue as the verbs find it that need nothing but its server, and work while any other setting is broken."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from pidispatch.cli.view import say_server
from pidispatch.config.log import configure_log
from pidispatch.jobs.store import JobStore
from pidispatch.server.address import ServerSettings
from pidispatch.server.use import Server, find_server, load_server_settings
from pidispatch.values.limits import Limits


@dataclass(frozen=True)
class AtQueue:
    """A server that answered, and the jobs on it."""

    settings: ServerSettings
    server: Server
    store: JobStore

    @property
    def where(self) -> str:
        """Which server it is, without its password."""
        return say_server(self.server, self.settings.state_dir)


@contextmanager
def at_queue() -> Iterator[AtQueue]:
    """The queue of `VALKEY_URL`, else of our own server, which is not started; a silent one is given up at once.

    Raises `ConfigError`, also for a store of a later format, and `InfraError`.
    """
    configure_log()
    settings = load_server_settings()
    with find_server(settings, hurry=True) as server:
        store = JobStore(server.client, settings.key_prefix, Limits())
        store.check_format()
        yield AtQueue(settings, server, store)
