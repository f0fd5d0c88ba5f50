"""The output of one container while it runs: its last characters, and its progress lines as they come."""

import codecs
from collections.abc import Callable

from pidispatch.box.exitline import parse_line
from pidispatch.values.limits import Limits
from pidispatch.values.progress import Progress, ProviderRetry, TurnEnded

_EVENT = '{"event":"'
_LARGEST = 2**53


class Tail:
    """Takes a container's output as bytes and keeps its last `limits.tail_chars` characters.

    `write` never raises and its memory is bounded, whatever the box prints. Progress lines are told to `progress` as
    they come; anything in the box can forge them, so nothing is decided on them.
    """

    def __init__(self, limits: Limits, progress: Callable[[Progress], None]) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._limits = limits
        self._progress = progress
        self._kept = ""
        self._line = ""
        self._skipping = False

    def write(self, chunk: bytes) -> None:
        """Take the next bytes."""
        text = self._decoder.decode(chunk)
        self._kept = (self._kept + text)[-self._limits.tail_chars :]
        self._scan(text)

    def text(self) -> str:
        """The last characters so far."""
        return self._kept

    def _scan(self, text: str) -> None:
        first, *rest = text.split("\n")
        if not self._skipping:
            self._line += first
        if len(self._line) > self._limits.line_chars:
            self._line, self._skipping = "", True
        for line in rest:
            if not self._skipping:
                self._tell(self._line)
            self._line, self._skipping = line, False
            if len(line) > self._limits.line_chars:
                self._line, self._skipping = "", True

    def _tell(self, line: str) -> None:
        if _EVENT not in line:
            return
        found = parse_line(line.strip()) or {}
        match found.get("event"):
            case "turn":
                if _counts(found.get("turns"), found.get("tokens")):
                    self._progress(TurnEnded(turns=found["turns"], tokens=found["tokens"]))
            case "pi_auto_retry":
                if _counts(found.get("attempt"), found.get("maxAttempts")):
                    self._progress(ProviderRetry(attempt=found["attempt"], max_attempts=found["maxAttempts"]))


def _counts(*values: object) -> bool:
    return all(type(value) is int and 0 <= value < _LARGEST for value in values)
