"""What Celery and kombu log, as events of this house's log: their words, and of an exception its kind and its place.

The text of an exception may repeat whatever it choked on, and the lines after the first one a whole message.
"""

import logging
import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from celery.apps import worker as program

from pidispatch.config.log import log
from pidispatch.config.text import scrub

_LOGGERS: Final = ("celery", "kombu", "amqp")


class _Events(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        """Pass `record` on. A log line ends no worker."""
        try:
            text, error, at = scrub(_words(record)), *_raised(record)
            if record.levelno >= logging.ERROR:
                log().error("celery", logger=record.name, text=text, error=error, at=at)
            elif record.levelno >= logging.WARNING:
                log().warning("celery", logger=record.name, text=text, error=error, at=at)
            else:
                log().info("celery", logger=record.name, text=text, error=error, at=at)
        except Exception:
            self.handleError(record)


def _raised(record: logging.LogRecord) -> tuple[str | None, str | None]:
    """Kind and place of the exception that a line is about. Its text stays out: it may hold anything."""
    error = record.exc_info[1] if record.exc_info else None
    if error is None:
        return None, None
    raised = traceback.extract_tb(error.__traceback__)
    return type(error).__name__, f"{Path(raised[-1].filename).name}:{raised[-1].lineno}" if raised else None


def _words(record: logging.LogRecord) -> str:
    """The first line of the message, with the names of exceptions in the place of their texts."""
    args: Any = record.args
    if isinstance(args, Mapping):
        # What is said of a task, with its exception as text already.
        args = {name: str(value).partition("(")[0] if name == "exc" else value for name, value in args.items()}
    elif args:
        args = tuple(type(one).__name__ if isinstance(one, BaseException) else one for one in args)
    text = str(record.msg)
    return (text % args if args else text).strip().partition("\n")[0]


def configure_celery_log(loglevel: int | str | None) -> None:
    """Send their loggers here and nowhere else."""
    handler = _Events()
    for name in _LOGGERS:
        logger = logging.getLogger(name)
        logger.handlers = [handler]
        logger.propagate = False
        logger.setLevel(loglevel or logging.WARNING)


def silence_signal_handlers() -> None:
    """Keep Celery's handlers of signals from printing: they do it first, and where that fails they do nothing more.

    A worker whose terminal was closed, or whose disk is full, could not be stopped otherwise.
    """
    # By the module's own dictionary, as it is no attribute that is meant to be set.
    vars(program)["safe_say"] = _say_nothing


def _say_nothing(*_: object) -> None:
    pass
