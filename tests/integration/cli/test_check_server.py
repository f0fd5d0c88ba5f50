"""What `check` says of real servers, of what is stored on them, and of the workers there."""

import json
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from pidispatch.cli.checks.row import Row
from pidispatch.cli.checks.table import CHECKS, look_around
from pidispatch.jobs.keys import DEPLOYMENT, SCHEMA, named
from pidispatch.server.embedded import Embedded
from pidispatch.worker.belonging import join_deployment
from tests.integration.cli.bench import Bench
from tests.support.program import Program
from tests.support.server import OwnServer, state_folder

SERVED = ("settings", "server", "durability", "store", "workers")
PASSWORD = "correct_horse-battery"


@pytest.fixture
def state(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A state folder with a short path, and no other variable of ours."""
    for name in ("VALKEY_URL", "VALKEY_PASSWORD", "PI_KEY_PREFIX", "PI_WORKER_NAME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("DOCKER_HOST", "unix:///nonexistent/engine.sock")
    with state_folder() as folder:
        monkeypatch.setenv("PI_STATE_DIR", str(folder))
        yield folder


def looked() -> dict[str, Row]:
    """The rows of these checks; the last one of each."""
    rows = look_around([check for check in CHECKS if check.name in SERVED])
    return {row.check: row for row in rows}


def test_our_own_server_that_rests_is_started_when_it_is_needed(state: Path) -> None:
    rows = looked()
    assert rows["server"].status == "pass"
    assert rows["server"].found.endswith("does not run, and is started when it is needed")
    assert (rows["workers"].status, rows["workers"].remedy) == ("warn", "start one with: pi-dispatch worker")
    assert rows.keys() == {"settings", "server", "workers"}
    # To look is not to start.
    assert list(state.iterdir()) == []


def test_our_own_server_that_runs_is_not_joined(state: Path) -> None:
    own = Embedded(state)
    own.join()
    try:
        rows = looked()
        assert rows["server"].found.startswith(f"pi-dispatch's own, unix://{state}/server/valkey.sock: valkey ")
        assert {row.status for name, row in rows.items() if name != "workers"} == {"pass"}
        assert rows["store"].found == "empty; the first program begins it"
    finally:
        own.leave()
    assert Embedded(state).look().lives is False


def test_a_state_folder_that_is_too_long_is_refused(monkeypatch: pytest.MonkeyPatch, state: Path) -> None:
    monkeypatch.setenv("PI_STATE_DIR", str(state / ("x" * 120)))
    rows = looked()
    assert rows["server"].status == "fail"
    assert "is too long" in rows["server"].found
    assert "workers" not in rows


def test_a_named_server_and_its_store(bench: Bench, state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VALKEY_URL", bench.server.url)
    rows = looked()
    assert rows["server"].found.startswith(f"named by VALKEY_URL, {bench.server.url}: valkey ")
    assert rows["durability"].found == "appendonly yes, maxmemory-policy noeviction"
    assert rows["store"].found == "empty; the first program begins it"
    with bench.server.client() as client:
        # To look is not to begin.
        assert client.dbsize() == 0
    ours = join_deployment(bench.store, state)
    assert looked()["store"].found == f"format 1, deployment {ours}"
    with bench.server.client() as client:
        client.flushall()
    assert looked()["store"].found == f"empty; the first program gives it the id {ours}"
    (state / "deployment").unlink()
    theirs = bench.store.open(None)
    assert looked()["store"].found == f"format 1, deployment {theirs}, which PI_STATE_DIR takes over"


def test_a_store_of_another_deployment_and_of_a_later_version_is_refused(
    bench: Bench, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VALKEY_URL", bench.server.url)
    join_deployment(bench.store, state)
    key = named("pi:")
    with bench.server.client() as client:
        client.set(key(DEPLOYMENT), "0" * 16)
        row = looked()["store"]
        assert (row.status, "the store belongs to deployment 0000000000000000" in row.found) == ("fail", True)
        assert client.get(key(DEPLOYMENT)) == "0" * 16
        client.set(key(SCHEMA), "99")
        row = looked()["store"]
    assert (row.status, row.remedy) == ("fail", "Install that version again.")


def test_workers_are_listed_and_the_one_that_is_meant_is_missed(
    bench: Bench, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VALKEY_URL", bench.server.url)
    bench.store.beat("build-1", {"running": "1", "slots": "3"})
    row = looked()["workers"]
    assert row.status == "pass"
    assert row.found.startswith("build-1: 1 of 3 slots taken, said so ")
    monkeypatch.setenv("PI_WORKER_NAME", "build-2")
    rows = look_around([check for check in CHECKS if check.name == "workers"])
    assert [row.status for row in rows] == ["warn", "pass"]
    assert rows[0].found == "no worker named build-2 is running"
    assert rows[0].remedy == "start one with: PI_WORKER_NAME=build-2 pi-dispatch worker"


def test_a_server_that_may_lose_what_it_is_told(state: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lax = ("--appendonly", "no", "--maxmemory-policy", "allkeys-lru")
    with OwnServer("valkey", tmp_path / "s", *lax, password=PASSWORD) as server:
        monkeypatch.setenv("VALKEY_URL", server.url)
        refused = looked()
        assert (refused["server"].status, refused["server"].remedy) == ("fail", "Set VALKEY_PASSWORD.")
        assert refused.keys() == {"settings", "server"}
        monkeypatch.setenv("VALKEY_PASSWORD", PASSWORD)
        rows = looked()
    assert rows["durability"].status == "warn"
    assert rows["durability"].found.startswith("appendonly no, maxmemory-policy allkeys-lru: ")
    assert "appendonly yes" in (rows["durability"].remedy or "")
    assert PASSWORD not in str(rows)


def test_a_cluster_is_refused(state: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with OwnServer("valkey", tmp_path / "s", "--cluster-enabled", "yes") as server:
        monkeypatch.setenv("VALKEY_URL", server.url)
        row = looked()["server"]
    assert (row.status, "Redis Cluster is not supported" in row.found) == ("fail", True)


def test_where_everything_hangs_the_verb_says_so_within_ten_seconds(tmp_path: Path) -> None:
    with OwnServer("valkey", tmp_path / "s", tcp=True) as server, socket.socket(socket.AF_UNIX) as engine:
        engine.bind(str(tmp_path / "engine.sock"))
        engine.listen()
        server.freeze()
        where = {"VALKEY_URL": server.url, "DOCKER_HOST": f"unix://{tmp_path}/engine.sock"}
        begun = time.monotonic()
        ran = Program(tmp_path, where).run("check", "--json")
        took = time.monotonic() - begun
    assert took < 10
    assert ran.code == 1
    rows = {row["check"]: row for row in json.loads(ran.out)["checks"]}
    assert (rows["server"]["status"], rows["engine"]["status"]) == ("fail", "fail")
    assert rows["engine"]["found"] == "no answer within 5 s"
    assert "it may be there all the same" in rows["engine"]["remedy"]
    assert "absent" not in str(rows)
    assert not rows.keys() & {"store", "image", "egress"}
