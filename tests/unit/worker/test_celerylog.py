"""What Celery logs comes out as events, without the texts of exceptions and of messages."""

import logging
from collections.abc import Iterator
from typing import Any

import pytest
from structlog.testing import capture_logs

from pidispatch.worker.celerylog import configure_celery_log

SECRET = "a marked text of a job"


@pytest.fixture(autouse=True)
def _bridge() -> Iterator[None]:
    before = {name: logging.getLogger(name) for name in ("celery", "kombu", "amqp")}
    kept = {name: (one.handlers, one.propagate, one.level) for name, one in before.items()}
    configure_celery_log("INFO")
    yield
    for name, (handlers, propagate, level) in kept.items():
        before[name].handlers, before[name].propagate = handlers, propagate
        before[name].setLevel(level)


def logged(level: int, message: Any, *args: Any, error: Exception | None = None) -> dict[str, Any]:
    with capture_logs() as logs:
        logging.getLogger("celery.worker").log(level, message, *args, exc_info=error)
    assert len(logs) == 1
    assert SECRET not in str(logs)
    return dict(logs[0])


@pytest.mark.parametrize(
    ("level", "word"), [(logging.INFO, "info"), (logging.WARNING, "warning"), (logging.CRITICAL, "error")]
)
def test_a_line_is_an_event_of_its_level(level: int, word: str) -> None:
    assert logged(level, "worker: %s", "Starting") == {
        "event": "celery",
        "log_level": word,
        "logger": "celery.worker",
        "text": "worker: Starting",
        "error": None,
        "at": None,
    }


def test_an_exception_is_told_by_its_kind_and_its_place() -> None:
    try:
        raise ValueError(SECRET)
    except ValueError as error:
        told = logged(logging.ERROR, "Error in timer: %r", error, error=error)
    assert (told["text"], told["error"]) == ("Error in timer: 'ValueError'", "ValueError")
    assert told["at"].startswith("test_celerylog.py:")


def test_one_that_was_never_raised_has_no_place() -> None:
    told = logged(logging.ERROR, "broken", error=KeyError(SECRET))
    assert (told["error"], told["at"]) == ("KeyError", None)


def test_of_a_failed_task_the_exception_is_told_by_its_kind() -> None:
    context = {"name": "pidispatch.job", "id": "local-1", "exc": f"OSError('{SECRET}')", "traceback": SECRET}
    told = logged(logging.ERROR, "Task %(name)s[%(id)s] raised unexpected: %(exc)s\n%(traceback)s", context)
    assert told["text"] == "Task pidispatch.job[local-1] raised unexpected: OSError"


def test_of_a_message_that_nobody_knows_only_the_first_line_is_told() -> None:
    told = logged(logging.ERROR, "Received unregistered task of type %s.\nThe body was:\n%s\n", "'x'", SECRET)
    assert told["text"] == "Received unregistered task of type 'x'."


def test_a_password_in_an_address_is_taken_out() -> None:
    told = logged(logging.ERROR, "consumer: Cannot connect to %s: %s", "redis://me:s3cret@h:1/0", OSError(SECRET))
    assert told["text"] == "consumer: Cannot connect to redis://[redacted]@h:1/0: OSError"


def test_a_line_that_cannot_be_made_ends_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logging, "raiseExceptions", False)
    with capture_logs() as logs:
        logging.getLogger("celery").error("%s %s", "one")
    assert logs == []


def test_nothing_goes_to_the_root_logger_and_the_level_is_the_one_asked_for() -> None:
    configure_celery_log(None)
    for name in ("celery", "kombu", "amqp"):
        logger = logging.getLogger(name)
        assert (logger.propagate, len(logger.handlers), logger.level) == (False, 1, logging.WARNING)
