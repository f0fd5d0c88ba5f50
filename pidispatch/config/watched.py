"""A file of the operator's that is read at the start and taken over while the program runs.

At the start a file that cannot be used is refused. Later a bad edit changes nothing: what was good last stays in force,
the log says so, and `fault` tells why until the file is mended (docs/how-to/quiet-hours.md).
"""

import os
import threading
from collections.abc import Callable, Sized
from enum import StrEnum
from pathlib import Path
from typing import Final, Generic, TypeVar

from pidispatch.config.log import log
from pidispatch.config.operator_file import read_bytes, text_of
from pidispatch.config.text import scrub
from pidispatch.values.errors import ConfigError

T = TypeVar("T", bound=Sized)
#: Seconds for which the end of the thread is waited for.
_END_S: Final = 5.0


class FileName(StrEnum):
    """What a watched file is called: the beginning of its events, and its name among those with a fault."""

    #: Quiet hours (PI_PAUSE_WINDOWS_FILE).
    PAUSE_WINDOWS = "pause_windows"
    #: Triggers (PI_TRIGGERS_FILE).
    TRIGGERS = "triggers"


class WatchedFile(Generic[T]):
    """One file. `parse` makes of its text what is in force, and raises `ConfigError`; its length counts the entries.

    What is watched is the folder, so that a file is seen too that is put in the place of the old one, also by the link
    of a folder above it (https://kubernetes.io/docs/concepts/configuration/configmap/#mounted-configmaps-are-updated-automatically).
    After any event there, and every `look_s` seconds, the bytes of the file are compared: some file systems tell no
    events.
    """

    def __init__(
        self, path: Path, name: FileName, parse: Callable[[str], T], *, debounce_ms: int, look_s: float
    ) -> None:
        self.path = path
        self.name = name
        self._parse = parse
        self._debounce_ms = debounce_ms
        self._look_s = look_s
        #: Called with what is in force from now on, by the thread that watches.
        self.on_change: list[Callable[[T], None]] = []
        #: Called after every edit, good or bad.
        self.on_edit: list[Callable[[], None]] = []
        self._value: T | None = None
        self._fault: str | None = None
        # The bytes that were judged last; why they could not be read, in their place.
        self._seen: bytes | str | None = None
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None

    @property
    def value(self) -> T:
        """What is in force."""
        assert self._value is not None, "loaded at the start"
        return self._value

    @property
    def fault(self) -> str | None:
        """Why the newest content is not in force; `None` where it is."""
        return self._fault

    def load(self) -> T:
        """Read it for the first time. Raises `ConfigError` where it is missing, unreadable or invalid."""
        content = read_bytes(self.path)
        self._value = self._parse(text_of(content, self.path))
        self._seen = content
        return self._value

    def start(self) -> None:
        """Begin to watch; an edit since `load` is found, too."""
        self._thread = threading.Thread(target=self._run, name=f"pi-watch-{self.name}", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End it. Never raises, also where it never began."""
        self._stopping.set()
        if self._thread is not None:
            self._thread.join(_END_S)

    def look(self) -> None:
        """Compare the file with what was seen of it last, and take over what is new and good. Never raises."""
        content: bytes | str
        try:
            content = read_bytes(self.path)
        except ConfigError as error:
            content = error.message
        if content == self._seen:
            return
        self._seen = content
        if isinstance(content, str):
            self._keep(content)
        else:
            self._judge(content)
        for edited in self.on_edit:
            try:
                edited()
            except Exception as error:
                # Whoever wants to know of edits must not end what finds them.
                log().error(f"{self.name}_edit_untold", cause=type(error).__name__)

    def _judge(self, content: bytes) -> None:
        try:
            value = self._parse(text_of(content, self.path))
        except ConfigError as error:
            self._keep(error.message)
            return
        except Exception as error:
            # A mistake of ours, too, leaves what was good in force.
            self._keep(f"{self.path}: cannot be judged: {type(error).__name__}. Undo the edit")
            return
        self._value, self._fault = value, None
        log().info(f"{self.name}_reloaded", count=len(value))
        for told in self.on_change:
            told(value)

    def _keep(self, fault: str) -> None:
        self._fault = fault
        log().error(f"{self.name}_reload_invalid", reason=fault.replace("\n", "; "))

    def _run(self) -> None:
        unavailable = None
        while not self._stopping.is_set():
            try:
                self._watch()
                unavailable = None
            except Exception as error:
                # What watches has errors of many kinds: no such folder, too many watches, no such calls here.
                reason = f"{type(error).__name__}: {scrub(str(error))}"
                if reason != unavailable:
                    log().warning(f"{self.name}_watch_unavailable", reason=reason)
                unavailable = reason
                self.look()
                self._stopping.wait(self._look_s)

    def _watch(self) -> None:
        """Watch until told to stop, or until the file lies elsewhere."""
        # Here, because no verb but the worker needs it.
        from watchfiles import watch

        folders = self._folders()
        for _events in watch(
            *folders,
            watch_filter=None,
            debounce=self._debounce_ms,
            step=max(1, self._debounce_ms // 3),
            stop_event=_Armed(self._stopping.is_set, self._armed),
            rust_timeout=max(1, round(self._look_s * 1000)),
            yield_on_timeout=True,
            debug=False,
            recursive=False,
        ):
            self.look()
            if self._folders() != folders:
                return

    def _armed(self) -> None:
        log().info(f"{self.name}_watching", path=str(self.path))
        # What was edited before is told by no event.
        self.look()

    def _folders(self) -> tuple[str, ...]:
        """The folder of the file, and that in which it really lies."""
        path = os.path.abspath(self.path)
        own, real = os.path.dirname(path), os.path.dirname(os.path.realpath(path))
        return (own,) if own == real else (own, real)


class _Armed:
    """What watchfiles asks at every step whether to stop: the first time once it is armed, which nothing else tells."""

    def __init__(self, stopping: Callable[[], bool], armed: Callable[[], None]) -> None:
        self._stopping = stopping
        self._armed = armed
        self._told = False

    def is_set(self) -> bool:
        """Whether to stop."""
        if not self._told:
            self._told = True
            self._armed()
        return self._stopping()
