"""A server that is away, forgets its scripts, or refuses: what the store says of it."""

import signal
from pathlib import Path

import pytest
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from pidispatch.jobs.rows import Acquired, Answer, JobState
from pidispatch.jobs.store import JobStore
from pidispatch.values.errors import InfraError
from pidispatch.values.limits import Limits
from tests.integration.jobs.world import PREFIX, QUEUE, World, job, record
from tests.support.server import OwnServer


def impatient(server: OwnServer) -> redis.Redis:
    """A client that tries once and waits shortly."""
    return redis.Redis.from_url(server.url, decode_responses=True, socket_timeout=1.0, retry=Retry(NoBackoff(), 0))


def test_a_server_that_is_away_is_a_fault_and_comes_back_with_every_job(tmp_path: Path) -> None:
    with OwnServer("valkey", tmp_path / "server") as server:
        world = World(impatient(server))
        store = world.store
        lease = world.active()
        server.stop(signal.SIGKILL)
        for call in (lambda: store.spend(lease), lambda: store.row("local-1"), store.workers, store.sweep):
            with pytest.raises(InfraError) as caught:
                call()
            assert caught.value.cause == "store-unreachable"
        server.start()
        # The server has no script of before, nor need anybody care.
        assert store.renew([lease]) == {"local-1": Answer.WON}
        assert store.finish(lease, record()) is Answer.WON
        assert world.state() is JobState.COMPLETED


def test_a_server_that_hangs_is_a_fault(tmp_path: Path) -> None:
    with OwnServer("valkey", tmp_path / "server") as server:
        store = World(impatient(server)).store
        store.submit(job(), queue=QUEUE)
        server.freeze()
        with pytest.raises(InfraError) as caught:
            store.row("local-1")
        server.thaw()
        assert caught.value.cause == "store-unreachable"


def test_a_server_without_its_data_knows_no_lease(tmp_path: Path) -> None:
    with OwnServer("valkey", tmp_path / "server", "--appendonly", "no") as server:
        world = World(impatient(server))
        lease = world.active()
        server.stop(signal.SIGKILL)
        server.start()
        assert world.store.finish(lease, record()) is Answer.UNKNOWN
        assert world.store.renew([lease]) == {"local-1": Answer.UNKNOWN}


def test_scripts_that_were_flushed_are_sent_again(client: redis.Redis) -> None:
    client.flushdb()
    store = JobStore(client, PREFIX, Limits())
    store.submit(job(), queue=QUEUE)
    client.script_flush()
    assert isinstance(store.acquire("local-1", 0, "w#e#1"), Acquired)


def test_a_refusal_names_its_code_and_repeats_nothing(client: redis.Redis) -> None:
    client.flushdb()
    client.set(f"{PREFIX}jobs:due", "not an index")
    store = JobStore(client, PREFIX, Limits())
    with pytest.raises(InfraError) as caught:
        store.sweep()
    assert caught.value.cause == "store-error"
    client.set(f"{PREFIX}job:local-1", "a secret task")
    with pytest.raises(InfraError, match="WRONGTYPE") as refused:
        store.row("local-1")
    assert "secret" not in refused.value.message


def test_a_server_that_is_only_a_copy_is_a_fault(client: redis.Redis) -> None:
    client.flushdb()
    store = JobStore(client, PREFIX, Limits())
    client.replicaof("127.0.0.1", 1)
    try:
        with pytest.raises(InfraError) as caught:
            store.submit(job(), queue=QUEUE)
    finally:
        client.replicaof("NO", "ONE")
    assert caught.value.cause == "store-unreachable"


def test_two_prefixes_on_one_server_share_nothing(client: redis.Redis) -> None:
    client.flushdb()
    one, other = JobStore(client, "pi:", Limits()), JobStore(client, "other:", Limits())
    one.submit(job(), queue=QUEUE)
    assert other.row("local-1") is None
    assert other.submit(job(), queue=QUEUE).status == "submitted"
    assert {name.split(":")[0] for name in client.scan_iter("*")} == {"pi", "other"}
