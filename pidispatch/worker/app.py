"""The Celery application of a worker, as `celery -A pidispatch worker` and `pi-dispatch worker` find it.

It is made when it is asked for. Nothing is read from the current folder, and no server is started on import: only a
worker does that, once it begins; other commands of Celery's join a server that runs.
"""

import atexit
from contextlib import ExitStack
from typing import Final

import click
from celery import Celery

from pidispatch.config.settings import Settings, load_settings
from pidispatch.jobs.producer import configuration
from pidispatch.server.address import Address
from pidispatch.server.use import find_server
from pidispatch.values.errors import DispatchError
from pidispatch.values.limits import Limits
from pidispatch.worker import signals
from pidispatch.worker.consumer import EndRunning, FetchGate, Forgetting, Monitored, Renewal
from pidispatch.worker.control import override_revoke
from pidispatch.worker.lifecycle import Lifecycle, leave
from pidispatch.worker.reconnect import Reconnecting
from pidispatch.worker.task import register

#: Commands of Celery's that begin a server, and those that need none.
_WORKER: Final = "worker"
_joined: Final = ExitStack()
_SERVERLESS: Final = frozenset({_WORKER, "multi", "report", "shell", "upgrade", "list", "logtool", "graph"})


def build_app(settings: Settings, limits: Limits | None = None) -> tuple[Celery, Lifecycle]:
    """The application of a worker with `settings`, and the life of its process. Raises `ConfigError`."""
    limits = limits or Limits()
    app = Celery("pidispatch", set_as_current=True)
    app.config_from_object(configuration(settings, Address.of(settings), limits))
    app.amqp.Connection = Reconnecting
    app.events.dispatcher_cls = "pidispatch.worker.events:JobEvents"
    register(app)
    app.steps["worker"].add(EndRunning)
    app.steps["consumer"].update({Renewal, FetchGate, Forgetting, Monitored})
    signals.connect(app)
    override_revoke()
    lifecycle = Lifecycle(app, settings, limits)
    lifecycle.connect()
    return app, lifecycle


def make_app(limits: Limits | None = None) -> Celery:
    """The application for Celery's command line: an error of the settings ends the program with its exit code."""
    try:
        settings = load_settings()
        app, _ = build_app(settings, limits)
        _need_server(settings)
    except DispatchError as error:
        leave(error)
    return app


def _need_server(settings: Settings) -> None:
    """Join the embedded server for a command that lives on one, and hold it until the program ends."""
    context = click.get_current_context(silent=True)
    command = context.invoked_subcommand if context is not None else None
    if command is None or command in _SERVERLESS:
        return
    _joined.enter_context(find_server(settings))
    atexit.register(_joined.close)
