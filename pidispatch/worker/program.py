"""A worker as a program of its own: what `pi-dispatch worker` runs."""

import socket
from typing import Final

from pidispatch.config.settings import Settings, load_settings
from pidispatch.values.limits import Limits
from pidispatch.worker.app import build_app

#: Features of Celery's that cost much and that nothing here needs: workers telling each other what they do.
_WITHOUT: Final = {"without_mingle": True, "without_gossip": True}


def run_worker(limits: Limits | None = None) -> int:
    """Take jobs until told to stop; the exit code. Raises `ConfigError`.

    0 after SIGTERM, SIGINT or SIGHUP, once every job that ran has its record; 1 and 2 as everywhere.
    """
    settings = load_settings()
    app, lifecycle = build_app(settings, limits)
    worker = app.Worker(hostname=node_name(settings), quiet=True, loglevel="WARNING", **_WITHOUT)
    worker.start()
    return 0 if lifecycle.signalled else int(worker.exitcode or 0)


def node_name(settings: Settings) -> str:
    """The worker's name among Celery's nodes, `<name>@<host>`, by which Flower and the records can be joined."""
    return f"{settings.worker_name}@{socket.gethostname()}"
