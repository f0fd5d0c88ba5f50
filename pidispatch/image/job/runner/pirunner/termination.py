"""SIGTERM: the worker wants the job's end. The run is aborted and what it spent is still reported, in bounded time.

The request is only posted to the inbox, so the main thread does the orderly end. If that does not come in time, a
watchdog thread prints the line and ends the process: the exit line must not depend on a pi that hangs.
"""

import os
import threading
from collections.abc import Callable, Mapping

from pirunner import children
from pirunner.agent import Inbox, Notice
from pirunner.lines import Lines


class Termination:
    """The request to end, once it came."""

    def __init__(self, inbox: Inbox, lines: Lines, seconds: float, report: Callable[[], Mapping[str, object]]) -> None:
        """`report` gives the exit line's fields as they stand; `seconds` is the time the orderly end may take."""
        self._inbox = inbox
        self._lines = lines
        self._report = report
        self._watchdog = threading.Timer(seconds, self._force)
        self._watchdog.daemon = True
        self.requested = False

    def request(self) -> None:
        """Ask for the end; the first time counts."""
        if not self.requested:
            self.requested = True
            self._inbox.put(Notice.TERMINATE)
            self._watchdog.start()

    def dismiss(self) -> None:
        """Call the watchdog off: the exit line is printed."""
        self.requested = True
        self._watchdog.cancel()

    def _force(self) -> None:
        try:
            for pid in children.descendants(os.getpid()):
                children.kill(pid)
            code = self._lines.exit(self._report(), timeout=0.5)
        except Exception:
            # The main thread may change the counts while they are read. The line goes out without them.
            code = self._lines.exit({"code": 143, "reason": "terminated"}, timeout=0.5)
        os._exit(code)
