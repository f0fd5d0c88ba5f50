"""Keeps squid running on the operator's lists: the program of the egress container (docs/explanation/egress.md).

Once a second it looks at the lists. A valid edit is rendered and squid told to read it; an invalid one leaves the last
good lists in force and is told in the log and by `--status`. It ends by SIGTERM with 0, and with 1 when squid ended or
there were no valid lists to begin with: then nothing is let through.
"""

import argparse
import contextlib
import ipaddress
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

# Copied beside this file when the image is built.
import allowlist

PORT: Final = 3128
#: Seconds between two looks at the lists, and those that squid may take to end or to take over a change.
LOOK_S, PATIENCE_S = 1.0, 10.0
RULES: Final = Path(__file__).resolve().with_name("squid.conf")


class Proxy:
    """Squid, the lists it works with, and what became of the last edit."""

    def __init__(self, lists: Path, run: Path, squid: str) -> None:
        self._lists = lists
        self._run = run
        self._squid = squid
        self._seen: allowlist.Texts | None = None
        self._settled: allowlist.Texts | None = None
        self._state: dict[str, object] = {"refused": None}

    def begin(self) -> "subprocess.Popen[bytes]":
        """Start squid on the lists as they are. Raises `ListError` and `OSError`."""
        self._seen = self._settled = allowlist.read(self._lists)
        lists = allowlist.parse(self._settled)
        self._write(lists)
        squid = subprocess.Popen([self._squid, "-N", "-f", str(RULES)])
        self._in_force(lists)
        return squid

    def look(self) -> None:
        """Take over an edit, once two looks have found the same: the first may have met a file half written."""
        try:
            found = allowlist.read(self._lists)
        except OSError as error:
            self._seen = self._settled = None
            self._refuse([f"the lists cannot be read: {error.strerror}"])
            return
        before, self._seen = self._seen, found
        if found != before or found == self._settled:
            return
        try:
            lists = allowlist.parse(found)
        except allowlist.ListError as error:
            self._settled = found
            self._refuse([str(fault) for fault in error.faults])
            return
        self._write(lists)
        # What squid did not take is tried again at the next look.
        if self._reload():
            self._settled = found
            self._in_force(lists)

    def _reload(self) -> bool:
        """`-k` reads everything by itself first, so that no file of ours can end the squid that runs."""
        command = [self._squid, "-k", "reconfigure", "-f", str(RULES)]
        try:
            subprocess.run(command, stdin=subprocess.DEVNULL, check=True, timeout=PATIENCE_S)
        except subprocess.SubprocessError as error:
            say(f"squid did not take the lists over, trying again: {error}")
            return False
        return True

    def _write(self, lists: allowlist.Lists) -> None:
        replace(self._run / "allowed", allowlist.render(lists.allowed))
        replace(self._run / "private", allowlist.render(lists.private))

    def _in_force(self, lists: allowlist.Lists) -> None:
        self._state = {"allowed": lists.allowed, "private": lists.private, "since": now(), "refused": None}
        self._save()
        say(f"lists in force: {len(lists.allowed)} allowed, {len(lists.private)} of them private")

    def _refuse(self, faults: list[str]) -> None:
        refused = self._state["refused"]
        if isinstance(refused, dict) and refused["faults"] == faults:
            return
        self._state["refused"] = {"at": now(), "faults": faults}
        self._save()
        for fault in faults:
            say(f"edit refused, the last good lists stay in force: {fault}")

    def _save(self) -> None:
        replace(self._run / "state.json", json.dumps(self._state))


def write_networks(run: Path, networks: Iterable[str]) -> None:
    """The engine's own networks, without one inside of another: squid wants them apart."""
    known = [ipaddress.ip_network(network) for network in networks]
    four = ipaddress.collapse_addresses(one for one in known if isinstance(one, ipaddress.IPv4Network))
    six = ipaddress.collapse_addresses(one for one in known if isinstance(one, ipaddress.IPv6Network))
    replace(run / "networks", "".join(f"{network}\n" for network in (*four, *six)))


def status(run: Path) -> dict[str, object]:
    """What is in force, and whether squid accepts."""
    state: dict[str, object] = {}
    with contextlib.suppress(OSError):
        state = json.loads((run / "state.json").read_text())
    try:
        socket.create_connection(("127.0.0.1", PORT), timeout=PATIENCE_S).close()
    except OSError:
        return {**state, "accepting": False}
    return {**state, "accepting": True}


def replace(path: Path, text: str) -> None:
    """Write `path` so that a reader sees the old text or the new one whole."""
    beside = path.with_suffix(".new")
    beside.write_text(text)
    os.replace(beside, path)


def now() -> str:
    """This second in UTC, as ISO 8601."""
    return f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"


def say(line: str) -> None:
    """One line of the container's log."""
    sys.stderr.write(f"egress: {line}\n")


def supervise(proxy: Proxy) -> int:
    """Run squid until it ends or this program is told to."""
    told = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: told.set())
    try:
        squid = proxy.begin()
    except (allowlist.ListError, OSError) as error:
        say(f"not started, nothing is let through: {error}")
        return 1
    while not told.wait(LOOK_S):
        if squid.poll() is not None:
            say(f"squid ended with {squid.returncode}")
            return 1
        proxy.look()
    squid.terminate()
    try:
        squid.wait(PATIENCE_S)
    except subprocess.TimeoutExpired:
        squid.kill()
    return 0


def main() -> int:
    """The exit code."""
    parser = argparse.ArgumentParser(description="An allowlist proxy: squid on the operator's lists.")
    parser.add_argument("--status", action="store_true", help="print what is in force as JSON, and end")
    parser.add_argument("--network", action="append", default=[], metavar="CIDR", help="a network of the engine's own")
    parser.add_argument("--lists", type=Path, default=Path("/etc/pi-dispatch/egress"), metavar="FOLDER")
    parser.add_argument("--run", type=Path, default=Path("/run"), metavar="FOLDER")
    parser.add_argument("--squid", default="/usr/sbin/squid", metavar="PROGRAM")
    given = parser.parse_args()
    if given.status:
        sys.stdout.write(json.dumps(status(given.run)) + "\n")
        return 0
    write_networks(given.run, given.network)
    return supervise(Proxy(given.lists, given.run, given.squid))


if __name__ == "__main__":
    sys.exit(main())
