"""The life of a worker process as Celery tells it: what is refused at its start, and how it ends.

Signals: https://docs.celeryq.dev/en/stable/userguide/signals.html#worker-signals
"""

import os
import signal
import sys
import threading
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from queue import SimpleQueue
from typing import Any, Final, NoReturn

import click
from celery import Celery
from celery.exceptions import SecurityWarning
from celery.signals import celeryd_init, setup_logging, worker_init, worker_ready, worker_shutdown, worker_shutting_down

from pidispatch.config.log import configure_log, log
from pidispatch.config.settings import Settings, refuse_unserved_bounds
from pidispatch.config.text import printable_block
from pidispatch.jobs.celery_defaults import FIXED
from pidispatch.values.errors import DispatchError
from pidispatch.values.limits import Limits
from pidispatch.worker.celerylog import configure_celery_log, silence_signal_handlers
from pidispatch.worker.options import refuse_changed, refuse_options, refuse_pool
from pidispatch.worker.output import JobOutput
from pidispatch.worker.station import Station

#: How Celery's warning begins that a worker runs as root.
_AS_ROOT: Final = "You're running the worker with superuser privileges"


class Lifecycle:
    """The handlers of one application's worker."""

    def __init__(self, app: Celery, settings: Settings, limits: Limits) -> None:
        self._app = app
        self._settings = settings
        self._limits = limits
        self._station: Station | None = None
        # Celery itself adds the modules of its tasks to the last.
        self._fixed = {name: getattr(app.conf, name) for name in FIXED if name != "include"}
        #: Signals that asked the worker to stop.
        self._told: SimpleQueue[tuple[str, str]] = SimpleQueue()
        #: Whether a signal asked the worker to stop, which is no failure.
        self.signalled = False

    def connect(self) -> None:
        """Connect them all."""
        handlers: tuple[tuple[Any, Any], ...] = (
            (celeryd_init, self._asked),
            (worker_init, self._begin),
            (setup_logging, self._logging),
            (worker_ready, self._ready),
            (worker_shutting_down, self._shutting_down),
            (worker_shutdown, self._end),
        )
        for told, handler in handlers:
            # Strongly, as nobody else keeps this object; by a name, as Celery takes a method of two objects for one.
            told.connect(handler, weak=False, dispatch_uid=f"pi-dispatch-{id(self)}")

    def _logging(self, loglevel: Any = None, **_: Any) -> None:
        """Keep Celery from taking the root logger; its own lines become events of this house's log."""
        configure_log(events=True)
        configure_celery_log(loglevel)
        silence_signal_handlers()

    def _asked(self, instance: Any = None, options: dict[str, Any] | None = None, **_: Any) -> None:
        if instance is None or instance.app is not self._app:
            return
        # A worker may be root: its jobs run as the folder's owner, and tickets are JSON, which can run nothing.
        warnings.filterwarnings("ignore", _AS_ROOT, SecurityWarning)
        with _or_end():
            refuse_options(options or {}, self._app.conf.worker_concurrency)

    def _begin(self, sender: Any = None, **_: Any) -> None:
        if sender is None or sender.app is not self._app:
            return
        configure_log(events=True)
        with _or_end():
            refuse_unserved_bounds(os.environ)
            refuse_pool(sender.pool_cls)
            refuse_changed(self._fixed, self._app.conf)
            output = JobOutput() if sys.stderr.isatty() else None
            self._station = Station(self._app, self._settings, self._limits, output)
            self._station.open()
            threading.Thread(target=self._await_signal, args=(self._station,), name="pi-stop", daemon=True).start()

    def _ready(self, sender: Any = None, **_: Any) -> None:
        if self._station is None or sender is None or sender.app is not self._app:
            return
        # Celery would start itself anew on SIGHUP, beside what it started, and drop what runs on SIGQUIT and
        # on a second SIGINT.
        for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):
            if signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, signal.getsignal(signal.SIGTERM))
        self._station.ready()

    def _shutting_down(self, sig: str = "", how: str = "", **_: Any) -> None:
        if self._station is None:
            return
        self.signalled = True
        # Called inside of a signal handler, which may have interrupted anything in this thread, also another call of
        # itself, with any lock held: only this queue may be touched here.
        self._told.put((sig, how.lower()))

    def _await_signal(self, station: Station) -> None:
        """Stop what runs once a signal asks for it."""
        sig, how = self._told.get()
        log().info("worker_stopping", signal=sig, how=how)
        station.stop_running()

    def _end(self, sender: Any = None, **_: Any) -> None:
        if self._station is not None and sender is not None and sender.app is self._app:
            self._station.stop_running()
            self._station.close()
            self._station = None
            log().info("worker_stopped")


def leave(error: DispatchError) -> NoReturn:
    """Say why and end the program with the error's exit code."""
    click.echo(f"pi-dispatch: {printable_block(error.message)}", err=True)
    sys.exit(error.exit_code)


@contextmanager
def _or_end() -> Iterator[None]:
    """End the program where the block fails: Celery only logs what a handler raises, and would go on without it."""
    try:
        yield
    except DispatchError as error:
        leave(error)
    except Exception:
        traceback.print_exc()
        sys.exit(1)
