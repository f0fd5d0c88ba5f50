"""What anybody outside can bring about is logged now and then, so that nobody can fill a disk by it."""

import time
from collections.abc import Callable
from typing import Final

#: Seconds between two log lines about the same.
REST_S: Final = 60.0


class Sparing:
    """Whether to tell of something now; for a few fixed words."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._told: dict[str, float] = {}

    def __call__(self, word: str) -> bool:
        """Whether nobody told of this within the last minute."""
        now = self._monotonic()
        if now - self._told.get(word, -REST_S) < REST_S:
            return False
        self._told[word] = now
        return True
