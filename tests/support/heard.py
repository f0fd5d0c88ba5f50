"""What is logged, from any thread, by a test that waits for it."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

import structlog

#: Longer than anything takes that is waited for.
_PATIENCE_S = 20.0


class Heard:
    """Every event so far."""

    def __init__(self) -> None:
        self._news = threading.Condition(threading.RLock())
        self._entries: list[dict[str, Any]] = []

    def __call__(self, _logger: object, level: str, entry: Any) -> NoReturn:
        """Keep an event, as the log's only processor."""
        with self._news:
            self._entries.append({**entry, "log_level": level})
            self._news.notify_all()
        raise structlog.DropEvent

    def named(self, event: str) -> list[dict[str, Any]]:
        """All events of this name."""
        with self._news:
            return [one for one in self._entries if one["event"] == event]

    def wait(self, event: str, times: int = 1) -> dict[str, Any]:
        """Wait until there were so many events of this name; the last of them."""
        self.until(lambda: len(self.named(event)) >= times, f"{times} x {event}")
        return self.named(event)[times - 1]

    def until(self, holds: Callable[[], bool], what: str) -> None:
        """Wait until something holds that changes with what is logged."""
        with self._news:
            assert self._news.wait_for(holds, _PATIENCE_S), f"not heard: {what}; heard: {self._entries}"


@contextmanager
def listening() -> Iterator[Heard]:
    """Hear everything that is logged."""
    heard = Heard()
    structlog.configure(processors=[heard])
    try:
        yield heard
    finally:
        structlog.reset_defaults()
