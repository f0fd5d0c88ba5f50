"""Certificates of a test's own authority, and a Sentinel that watches a server."""

import contextlib
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import redis

from tests.support.server import OwnServer, free_port, server_binary, until

_SUBJECT = "/CN=pi-dispatch test"


@dataclass(frozen=True)
class Certificate:
    """A certificate and its key."""

    cert: Path
    key: Path


def make_authority(folder: Path) -> Certificate:
    """A certificate authority."""
    made = Certificate(folder / "ca.pem", folder / "ca.key")
    _openssl("req", "-x509", *_NEW_KEY, "-keyout", made.key, "-out", made.cert, "-days", "2", "-subj", _SUBJECT)
    return made


def make_certificate(folder: Path, authority: Certificate, name: str, alternative: str) -> Certificate:
    """A certificate of `authority` for `alternative`, as `IP:127.0.0.1`."""
    made = Certificate(folder / f"{name}.pem", folder / f"{name}.key")
    request, extensions = folder / f"{name}.csr", folder / f"{name}.ext"
    extensions.write_text(f"subjectAltName={alternative}\n")
    _openssl("req", *_NEW_KEY, "-keyout", made.key, "-out", request, "-subj", f"/CN={name}")
    signer = ("-CA", authority.cert, "-CAkey", authority.key, "-CAcreateserial")
    _openssl("x509", "-req", "-in", request, *signer, "-out", made.cert, "-days", "2", "-extfile", extensions)
    return made


_NEW_KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")


def _openssl(*arguments: str | Path) -> None:
    subprocess.run(["openssl", *map(str, arguments)], check=True, capture_output=True)


@contextlib.contextmanager
def sentinel(folder: Path, server: OwnServer, master: str, password: str | None = None) -> Iterator[int]:
    """The port of a Sentinel that names `server` as `master`; `password` is its own."""
    folder.mkdir()
    port = free_port()
    lines = [
        "bind 127.0.0.1",
        f"port {port}",
        f"dir {folder}",
        f"sentinel monitor {master} 127.0.0.1 {server.port} 1",
        *([f"sentinel auth-pass {master} {server.password}"] if server.password else []),
        *([f"requirepass {password}"] if password else []),
    ]
    configuration = folder / "sentinel.conf"
    configuration.write_text("\n".join(lines) + "\n")
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [server_binary("redis"), str(configuration), "--sentinel"], stdin=subprocess.DEVNULL, stdout=log, stderr=log
        )
    client = redis.Redis(host="127.0.0.1", port=port, password=password, decode_responses=True)
    try:
        until(lambda: _knows(client, master), "the Sentinel to see its server")
        yield port
    finally:
        client.close()
        process.kill()
        process.wait()


def _knows(client: "redis.Redis", master: str) -> bool:
    try:
        state: Any = client.sentinel_master(master)
    except redis.exceptions.ConnectionError:
        return False
    return bool(state["is_master"]) and not state["is_sdown"]
