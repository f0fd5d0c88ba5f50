"""The one logger: events with ids, numbers and fixed words, to standard error; the receiver's to standard output."""

import contextlib
import logging
import os
import sys
from typing import TextIO

import structlog


class _Unheard:
    """A stream whose reader may go away: what is left to say is dropped, and nothing that is paid for ends by it."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        with contextlib.suppress(OSError, ValueError):
            return self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        with contextlib.suppress(OSError, ValueError):
            self._stream.flush()


def configure_log(*, events: bool = False, output: bool = False) -> None:
    """At a terminal, where a person reads the result, warnings in human lines; elsewhere every event as JSON.

    `events`: every event at a terminal too, for a program whose log is all it says. `output`: every event as JSON to
    standard output, wherever that leads, for one whose log is its result.
    """
    terminal = sys.stderr.isatty() and not output
    renderer: structlog.typing.Processor = (
        structlog.dev.ConsoleRenderer(colors=not os.environ.get("NO_COLOR"))
        if terminal
        else structlog.processors.JSONRenderer()
    )
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(
            logging.WARNING if terminal and not events else logging.INFO
        ),
        logger_factory=structlog.WriteLoggerFactory(file=_Unheard(sys.stdout if output else sys.stderr)),  # type: ignore[arg-type]
        cache_logger_on_first_use=False,
    )


def log() -> structlog.typing.FilteringBoundLogger:
    """The logger; configure once per process with `configure_log`."""
    logger: structlog.typing.FilteringBoundLogger = structlog.get_logger()
    return logger
