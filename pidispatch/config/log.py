"""The one logger: events with ids, numbers and fixed words, to standard error."""

import logging
import sys

import structlog


def configure_log() -> None:
    """At a terminal, where a person reads the result, warnings in human lines; elsewhere every event as JSON."""
    terminal = sys.stderr.isatty()
    renderer: structlog.typing.Processor = (
        structlog.dev.ConsoleRenderer() if terminal else structlog.processors.JSONRenderer()
    )
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING if terminal else logging.INFO),
        logger_factory=structlog.PrintLoggerFactory(file=sys.stderr),
        cache_logger_on_first_use=False,
    )


def log() -> structlog.typing.FilteringBoundLogger:
    """The logger; configure once per process with `configure_log`."""
    logger: structlog.typing.FilteringBoundLogger = structlog.get_logger()
    return logger
