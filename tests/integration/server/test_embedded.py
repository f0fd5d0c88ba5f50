"""Our own server between real processes: shared, ended by the last user, left by a killed one, brought back."""

import os
import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis
from structlog.testing import capture_logs

from pidispatch.config.flock import gate
from pidispatch.config.settings import Settings
from pidispatch.server.address import OWN_FOLDER, OWN_SOCKET, Address
from pidispatch.server.client import check_server, connect
from pidispatch.server.daemon import Daemon
from pidispatch.server.embedded import Embedded, Look
from pidispatch.server.use import find_server, use_server
from pidispatch.values.errors import InfraError
from tests.support.server import state_folder
from tests.support.server_user import UserProcess

GONE = Look(lives=False, used=False)


@pytest.fixture
def state() -> Iterator[Path]:
    with state_folder() as folder:
        yield folder


@pytest.fixture
def address(state: Path) -> Address:
    return Address(scheme="unix", socket=state / OWN_FOLDER / OWN_SOCKET)


def test_processes_share_one_server_and_the_last_one_ends_it(state: Path, address: Address) -> None:
    with UserProcess(state) as one, UserProcess(state) as two, UserProcess(state) as three:
        assert one.ask("join") == "done"
        pid = one.ask("pid")
        assert two.ask("join") == three.ask("join") == "done"
        assert (two.ask("pid"), three.ask("pid")) == (pid, pid)
        assert one.ask("leave") == "done"
        assert two.ask("set a 1") is True
        assert three.ask("leave") == "done"
        assert two.ask("get a") == "1"
        assert Embedded(state).look() == Look(lives=True, used=True)
        assert two.ask("leave") == "done"
    assert Embedded(state).look() == GONE
    assert not (address.socket or state).exists()


def test_two_that_start_at_the_same_instant_make_one_server(state: Path) -> None:
    with UserProcess(state) as one, UserProcess(state) as two, UserProcess(state) as three:
        users = (one, two, three)
        for user in users:
            assert user.ask("ready") == "unknown"
        for user in users:
            user.tell("join")
        assert [user.answer() for user in users] == ["done"] * 3
        assert len({user.ask("pid") for user in users}) == 1
    log = (state / OWN_FOLDER / "server.log").read_text()
    assert log.count("Ready to accept connections") == 1


def test_a_killed_last_user_leaves_it_to_the_next_who_ends_it(state: Path) -> None:
    with UserProcess(state) as first:
        first.ask("join")
        first.ask("set a kept")
        pid = first.ask("pid")
        first.kill()
    assert Embedded(state).look() == Look(lives=True, used=False)
    with UserProcess(state) as second:
        assert second.ask("join") == "done"
        assert (second.ask("pid"), second.ask("get a")) == (pid, "kept")
        assert second.ask("leave") == "done"
    assert Embedded(state).look() == GONE


def test_a_killed_user_beside_another_ends_nothing(state: Path) -> None:
    with UserProcess(state) as one, UserProcess(state) as two:
        one.ask("join")
        two.ask("join")
        one.kill()
        assert Embedded(state).look() == Look(lives=True, used=True)
        assert two.ask("set a 1") is True


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGHUP, signal.SIGTERM])
def test_a_signal_to_the_group_of_its_starter_does_not_reach_it(state: Path, how: signal.Signals) -> None:
    with UserProcess(state, group=True) as starter, UserProcess(state) as other:
        starter.ask("join")
        other.ask("join")
        pid = other.ask("pid")
        os.killpg(starter.pid, how)
        starter.wait()
        assert other.ask("pid") == pid
        assert os.getpgid(pid) != os.getpgid(other.pid)


def test_what_was_answered_outlives_an_orderly_end_and_a_kill(state: Path, address: Address) -> None:
    own = Embedded(state)
    own.join()
    client = connect(address)
    client.set("before", "the end")
    own.leave()
    assert Embedded(state).look() == GONE
    own.join()
    assert client.get("before") == "the end"
    client.set("before", "the kill")
    os.kill(check_server(client, address).pid, signal.SIGKILL)
    # The socket is still there, and nobody listens on it.
    own.ensure()
    assert client.get("before") == "the kill"
    client.close()
    own.leave()


def test_a_killed_server_is_brought_back_once_by_whoever_asks_first(state: Path) -> None:
    with UserProcess(state) as one, UserProcess(state) as two:
        one.ask("join")
        two.ask("join")
        pid = one.ask("pid")
        one.ask("set a 1")
        os.kill(pid, signal.SIGKILL)
        one.tell("ensure")
        two.tell("ensure")
        assert one.answer() == two.answer() == "done"
        back = one.ask("pid")
        assert back != pid
        assert (two.ask("pid"), two.ask("get a")) == (back, "1")
        # One that lives is left as it is.
        assert one.ask("ensure") == "done"
        assert one.ask("pid") == back


def test_a_killed_server_without_users_is_started_by_the_next(state: Path) -> None:
    with UserProcess(state) as first:
        first.ask("join")
        first.ask("set a 1")
        pid = first.ask("pid")
        first.kill()
    os.kill(pid, signal.SIGKILL)
    with UserProcess(state) as second:
        assert second.ask("join") == "done"
        assert second.ask("get a") == "1"
        assert second.ask("leave") == "done"


def test_two_users_in_one_process_are_two(state: Path, address: Address) -> None:
    one, two = Embedded(state), Embedded(state)
    one.join()
    two.join(start=False)
    two.leave()
    assert Embedded(state).look() == Look(lives=True, used=True)
    two.leave()
    assert Embedded(state).look() == Look(lives=True, used=True)
    one.leave()
    assert Embedded(state).look() == GONE


def test_using_starts_it_and_finding_does_not(state: Path) -> None:
    settings = Settings.model_validate({"PI_STATE_DIR": str(state)})
    with use_server(settings) as used:
        assert used.embedded
        assert used.address == Address.of(settings)
        used.client.set("a", "1")
        with find_server(settings) as found:
            assert found.facts.pid == used.facts.pid
            assert found.client.get("a") == "1"
        os.kill(used.facts.pid, signal.SIGKILL)
        used.ensure()
        assert used.client.get("a") == "1"
    assert Embedded(state).look() == GONE
    with pytest.raises(InfraError) as failed, find_server(settings):
        raise AssertionError
    assert failed.value.cause == "server-not-running"
    assert Embedded(state).look() == GONE


def test_a_block_that_fails_leaves_the_server_too(state: Path) -> None:
    settings = Settings.model_validate({"PI_STATE_DIR": str(state)})
    with pytest.raises(ZeroDivisionError), use_server(settings):
        raise ZeroDivisionError
    assert Embedded(state).look() == GONE


def test_it_is_closed_to_others_and_durable_and_has_no_port(state: Path, address: Address) -> None:
    own = Embedded(state)
    own.join()
    client = connect(address)
    facts = check_server(client, address)
    assert facts.durable
    assert facts.product == "valkey"
    told = {name: client.config_get(name)[name] for name in ("port", "appendfsync", "save", "dir")}
    assert told == {"port": "0", "appendfsync": "always", "save": "", "dir": str(state / OWN_FOLDER)}
    assert (state / OWN_FOLDER).stat().st_mode & 0o777 == 0o700
    assert address.socket is not None
    assert address.socket.stat().st_mode & 0o777 == 0o700
    proc = Path("/proc") / str(facts.pid)
    assert (proc / "cwd").resolve() == state / OWN_FOLDER
    assert os.getsid(facts.pid) != os.getsid(0)
    assert (proc / "fd" / "0").resolve() == Path("/dev/null")
    client.close()
    own.leave()


def test_an_odd_path_reaches_the_server_as_it_is(state: Path) -> None:
    odd = state / 'a "b" é'
    own = Embedded(odd)
    own.join()
    try:
        client = connect(Address(scheme="unix", socket=odd / OWN_FOLDER / OWN_SOCKET))
        assert client.ping()
        client.close()
    finally:
        own.leave()


def test_stop_is_refused_while_somebody_uses_it_and_ends_what_a_killed_one_left(state: Path) -> None:
    with UserProcess(state) as user:
        user.ask("join")
        with pytest.raises(InfraError) as refused:
            Embedded(state).stop()
        assert refused.value.cause == "server-in-use"
        assert user.ask("set a 1") is True
        user.kill()
    assert Embedded(state).stop() is True
    assert Embedded(state).stop() is False
    assert Embedded(state).look() == GONE


def test_one_that_ends_at_its_start_is_told_with_its_last_words(state: Path) -> None:
    # What it is to write its data into cannot be written.
    (state / OWN_FOLDER).mkdir(parents=True)
    (state / OWN_FOLDER / "appendonlydir").touch()
    own = Embedded(state)
    with pytest.raises(InfraError) as failed:
        own.join()
    assert failed.value.cause == "server-not-started"
    assert "ended at its start; its log is" in failed.value.message
    assert "appendonlydir" in failed.value.message
    # Who could not join is no user.
    assert own.look() == GONE


def test_one_that_hangs_is_waited_for_and_no_second_is_started(state: Path, address: Address) -> None:
    with UserProcess(state) as user:
        user.ask("join")
        user.ask("set a 1")
        pid = user.ask("pid")
        os.kill(pid, signal.SIGSTOP)
        try:
            with pytest.raises(InfraError) as failed:
                Embedded(state, take_s=0.1).join()
            assert failed.value.cause == "server-not-started"
            assert "did not answer within 0.1 s" in failed.value.message
            assert Embedded(state).look() == Look(lives=True, used=True)
        finally:
            os.kill(pid, signal.SIGCONT)
        assert (user.ask("pid"), user.ask("get a")) == (pid, "1")


def test_one_that_does_not_end_is_left_running_and_told(state: Path) -> None:
    own = Embedded(state, take_s=0.1)
    with UserProcess(state) as user:
        user.ask("join")
        pid = user.ask("pid")
        own.join()
        user.kill()
    os.kill(pid, signal.SIGSTOP)
    try:
        with capture_logs() as logged:
            own.leave()
        assert [entry["event"] for entry in logged] == ["server_left_running"]
        assert own.look() == Look(lives=True, used=False)
        with pytest.raises(InfraError) as refused:
            own.stop()
        assert refused.value.cause == "server-not-ended"
    finally:
        os.kill(pid, signal.SIGCONT)


def test_who_cannot_get_through_the_gate_leaves_without_ending_it(state: Path) -> None:
    own = Embedded(state, take_s=0.05)
    own.join()
    with gate(state / OWN_FOLDER / "gate.lock", 0), capture_logs() as logged:
        own.leave()
    assert [entry["event"] for entry in logged] == ["server_left_running"]
    assert own.look() == Look(lives=True, used=False)


def test_a_socket_that_was_cleaned_away_does_not_start_a_second_one(state: Path, address: Address) -> None:
    own = Embedded(state, take_s=0.2)
    own.join()
    assert address.socket is not None
    pid = check_server(connect(address), address).pid
    address.socket.unlink()
    with pytest.raises(InfraError) as failed:
        Embedded(state, take_s=0.2).join()
    assert failed.value.cause == "server-not-started"
    os.kill(pid, signal.SIGTERM)
    own.ensure()
    assert check_server(connect(address), address).pid != pid
    own.leave()


def test_a_stale_socket_of_another_kind_of_end_does_not_hinder(state: Path, address: Address) -> None:
    (state / OWN_FOLDER).mkdir(mode=0o700)
    assert address.socket is not None
    with socket.socket(socket.AF_UNIX) as stale:
        stale.bind(str(address.socket))
    own = Embedded(state)
    own.join()
    assert connect(address).ping()
    own.leave()


def test_data_is_loaded_before_anybody_is_let_in(state: Path, address: Address) -> None:
    own = Embedded(state)
    own.join()
    client = connect(address)
    pipe = client.pipeline(transaction=False)
    for number in range(20_000):
        pipe.set(f"key:{number}", "x" * 100)
    pipe.execute()
    os.kill(check_server(client, address).pid, signal.SIGKILL)
    own.ensure()
    assert client.dbsize() == 20_000
    client.close()
    own.leave()


def test_its_log_begins_anew_when_it_has_grown(state: Path) -> None:
    (state / OWN_FOLDER).mkdir(mode=0o700)
    log = state / OWN_FOLDER / "server.log"
    log.write_text("old\n" * 300_000)
    own = Embedded(state)
    own.join()
    own.leave()
    assert "old" not in log.read_text()
    own.join()
    own.leave()
    assert log.read_text().count("Ready to accept connections") == 2


def test_a_server_that_loads_does_not_answer_yet(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def loading(client: redis.Redis) -> None:
        raise redis.exceptions.BusyLoadingError

    monkeypatch.setattr(redis.Redis, "ping", loading)
    assert not Daemon(state / OWN_FOLDER).answers()
