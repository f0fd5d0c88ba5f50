"""The egress proxy's build context: its Dockerfile and rules as text, its program beside a stand-in for squid."""

import io
import ipaddress
import itertools
import json
import re
import signal
import subprocess
import sys
import tarfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pidispatch.box import images
from pidispatch.box.egress import ALREADY_PRIVATE, DEFAULT_BASE, image_tag
from pidispatch.config import allowlist
from pidispatch.config.allowlist import ALLOWLIST, PRIVATE
from pidispatch.image import CONTEXTS, context_path
from tests.image.egress import PACKAGES

FOLDER = context_path("egress")
#: Writes down how it was called. As squid it then runs until it is ended; as `squid -k` it ends, badly when told to.
SQUID = """#!/bin/sh
here=$(dirname "$0")
echo "$@" >>"$here/calls"
case "$1" in
  -N) while :; do [ ! -e "$here/die" ] || exit 7; sleep 0.05; done ;;
  *) [ ! -e "$here/refuse" ] ;;
esac
"""


def rules() -> list[str]:
    text = (FOLDER / "squid.conf").read_text()
    return [line for line in text.splitlines() if line and not line.startswith("#")]


def acl(name: str) -> str:
    """The type of the list and its entries; the lines of one name make one list."""
    lines = [rule.removeprefix(f"acl {name} ") for rule in rules() if rule.startswith(f"acl {name} ")]
    [kind] = {line.split()[0] for line in lines}
    return " ".join([kind, *(line.removeprefix(f"{kind} ") for line in lines)])


def test_the_context_holds_the_grammar_of_the_lists() -> None:
    with tarfile.open(fileobj=io.BytesIO(images.egress_context_tar())) as tar:
        assert sorted(tar.getnames()) == ["Dockerfile", "allowlist.py", "proxy.py", "squid.conf"]
        packed = tar.extractfile("allowlist.py")
        assert packed is not None
        assert packed.read() == Path(allowlist.__file__).read_bytes()
    assert re.fullmatch(r"pi-dispatch-egress:[0-9a-f]{16}", image_tag())


def test_it_is_no_part_of_the_job_image() -> None:
    assert CONTEXTS == ("base", "job")


def test_the_dockerfile_fetches_only_what_is_not_there() -> None:
    text = (FOLDER / "Dockerfile").read_text()
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    assert lines[:2] == [f"ARG BASE={DEFAULT_BASE}", "FROM ${BASE}"]
    assert "latest" not in text
    assert "://" not in text
    assert "RUN { command -v squid && command -v python3; } >/dev/null || {" in text
    assert f"--no-install-recommends {' '.join(PACKAGES)} " in text
    assert "USER 13:13" in lines
    assert not [line for line in lines if line.startswith("ADD")]


def test_the_rules_stand_in_their_order() -> None:
    assert [rule for rule in rules() if rule.startswith("http_access")] == [
        "http_access deny listed !resolved",
        "http_access deny listed forbidden",
        "http_access deny CONNECT !tls",
        "http_access deny listed !private_ok private",
        "http_access deny listed !private_ok engine",
        "http_access allow CONNECT listed",
        "http_access allow plain listed",
        "http_access deny all",
    ]


def test_the_rules_compare_names_without_looking_them_up() -> None:
    for name in ("listed", "private_ok"):
        assert acl(name).startswith("dstdomain -n ")
    assert [rule for rule in rules() if "dstdomain" in rule and " -n " not in rule] == []
    # Whatever looks an address up is asked for listed names alone, which come first in its line.
    for rule in rules():
        if rule.startswith("http_access") and {"resolved", "forbidden", "private", "engine"} & set(
            rule.replace("!", "").split()
        ):
            assert rule.split()[2] == "listed"


def test_the_forbidden_and_the_private_networks() -> None:
    kind, *forbidden = acl("forbidden").split()
    assert kind == "dst"
    assert set(forbidden) >= {
        "127.0.0.0/8",
        "0.0.0.0/8",
        "169.254.0.0/16",
        "10.0.2.2/32",
        "168.63.129.16/32",
        "192.0.0.0/24",
        "100.100.100.200/32",
        "::1/128",
        "::/128",
        "fe80::/10",
        "fd00:ec2::254/128",
        "2002::/16",
    }
    # Squid keeps one of two that overlap, and not always the wider one.
    networks = [ipaddress.ip_network(one) for one in forbidden]
    pairs = itertools.combinations(networks, 2)
    assert [(one, other) for one, other in pairs if one.version == other.version and one.overlaps(other)] == []
    assert acl("private").split() == ["dst", *ALREADY_PRIVATE]
    assert acl("engine") == 'dst "/run/networks"'
    assert acl("tls") == "port 443"
    assert acl("plain") == "proto HTTP"


def test_nothing_is_kept_and_no_path_is_logged() -> None:
    assert {
        "negative_dns_ttl 60 seconds",
        "cache deny all",
        "cache_mem 0 MB",
        "coredump_dir none",
        "netdb_filename none",
        "via off",
    } <= set(rules())
    [logged] = [rule for rule in rules() if rule.startswith("logformat")]
    fields = set(re.findall(r"%(?:\{[^}]*\})?[<>]?\w+", logged))
    assert not {"%ru", "%>ru", "%rp", "%>rp", "%un", "%>h", "%>ha", "%mt"} & fields
    assert {"%>rd", "%>rP", "%rm"} <= fields
    assert [rule for rule in rules() if rule.startswith("access_log")] == [
        "access_log stdio:/dev/stdout hosts !ourselves"
    ]


def test_no_job_takes_all_connections() -> None:
    number = {name: int(value) for name, value, *_ in map(str.split, rules()) if value.isdecimal()}
    # A tunnel takes two descriptors: one to the job and one to the host.
    assert 7 * 2 * (number["client_ip_max_connections"] + 1) < number["max_filedescriptors"]
    assert (number["request_start_timeout"], number["request_timeout"]) == (10, 30)


class Program:
    """The program as it lies in the image, with a folder of lists, one to run in, and the stand-in for squid."""

    def __init__(self, folder: Path) -> None:
        self.image, self.lists, self.run, self.bin = (folder / name for name in ("image", "lists", "run", "bin"))
        for path in (self.image, self.lists, self.run, self.bin):
            path.mkdir()
        for source in (FOLDER / "proxy.py", Path(allowlist.__file__)):
            (self.image / source.name).write_bytes(source.read_bytes())
        (self.bin / "squid").write_text(SQUID)
        (self.bin / "squid").chmod(0o755)
        self.log = folder / "log"
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def said(self) -> str:
        return self.log.read_text()

    def command(self, *more: str) -> list[str]:
        places = ["--lists", str(self.lists), "--run", str(self.run), "--squid", str(self.bin / "squid")]
        return [sys.executable, "-E", "-s", str(self.image / "proxy.py"), *places, *more]

    def write(self, allowed: str, private: str = "") -> None:
        (self.lists / ALLOWLIST).write_text(allowed)
        (self.lists / PRIVATE).write_text(private)

    def start(self, *more: str) -> None:
        with self.log.open("w") as log:
            self.process = subprocess.Popen(self.command(*more), stderr=log)

    def end(self) -> int:
        assert self.process is not None
        return self.process.wait(20)

    def calls(self) -> list[str]:
        path = self.bin / "calls"
        return path.read_text().splitlines() if path.exists() else []

    def state(self) -> dict[str, object]:
        state: dict[str, object] = json.loads((self.run / "state.json").read_text())
        return state

    def until(self, probe: Callable[[], object], what: str) -> None:
        deadline = time.monotonic() + 20
        pace = threading.Event()
        while not probe():
            assert time.monotonic() < deadline, f"waited for {what}: {self.said}"
            pace.wait(0.05)


@pytest.fixture
def program(tmp_path: Path) -> Iterator[Program]:
    made = Program(tmp_path)
    yield made
    if made.process is not None and made.process.poll() is None:
        made.process.send_signal(signal.SIGTERM)
        made.process.wait(20)


def test_it_renders_the_lists_and_ends_squid_when_told(program: Program) -> None:
    program.write(".x.test\na.x.test\nY.test\n", "a.x.test\n")
    program.start("--network", "198.18.1.0/24", "--network", "198.18.0.0/24", "--network", "2001:db8::/64")
    program.until(program.calls, "squid")

    assert program.calls() == [f"-N -f {program.image}/squid.conf"]
    assert (program.run / "allowed").read_text() == ".x.test\ny.test\n"
    assert (program.run / "private").read_text() == "a.x.test\n"
    assert (program.run / "networks").read_text() == "198.18.0.0/23\n2001:db8::/64\n"
    assert program.process is not None
    program.until(lambda: (program.run / "state.json").exists(), "the state")
    program.process.send_signal(signal.SIGTERM)
    assert program.end() == 0


def test_an_edit_is_taken_over_and_a_bad_one_is_not(program: Program) -> None:
    program.write("a.test\n")
    program.start()
    program.until(program.calls, "squid")
    program.write("b.test\n")
    program.until(lambda: len(program.calls()) == 2, "the edit")
    assert program.calls()[1] == f"-k reconfigure -f {program.image}/squid.conf"
    program.until(lambda: program.state()["allowed"] == ["b.test"], "the state")

    program.write("c.test:1\n")
    program.until(lambda: program.state()["refused"], "the refusal")
    refused = program.state()["refused"]
    assert isinstance(refused, dict)
    assert "names a port" in refused["faults"][0]
    assert (program.run / "allowed").read_text() == "b.test\n"
    assert (program.state()["allowed"], len(program.calls())) == (["b.test"], 2)


def test_what_squid_does_not_take_is_tried_again(program: Program) -> None:
    program.write("a.test\n")
    program.start()
    program.until(program.calls, "squid")
    (program.bin / "refuse").touch()
    program.write("b.test\n")
    program.until(lambda: len(program.calls()) >= 3, "a second try")
    assert program.state()["allowed"] == ["a.test"]
    (program.bin / "refuse").unlink()
    program.until(lambda: program.state()["allowed"] == ["b.test"], "the edit")


def test_it_ends_with_squid(program: Program) -> None:
    program.write("a.test\n")
    program.start()
    program.until(program.calls, "squid")
    (program.bin / "die").touch()
    assert program.end() == 1
    assert "egress: squid ended with 7\n" in program.said


@pytest.mark.parametrize("allowed", [None, "1.2.3.4\n"])
def test_without_lists_that_can_be_used_it_does_not_begin(program: Program, allowed: str | None) -> None:
    if allowed is not None:
        program.write(allowed)
    program.start()
    assert program.end() == 1
    assert "egress: not started, nothing is let through" in program.said
    assert program.calls() == []


def test_status_says_what_is_in_force_and_that_nobody_accepts(program: Program) -> None:
    (program.run / "state.json").write_text('{"allowed": ["a.test"]}')
    done = subprocess.run(program.command("--status"), capture_output=True, text=True, check=True)
    # Nothing of the tests listens on the proxy's port of this machine.
    assert json.loads(done.stdout) == {"allowed": ["a.test"], "accepting": False}
    (program.run / "state.json").unlink()
    done = subprocess.run(program.command("--status"), capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == {"accepting": False}
