"""Everything one worker process has, put together in one place, from its start to its end."""

import os
import threading
from collections.abc import Callable
from contextlib import ExitStack
from typing import Final

from celery import Celery
from celery.worker import state

from pidispatch.box.engine import Engine
from pidispatch.config.clock import SystemClock
from pidispatch.config.log import log
from pidispatch.config.settings import Settings
from pidispatch.config.zone import schedule_zone
from pidispatch.gates.chain import Gates
from pidispatch.gates.folder import FolderMutex
from pidispatch.gates.host import HostSlots
from pidispatch.jobs.producer import own_queue, publish
from pidispatch.jobs.rows import Ticket
from pidispatch.jobs.store import JobStore
from pidispatch.money.budget import Budget
from pidispatch.money.standing import RECORDS_DAYS, records_suffice
from pidispatch.runs.attempt import Attempt
from pidispatch.runs.index import RecordIndex
from pidispatch.runs.records import RecordStore
from pidispatch.runs.sweep import remove_old
from pidispatch.server.client import warn_unless_durable
from pidispatch.server.use import Server, use_server
from pidispatch.triggers.disarm import triggers_path
from pidispatch.values.clock import Clock
from pidispatch.values.errors import ConfigError, InfraError
from pidispatch.values.limits import Limits
from pidispatch.values.reason import AbortReason
from pidispatch.worker.belonging import join_deployment
from pidispatch.worker.cases import Cases
from pidispatch.worker.commenter import Commenter
from pidispatch.worker.deliver import Deliverer, unseen
from pidispatch.worker.disarmer import Disarmer
from pidispatch.worker.ending import Ending
from pidispatch.worker.forges import Accounts
from pidispatch.worker.hook import Recorder
from pidispatch.worker.leases import Leases
from pidispatch.worker.liveness import Liveness
from pidispatch.worker.operator_files import OperatorFiles
from pidispatch.worker.orders import Orders
from pidispatch.worker.output import JobOutput
from pidispatch.worker.owner import Owner
from pidispatch.worker.pauses import Pauses
from pidispatch.worker.scheduler import Scheduler
from pidispatch.worker.seat import Seat
from pidispatch.worker.settling import Settling, unheard
from pidispatch.worker.sweeper import Sweeper
from pidispatch.worker.tick import send_tick
from pidispatch.worker.ticker import Ticker

_ATTRIBUTE: Final = "pi_station"
#: Exit codes of a worker that ends itself.
_RESTART, _REFUSED = 1, 2


def station_of(app: Celery) -> "Station | None":
    """The station of `app`; `None` in a program that is no worker."""
    found: Station | None = getattr(app, _ATTRIBUTE, None)
    return found


class Station:
    """One worker's server, store, gates, leases and threads."""

    def __init__(self, app: Celery, settings: Settings, limits: Limits, output: JobOutput | None = None) -> None:
        self._app = app
        self._settings = settings
        self._limits = limits
        self._output = output
        self._open = ExitStack()
        self._stopping = threading.Event()
        self._closed = threading.Event()
        self._watchdog: threading.Thread | None = None
        self._tickers: list[Ticker] = []

    def open(self) -> None:
        """Join the server, take the place at the engine, clear up, begin. Raises `ConfigError` and `InfraError`."""
        try:
            self._assemble()
            remove_old(self._settings, SystemClock(), self._index)
            # Before anything is consumed: what runs under our label has no owner.
            self.seat.sit_down()
            self.pauses.look()
            for ticker in self._tickers:
                ticker.start()
                self._open.callback(ticker.stop)
            self._open.callback(self.files.stop)
            self.files.start(self._beat_now)
            setattr(self._app, _ATTRIBUTE, self)
        except BaseException:
            self._open.close()
            raise

    def _assemble(self) -> None:
        settings, limits, clock = self._settings, self._limits, SystemClock()
        self.files = OperatorFiles(settings, limits)
        # Before anything is joined: what is refused here leaves no trace.
        self.files.load()
        self.server: Server = self._open.enter_context(use_server(settings))
        warn_unless_durable(self.server.facts)
        self.store = JobStore(self.server.client, settings.key_prefix, limits, breaker_runs=settings.breaker_runs)
        self.deployment = join_deployment(self.store, settings.state_dir)
        self._index = RecordIndex(settings.state_dir, settings.logs_dir)
        self._open.callback(self._index.close)
        self._records = RecordStore(settings.logs_dir, self._index)
        self.accounts = Accounts(settings, os.environ)
        self.commenter = Commenter(self.store, self.accounts, limits, clock, settings.worker_name)
        self.record = Recorder(self.store, self._records, Disarmer(self.store, triggers_path(settings)), self.commenter)
        self.sweeper = Sweeper(self.store, self.publish, self.record)
        say = self._output.say if self._output is not None else unheard
        settling = Settling(
            self.store, self._records, self.record, self.sweeper, settings, self.deployment, limits, clock, say
        )
        self.seat = Seat(Engine.connect, settling, self._taken)
        self._open.callback(self.seat.leave)
        self._owner = Owner(settings.worker_name, self.seat)
        self.leases = Leases(self.store, settings.worker_name)
        self.orders = Orders(self.store, self.leases, self.record, settings.worker_name)
        self.slots = HostSlots(self.slot_limit, limits)
        ending = Ending(self.store, self._records, settings.worker_name, limits, clock, self._stopping)
        cases = Cases(self.store, Budget(settings), ending)
        self.deliver = Deliverer(
            self.store,
            Gates((*self.files.first_gates, self.slots, FolderMutex(limits))),
            self.leases,
            cases,
            self._records,
            settings,
            limits,
            clock,
            self._owner,
            self._stopping,
            self.seat.look_again,
            self._output.step if self._output is not None else unseen,
        )
        self.deliver.attempt = Attempt(
            settings,
            self.seat.engine,
            cases.finish,
            limits,
            clock,
            marked=cases.marked,
            spend=cases.spend,
            book=cases.book,
            output=self._output,
            accounts=self.accounts,
            records=self._records,
        )
        self.pauses = Pauses(self.store.paused, self._app.amqp.queues)
        self.liveness = Liveness(self._send_tick, self._answers, self._give_up, self._listens, limits, clock)
        self._tickers = self._threads(clock)

    def _threads(self, clock: Clock) -> list[Ticker]:
        """What is done again and again while the worker lives."""
        settings, limits = self._settings, self._limits
        comments = Ticker("comments", limits.sweep_every_s, self._ensuring(self.commenter.post))
        self.commenter.nudge = comments.nudge
        tickers = [
            Ticker("renew", limits.renew_every_s, self.leases.renew, limits.store_retry_s),
            Ticker("watch", limits.cancel_poll_s, self._ensuring(self.leases.watch)),
            # Also one that holds no job needs a server.
            Ticker("sweep", limits.sweep_every_s, self._ensuring(self.sweeper)),
            Ticker("tick", limits.tick_every_s, lambda: self.liveness.beat(len(self.leases.all()))),
            Ticker("pauses", limits.pause_poll_s, self.pauses.look),
            Ticker("beat", limits.worker_seen_s / 3, self.beat),
            comments,
        ]
        if (schedules := self.files.schedules) is not None:
            zone = schedule_zone(settings.tz)
            scheduler = Scheduler(schedules, zone, self.store, self.publish, settings, limits, clock)
            tickers.append(Ticker("schedule", limits.schedule_every_s, self._ensuring(scheduler), limits.store_retry_s))
        if hours := settings.sweep_interval_hours:
            tickers.append(Ticker("retention", hours * 3600, lambda: remove_old(settings, clock, self._index)))
        return tickers

    def slot_limit(self) -> int:
        """Jobs that may run on this machine at the same time."""
        return self._settings.concurrency

    def _listens(self) -> bool:
        """Whether this worker would fetch a ticket of its own queue now."""
        return self.slots.free() > 0 and not self.pauses.holds(own_queue(self._settings))

    def publish(self, ticket: Ticket) -> None:
        """Publish a ticket. Raises `InfraError`."""
        publish(self._app, ticket)

    def beat(self) -> None:
        """Let the store know of this worker. Raises `InfraError`."""
        self.store.beat(
            self._settings.worker_name,
            {
                "queues": ",".join(sorted(self._app.amqp.queues)),
                "slots": str(self.slot_limit()),
                "running": str(len(self.leases.all())),
                "heardS": str(int(self.liveness.age_s)),
                "engine": self.seat.engine_id,
                "files": ",".join(self.files.faulty()),
            },
        )

    def _beat_now(self) -> None:
        """Let the store know without waiting for the next beat. Never raises."""
        try:
            self.beat()
        except InfraError as error:
            log().warning("beat_failed", cause=error.cause)

    def ready(self) -> None:
        """The consumer hears: say what this worker does, and how much it may spend."""
        settings = self._settings
        log().info(
            "worker_started",
            host=settings.worker_name,
            queue=sorted(self._app.amqp.queues),
            concurrency=self.slot_limit(),
            maxTurns=settings.max_turns,
            maxTokens=settings.max_tokens,
            dailyCap=settings.daily_cap,
            weeklyCap=settings.weekly_cap,
            monthlyCap=settings.monthly_cap,
            softHoldPct=settings.soft_hold_pct,
            dailyTokenCap=settings.daily_token_cap,
            tz=schedule_zone(settings.tz).key if self.files.schedules is not None else None,
            image=settings.job_image,
            egress=settings.egress,
            valkey=self.server.address.shown,
            serverVersion=self.server.facts.version,
            deployment=self.deployment,
            logsDir=str(settings.logs_dir),
        )
        self.accounts.tell_unavailable()
        if not records_suffice(settings):
            log().warning("retention_short", days=settings.log_retention_days, needed=RECORDS_DAYS)
        self.liveness.heard()
        self._beat_now()

    def stop_running(self) -> None:
        """Begin nothing more, and end every job that runs."""
        self._stopping.set()
        self.leases.abort_all(AbortReason.SHUTDOWN)
        self._leave_in_any_case()

    def close(self) -> None:
        """Leave everything that was joined. Celery has waited for all tasks by then."""
        setattr(self._app, _ATTRIBUTE, None)
        try:
            self.store.leave(self._settings.worker_name)
        except InfraError as error:
            log().debug("leave_untold", cause=error.cause)
        self._open.close()
        self._closed.set()

    def _leave_in_any_case(self) -> None:
        """End the process where Celery does not come to it: a connection may hang in which it waits without bound."""

        def watch() -> None:
            while not self._closed.wait(self._limits.leave_s):
                if not self.leases.all():
                    log().error("worker_stuck")
                    # What is held is given up by the kernel; tickets come again by themselves.
                    os._exit(_RESTART)

        if self._watchdog is None:
            self._watchdog = threading.Thread(target=watch, name="pi-watchdog", daemon=True)
            self._watchdog.start()

    def _ensuring(self, act: Callable[[], None]) -> Callable[[], None]:
        def ensured() -> None:
            try:
                act()
            except InfraError:
                # Our own server may have been killed; anybody who uses it may start it again.
                self.server.ensure()
                raise

        return ensured

    def _send_tick(self) -> None:
        send_tick(self._app, self._settings, self._limits)

    def _answers(self) -> bool:
        try:
            return bool(self.server.client.ping())
        except Exception:
            return False

    def _give_up(self) -> None:
        _stop_with(_RESTART)
        self._leave_in_any_case()

    def _taken(self, error: ConfigError) -> None:
        log().error("engine_taken", cause=error.cause)
        _stop_with(_REFUSED)


def _stop_with(code: int) -> None:
    """Have Celery's main thread stop the worker, with this exit code."""
    vars(state)["should_stop"] = code
