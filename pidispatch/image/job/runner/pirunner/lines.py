"""The line protocol on stdout: compact JSON objects, each on a line of its own (docs/reference/runner.md).

A line starts with a line feed as well, so that bytes somebody else left on stdout without one cannot swallow it.
`event` is always the first key and `jobId` the second; the worker's line recovery relies on that.
"""

import json
import os
import threading
from collections.abc import Mapping
from decimal import Decimal

#: Longest message in an exit line, in escaped characters. The worker keeps only the last 8192 characters of a run.
MESSAGE_LIMIT = 2000


def encode(value: object) -> str:
    """Compact ASCII JSON. Decimals become plain JSON numbers, which the standard encoder cannot write exactly."""
    if isinstance(value, Decimal):
        return format(value.normalize(), "f") if value else "0"
    if isinstance(value, Mapping):
        return "{" + ",".join(f"{json.dumps(str(key))}:{encode(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ",".join(map(encode, value)) + "]"
    if value is None or isinstance(value, str | bool | int):
        return json.dumps(value)
    raise TypeError(f"{type(value).__name__} has no place in a line")


def cap_message(message: str, secrets: tuple[str, ...] = (), limit: int = MESSAGE_LIMIT) -> str:
    """`message` without `secrets`, cut to `limit` characters as they are written escaped, never inside a character."""
    for secret in secrets:
        message = message.replace(secret, "[redacted]")
    length = 0
    # Every character takes at least one place, so the rest can never fit.
    for index, character in enumerate(message[: limit + 1]):
        length += len(json.dumps(character)) - 2
        if length > limit:
            return message[:index]
    return message


class Lines:
    """Writes lines to a file descriptor; the exit line at most once, and nothing after it."""

    def __init__(self, job_id: str, descriptor: int = 1) -> None:
        self._job_id = job_id
        self._descriptor = descriptor
        self._lock = threading.Lock()
        self._exit_code: int | None = None

    def event(self, name: str, **fields: object) -> None:
        """Write one advisory line. Dropped after the exit line, which is the last thing a run prints."""
        with self._lock:
            if self._exit_code is None:
                self._write(name, fields)

    def exit(self, fields: Mapping[str, object], timeout: float = -1) -> int:
        """Write the exit line unless one is written already; return the code of the line that counts.

        `fields` carries ``code`` and ``reason``. `timeout` (seconds) bounds the wait for a writer that hangs on a
        full stdout; when it passes, nothing is written.
        """
        code = fields["code"]
        if not isinstance(code, int):
            raise TypeError("an exit line needs an integer code")
        if not self._lock.acquire(timeout=timeout):
            return code
        try:
            if self._exit_code is None:
                self._exit_code = code
                self._write("exit", fields)
            return self._exit_code
        finally:
            self._lock.release()

    def _write(self, name: str, fields: Mapping[str, object]) -> None:
        line = encode({"event": name, "jobId": self._job_id, **fields})
        data = f"\n{line}\n".encode("ascii")
        try:
            while data:
                data = data[os.write(self._descriptor, data) :]
        except OSError:
            # Nobody reads any more. The exit code still tells the outcome.
            return
