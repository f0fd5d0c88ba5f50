"""What happens at the signals of a worker's start and end."""

import signal
import threading
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from celery import platforms
from celery.concurrency import get_implementation
from celery.exceptions import SecurityWarning
from celery.signals import worker_init, worker_ready, worker_shutdown
from structlog.testing import capture_logs

from pidispatch.config.log import log as real_log
from pidispatch.values.errors import ConfigError, InfraError
from pidispatch.worker import lifecycle as module
from tests.unit.worker.conftest import Application

THREADS = get_implementation("threads")


class Station:
    """What the lifecycle does with a station."""

    opens: Callable[[], None] = staticmethod(lambda: None)

    def __init__(self, *_: Any) -> None:
        self.did: list[str] = []
        self.stopped = threading.Event()

    def open(self) -> None:
        self.did.append("open")
        type(self).opens()

    def ready(self) -> None:
        self.did.append("ready")

    def stop_running(self) -> None:
        self.did.append("stop")
        self.stopped.set()

    def close(self) -> None:
        self.did.append("close")


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> Iterator[type[Station]]:
    own = type("Own", (Station,), {})
    monkeypatch.setattr(module, "Station", own)
    hup, term = signal.getsignal(signal.SIGHUP), signal.getsignal(signal.SIGTERM)
    yield own
    signal.signal(signal.SIGHUP, hup)
    signal.signal(signal.SIGTERM, term)


class Worker:
    """Celery's worker, as its signals hand it on."""

    def __init__(self, app: Any, pool: Any) -> None:
        self.app = app
        self.pool_cls = pool


def worker(application: Application, pool: Any = THREADS) -> Any:
    return Worker(application.app, pool)


def station(application: Application) -> Any:
    return vars(application.lifecycle)["_station"]


def test_from_its_start_to_its_end(application: Application, made: type[Station]) -> None:
    own = worker(application)
    with capture_logs():
        worker_init.send(sender=own)
    began = station(application)
    assert isinstance(began, made)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    worker_ready.send(sender=own)
    # One that would start the worker anew, beside what it started, is one that ends it.
    assert signal.getsignal(signal.SIGHUP) is signal.default_int_handler
    told_to_stop = [application.lifecycle.signalled]
    with capture_logs() as logs:
        application.lifecycle._shutting_down(sig="SIGTERM", how="Warm")
        assert began.stopped.wait(30)
        worker_shutdown.send(sender=own)
        worker_shutdown.send(sender=own)
    told_to_stop.append(application.lifecycle.signalled)
    assert told_to_stop == [False, True]
    assert began.did == ["open", "ready", "stop", "stop", "close"]
    assert logs == [
        {"event": "worker_stopping", "log_level": "info", "signal": "SIGTERM", "how": "warm"},
        {"event": "worker_stopped", "log_level": "info"},
    ]


def test_a_hangup_that_the_starter_ignores_stays_ignored(application: Application, made: type[Station]) -> None:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    worker_init.send(sender=worker(application))
    worker_ready.send(sender=worker(application))
    assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    assert station(application).did == ["open", "ready"]
    assert made.__name__ == "Own"


@pytest.mark.usefixtures("made")
def test_a_worker_of_another_application_is_none_of_ours(application: Application) -> None:
    for sender in (None, Worker(None, "solo")):
        application.lifecycle._begin(sender=sender)
        application.lifecycle._ready(sender=sender)
        application.lifecycle._end(sender=sender)
        application.lifecycle._asked(instance=sender, options={"purge": True})
    application.lifecycle._shutting_down(sig="SIGTERM", how="Warm")
    assert station(application) is None
    assert application.lifecycle.signalled is False


@pytest.mark.parametrize(
    ("error", "code", "told"),
    [
        (ConfigError("PI_X is none", "setting"), 2, "pi-dispatch: PI_X is none\n"),
        (InfraError("nobody answers", "server-unreachable"), 1, "pi-dispatch: nobody answers\n"),
    ],
)
def test_what_cannot_begin_ends_the_program_with_the_message_alone(
    application: Application,
    made: type[Station],
    capsys: pytest.CaptureFixture[str],
    error: Exception,
    code: int,
    told: str,
) -> None:
    def raising() -> None:
        raise error

    made.opens = staticmethod(raising)
    with pytest.raises(SystemExit) as caught:
        worker_init.send(sender=worker(application))
    assert (caught.value.code, capsys.readouterr().err) == (code, told)


def test_a_mistake_at_the_start_ends_the_program_too(
    application: Application, made: type[Station], capsys: pytest.CaptureFixture[str]
) -> None:
    """Celery would log it and go on, taking jobs that it cannot run."""

    def raising() -> None:
        raise KeyError("mistake")

    made.opens = staticmethod(raising)
    with pytest.raises(SystemExit) as caught:
        worker_init.send(sender=worker(application))
    assert caught.value.code == 1
    assert "KeyError: 'mistake'" in capsys.readouterr().err


@pytest.mark.usefixtures("made")
def test_another_pool_is_refused(application: Application, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        worker_init.send(sender=worker(application, get_implementation("solo")))
    assert caught.value.code == 2
    assert capsys.readouterr().err.startswith("pi-dispatch: the pool 'solo' cannot serve")


@pytest.mark.usefixtures("made")
def test_a_bound_that_nothing_enforces_is_refused(
    application: Application, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PI_DAILY_COST_USD", "5")
    with pytest.raises(SystemExit) as caught:
        worker_init.send(sender=worker(application))
    assert caught.value.code == 2
    assert "PI_DAILY_COST_USD is set, and this version serves nothing of that" in capsys.readouterr().err


@pytest.mark.usefixtures("made")
def test_a_fixed_setting_from_the_command_line_is_refused(
    application: Application, capsys: pytest.CaptureFixture[str]
) -> None:
    application.app.conf.task_acks_late = False
    with pytest.raises(SystemExit) as caught:
        worker_init.send(sender=worker(application))
    assert caught.value.code == 2
    assert capsys.readouterr().err.startswith("pi-dispatch: task_acks_late cannot be set on the command line")


def test_an_option_that_cannot_be_taken_is_refused_before_anything_else(
    application: Application, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as caught:
        application.lifecycle._asked(instance=worker(application), options={"queues": ["other"]})
    assert caught.value.code == 2
    assert capsys.readouterr().err.startswith("pi-dispatch: --queues cannot be given")


def test_of_celerys_warnings_only_that_of_a_root_worker_is_silenced(application: Application) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        application.lifecycle._asked(instance=worker(application))
        vars(platforms)["_warn_or_raise_security_error"](0, 0, 0, 0, False)
        warnings.warn(SecurityWarning("An entry for the specified gid"), stacklevel=1)
    assert [str(one.message) for one in caught] == ["An entry for the specified gid"]


@pytest.mark.parametrize(("terminal", "shown"), [(True, True), (False, False)])
def test_output_is_shown_at_a_terminal_alone(
    application: Application, monkeypatch: pytest.MonkeyPatch, terminal: bool, shown: bool
) -> None:
    given: list[Any] = []

    class Noting(Station):
        def __init__(self, *arguments: Any) -> None:
            super().__init__()
            given.append(arguments[-1])

    monkeypatch.setattr(module, "Station", Noting)
    monkeypatch.setattr("sys.stderr.isatty", lambda: terminal)
    worker_init.send(sender=worker(application))
    assert (given[0] is not None) is shown


def test_celerys_log_is_sent_to_ours(application: Application, monkeypatch: pytest.MonkeyPatch) -> None:
    levels: list[Any] = []
    monkeypatch.setattr(module, "configure_celery_log", levels.append)
    application.lifecycle._logging(loglevel="INFO")
    assert levels == ["INFO"]


def test_an_error_with_several_lines_is_shown_with_all_of_them(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        module.leave(ConfigError("one\ntwo\x1b", "setting"))
    assert capsys.readouterr().err == "pi-dispatch: one\ntwo\\u{001B}\n"


@pytest.mark.usefixtures("made")
def test_a_signal_is_taken_whatever_it_interrupts(application: Application, monkeypatch: pytest.MonkeyPatch) -> None:
    """A handler runs inside of what it interrupts, which may hold any lock: it begins no thread and writes no log."""
    worker_init.send(sender=worker(application))
    began = station(application)

    def log() -> Any:
        assert threading.current_thread() is not threading.main_thread()
        return real_log()

    monkeypatch.setattr(module, "log", log)
    starting: Any = vars(threading)["_active_limbo_lock"]
    # As where the main thread is just starting one.
    with starting:
        for _ in range(3):
            application.lifecycle._shutting_down(sig="SIGTERM", how="Warm")
    assert application.lifecycle.signalled
    assert began.stopped.wait(30)
    assert began.did == ["open", "stop"]
