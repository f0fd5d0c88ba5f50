"""Tries the ways out that the variable PROBES lists, all at once, and prints one JSON list of what came of each.

A probe is a list of a kind and its arguments; what it ends with is one of few words, or a status of HTTP.
"""

import concurrent.futures
import json
import os
import resource
import select
import socket
import struct
import sys
import threading
from collections.abc import Callable
from typing import Any

#: Until something is called closed, and until a proxy that is there must have answered.
CLOSED_S, PATIENCE_S = 2.0, 20.0


def connect(host: str, port: int) -> str:
    """`open`, `answered` (something there says no) or `closed`."""
    try:
        socket.create_connection((host, port), CLOSED_S).close()
    except ConnectionRefusedError:
        return "answered"
    except OSError:
        return "closed"
    return "open"


def gateway(port: int) -> str:
    """The same for the first address of this container's own network, where a bridge answers for the machine."""
    with open("/proc/net/route") as routes:
        rows = [line.split() for line in routes.readlines()[1:]]
    # Destination and mask are the bytes of an address, printed as one number of this machine.
    for network in (row[1] for row in rows if row[7] != "00000000"):
        first = struct.pack("<I", int(network, 16))[:3] + b"\x01"
        return connect(socket.inet_ntoa(first), port)
    return "no network"


def resolve(name: str) -> str:
    """`resolved` or `closed`, by the container's own resolver."""
    try:
        socket.getaddrinfo(name, 443)
    except OSError:
        return "closed"
    return "resolved"


def query(server: str, name: str) -> str:
    """`answered` or `closed`, by a question put to one server directly."""
    labels = b"".join(bytes([len(label)]) + label.encode() for label in name.split("."))
    question = b"\x12\x34\x01\x00\x00\x01" + b"\x00" * 6 + labels + b"\x00\x00\x01\x00\x01"
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp:
        udp.settimeout(CLOSED_S)
        try:
            udp.sendto(question, (server, 53))
            udp.recv(512)
        except OSError:
            return "closed"
    return "answered"


def tunnel(proxy: str, target: str) -> str:
    """The proxy's status for CONNECT, and behind a tunnel the status of the host's own answer."""
    try:
        with socket.create_connection((proxy, 3128), PATIENCE_S) as link:
            link.settimeout(PATIENCE_S)
            link.sendall(f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n".encode())
            status = _status(link)
            if status == "200":
                link.sendall(f"GET / HTTP/1.1\r\nHost: {target}\r\nConnection: close\r\n\r\n".encode())
                status = f"200 then {_status(link)}"
            return status
    except OSError:
        return "closed"


def get(proxy: str, url: str) -> str:
    """The status of a plain request by way of the proxy."""
    host = url.split("/")[2]
    try:
        with socket.create_connection((proxy, 3128), PATIENCE_S) as link:
            link.settimeout(PATIENCE_S)
            link.sendall(f"GET {url} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode())
            return _status(link)
    except OSError:
        return "closed"


def hold(proxy: str, target: str, count: int) -> str:
    """Open so many connections that ask nothing, say what that does to this container's own tunnels, and never end."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    before = tunnel(proxy, target)
    held = [socket.create_connection((proxy, 3128), PATIENCE_S) for _ in range(count)]
    during = tunnel(proxy, target)
    # Nothing was asked, so nothing but an end can be read.
    ended = select.poll()
    for link in held:
        ended.register(link, select.POLLIN)
    standing = len(held) - len(ended.poll(0))
    print("holding", json.dumps({"before": before, "standing": standing, "during": during}), flush=True)
    threading.Event().wait()
    return "ended"


def _status(link: socket.socket) -> str:
    head = b""
    while b"\r\n\r\n" not in head and (more := link.recv(4096)):
        head += more
    return head.split(b" ", 2)[1].decode() if head else "closed"


KINDS: dict[str, Callable[..., str]] = {
    "connect": connect,
    "gateway": gateway,
    "resolve": resolve,
    "query": query,
    "tunnel": tunnel,
    "get": get,
    "hold": hold,
}


def main() -> int:
    """Print what came of every probe, in their order."""
    probes: list[list[Any]] = json.loads(os.environ["PROBES"])
    with concurrent.futures.ThreadPoolExecutor(len(probes)) as pool:
        found = list(pool.map(lambda probe: KINDS[probe[0]](*probe[1:]), probes))
    print(json.dumps(found), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
