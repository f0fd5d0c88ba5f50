"""Servers to be reached, or not: `servers.py http HOST PORT...` answers 200, `servers.py dns NAME=ADDRESS...` resolves.

Prints `listening` with its ports, then one line for each request: what reached it is what the tests ask.
"""

import ipaddress
import signal
import socket
import struct
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Site(BaseHTTPRequestHandler):
    """Answers every GET."""

    def do_GET(self) -> None:
        """A few bytes."""
        say(f"get {self.path}")
        self.send_response(200)
        self.send_header("Content-Length", "5")
        self.end_headers()
        self.wfile.write(b"site\n")

    def log_message(self, format: str, *args: object) -> None:
        """Nothing: `say` tells enough."""


def say(line: str) -> None:
    """One line of what happened."""
    print(line, flush=True)


def serve_http(host: str, ports: list[int]) -> None:
    """Serve on every port, 0 for any."""
    servers = [ThreadingHTTPServer((host, port), Site) for port in ports]
    for server in servers:
        threading.Thread(target=server.serve_forever, daemon=True).start()
    say(f"listening {' '.join(str(server.server_address[1]) for server in servers)}")
    threading.Event().wait()


def serve_dns(table: dict[str, list[str]]) -> None:
    """Answer A and AAAA from `table`, and that there is nothing for any other name."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp:
        udp.bind(("0.0.0.0", 53))
        say("listening 53")
        while True:
            question, client = udp.recvfrom(512)
            udp.sendto(_answer(question, table), client)


def _answer(question: bytes, table: dict[str, list[str]]) -> bytes:
    labels, place = [], 12
    while size := question[place]:
        labels.append(question[place + 1 : place + 1 + size].decode())
        place += 1 + size
    name = ".".join(labels).lower()
    (kind,) = struct.unpack("!H", question[place + 1 : place + 3])
    say(f"query {name}")
    known = [ipaddress.ip_address(address) for address in table.get(name, ())]
    fitting = [one.packed for one in known if (one.version, kind) in ((4, 1), (6, 28))]
    records = b"".join(b"\xc0\x0c" + struct.pack("!HHIH", kind, 1, 60, len(address)) + address for address in fitting)
    flags = 0x8180 if known else 0x8183
    head = question[:2] + struct.pack("!HHHHH", flags, 1, len(fitting), 0, 0)
    return head + question[12 : place + 5] + records


def main(arguments: list[str]) -> int:
    """Serve until killed."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    if arguments[0] == "http":
        serve_http(arguments[1], [int(port) for port in arguments[2:]])
    else:
        table: dict[str, list[str]] = {}
        for argument in arguments[1:]:
            name, _, address = argument.partition("=")
            table.setdefault(name, []).append(address)
        serve_dns(table)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
