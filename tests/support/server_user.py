"""A program that uses the embedded server, and the test's end of it.

It reads one word a line and answers each with one line of JSON: `join`, `leave`, `ensure`, `pid`, `set NAME VALUE`,
`get NAME`. With `group` it is the leader of a process group of its own, as a shell's job is.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from pidispatch.config.log import configure_log
from pidispatch.server.address import OWN_FOLDER, OWN_SOCKET, Address
from pidispatch.server.client import check_server, connect
from pidispatch.server.embedded import Embedded
from pidispatch.values.errors import DispatchError

ROOT = Path(__file__).resolve().parents[2]


class UserProcess:
    """A real process that uses the server of a state folder."""

    def __init__(self, state_dir: Path, *, group: bool = False) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "tests.support.server_user", str(state_dir)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            process_group=0 if group else None,
        )
        self.pid = self._process.pid

    def tell(self, words: str) -> None:
        """Send a command without waiting for its answer."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{words}\n")
        self._process.stdin.flush()

    def answer(self) -> Any:
        """The answer to the oldest command that has had none."""
        assert self._process.stdout is not None
        return json.loads(self._process.stdout.readline())

    def ask(self, words: str) -> Any:
        """Send a command and wait for its answer."""
        self.tell(words)
        return self.answer()

    def kill(self) -> None:
        """End it by a signal that it cannot see."""
        self._process.kill()
        self._process.wait()

    def wait(self) -> None:
        """Wait until it is gone, by whatever end."""
        self._process.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()
        for stream in (self._process.stdin, self._process.stdout):
            assert stream is not None
            stream.close()


def main(state_dir: Path) -> None:
    """Obey the lines of standard input."""
    configure_log()
    embedded = Embedded(state_dir)
    address = Address(scheme="unix", socket=state_dir / OWN_FOLDER / OWN_SOCKET)
    client = connect(address)
    said: Any
    for line in sys.stdin:
        match line.split():
            case ["join"]:
                said = _try(embedded.join)
            case ["ensure"]:
                said = _try(embedded.ensure)
            case ["leave"]:
                said = _try(embedded.leave)
            case ["pid"]:
                said = check_server(client, address).pid
            case ["set", name, value]:
                said = client.set(name, value)
            case ["get", name]:
                said = client.get(name)
            case _:
                said = "unknown"
        sys.stdout.write(f"{json.dumps(said)}\n")
        sys.stdout.flush()


def _try(step: Any) -> str:
    try:
        step()
    except DispatchError as error:
        return str(error.cause)
    return "done"


if __name__ == "__main__":
    main(Path(sys.argv[1]))
