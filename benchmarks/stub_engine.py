"""A container engine that answers what an attempt asks of it before its container, and runs none.

Its answers have the form of Docker 20.10's (https://docs.docker.com/reference/api/engine/version/v1.41/). It is a
process of its own, so that its work is not the worker's: `python -m benchmarks.stub_engine SOCKET IMAGE ID`.
"""

import asyncio
import json
import re
import signal
import sys
from collections.abc import Mapping
from typing import Any, Final

API: Final = "1.41"
_ID: Final = "sha256:" + "5" * 64
_VERSION = re.compile(rb"/v1\.\d+(?=/)")


def answers(image: str, engine_id: str) -> Mapping[tuple[bytes, bytes], Any]:
    """What is answered to which method and path, the query left out."""
    version = {
        "Version": "20.10.24",
        "ApiVersion": API,
        "MinAPIVersion": "1.12",
        "Os": "linux",
        "Arch": "amd64",
        "Components": [{"Name": "Engine", "Version": "20.10.24", "Details": {"ApiVersion": API}}],
    }
    info = {
        "ID": engine_id,
        "Name": "stub",
        "OperatingSystem": "Debian GNU/Linux 12 (bookworm)",
        "OSType": "linux",
        "Architecture": "x86_64",
        "SecurityOptions": ["name=apparmor", "name=seccomp,profile=default"],
        "ServerVersion": "20.10.24",
    }
    inspected = {
        "Id": _ID,
        "RepoTags": [image],
        "RepoDigests": [],
        "Created": "2024-01-01T00:00:00.000000000Z",
        "Config": {
            "User": "1001:1001",
            "Env": ["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"],
            "Entrypoint": ["/entry"],
            "Labels": {"dev.pi-dispatch.capabilities": "anyUid", "dev.pi-dispatch.pi-version": "1.6.0"},
        },
        "Architecture": "amd64",
        "Os": "linux",
        "Size": 531_000_000,
        "RootFS": {"Type": "layers", "Layers": [_ID]},
    }
    return {
        (b"GET", b"/version"): version,
        (b"GET", b"/info"): info,
        (b"GET", b"/containers/json"): [],
        (b"GET", b"/networks"): [],
        (b"GET", b"/images/" + image.encode() + b"/json"): inspected,
    }


class Connection(asyncio.Protocol):
    """One connection, kept alive."""

    def __init__(self, ready: Mapping[tuple[bytes, bytes], bytes]) -> None:
        self._ready = ready
        self._rest = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Remember where to answer."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Answer every whole request that has come; none of those that are served has a body."""
        self._rest += data
        while (end := self._rest.find(b"\r\n\r\n")) >= 0:
            line, self._rest = self._rest[: self._rest.find(b"\r\n")], self._rest[end + 4 :]
            method, target, _ = line.split(b" ", 2)
            path = _VERSION.sub(b"", target.partition(b"?")[0], 1)
            self._transport.write(self._ready.get((method, path)) or _response(404, {"message": f"no {path!r} here"}))


def _response(status: int, document: Any) -> bytes:
    body = json.dumps(document).encode()
    word = "OK" if status == 200 else "Not Found"
    head = (
        f"HTTP/1.1 {status} {word}\r\nApi-Version: {API}\r\nContent-Type: application/json\r\n"
        f"Docker-Experimental: false\r\nOstype: linux\r\nServer: Docker/20.10.24 (linux)\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


async def serve(socket: str, image: str, engine_id: str) -> None:
    """Answer at `socket` until told to end."""
    loop = asyncio.get_running_loop()
    ready = {asked: _response(200, document) for asked, document in answers(image, engine_id).items()}
    end = asyncio.Event()
    loop.add_signal_handler(signal.SIGTERM, end.set)
    server = await loop.create_unix_server(lambda: Connection(ready), socket)
    async with server:
        await end.wait()


if __name__ == "__main__":
    asyncio.run(serve(*sys.argv[1:]))
