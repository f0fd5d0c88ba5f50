"""A worker as it is started, refused and ended: by `pi-dispatch worker` and by Celery's own command line."""

import contextlib
import json
import os
import re
import secrets
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import docker
import pytest
from redis.exceptions import ConnectionError as Unreachable

from pidispatch.jobs.rows import JobState
from pidispatch.server.client import connect
from pidispatch.values import names
from tests.support.post import ROOT, Post
from tests.support.program import CELERY, PROGRAM
from tests.support.server import OwnServer, until
from tests.support.terminal import at_terminal

WORKER = [CELERY, "-A", "pidispatch", "worker"]
#: The application under test: the real one, with small limits and an engine id of the test's own.
TEST_APP = [CELERY, "-A", "tests.support.worker_app"]
NO_ENGINE = "unix:///nonexistent/engine.sock"
PASSWORD = "a-marked-password-of-24-characters"


def called(
    post: Post, *command: str, cwd: Path = Path("/"), **changes: str | None
) -> "subprocess.CompletedProcess[str]":
    """A program of this deployment that ends by itself."""
    changes.setdefault("DOCKER_HOST", NO_ENGINE)
    environ = post.environment("w1", **changes)
    return subprocess.run(command, env=environ, cwd=cwd, capture_output=True, text=True, timeout=60, check=False)


def refusal(done: "subprocess.CompletedProcess[str]") -> str:
    """What a program said that was refused: its message alone."""
    assert done.returncode == 2, done
    lines = done.stderr.splitlines()
    assert [line for line in lines if line.startswith("pi-dispatch: ")] == lines[:1]
    assert "Traceback" not in done.stderr
    return done.stderr


@pytest.fixture
def own(engine: docker.DockerClient, stub: str, neighbour: str) -> Iterator[Post]:
    """A deployment whose server is pi-dispatch's own."""
    with Post(engine, stub, neighbour, None) as post:
        yield post


@pytest.mark.parametrize(
    "command", [WORKER, [*WORKER, "-P", "prefork"], [PROGRAM, "worker"]], ids=["celery", "prefork", "pi-dispatch"]
)
def test_it_works_from_any_folder_with_a_pool_of_threads(command: list[str], post: Post, tmp_path: Path) -> None:
    where = tmp_path if "prefork" in command else Path("/")
    worker = post.worker(command=command, cwd=where, DOCKER_HOST=NO_ENGINE)
    assert [event["cause"] for event in worker.events("reaper_skipped")] == ["container-never-started"]
    # Said of every worker that is root, though jobs never are.
    assert "superuser" not in worker.log
    with post.producer() as app:
        stats = app.control.inspect(timeout=30, limit=1).stats()
    assert stats is not None
    assert [one["pool"]["implementation"] for one in stats.values()] == ["celery.concurrency.thread:TaskPool"]
    assert worker.stop() == 0
    assert worker.events("worker_stopped")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["-P", "solo"], "the pool 'solo' cannot serve: slots and folders are counted in one process"),
        (["-c", "12"], "--concurrency cannot be given: "),
        (["--autoscale", "3,1"], "--autoscale cannot be given: "),
        (["--time-limit", "5"], "--time-limit cannot be given: "),
        (["-Q", "elsewhere"], "--queues cannot be given: "),
        (["--", "task.acks_late=0"], "task_acks_late cannot be set on the command line"),
    ],
)
def test_an_option_that_bends_a_promise_is_refused(options: list[str], told: str, own: Post) -> None:
    message = refusal(called(own, *WORKER, *options))
    assert message.startswith(f"pi-dispatch: {told}")
    assert "PI_CONCURRENCY" in message or options[0] not in ("-c", "--autoscale")
    assert not (own.folder / "w1" / "server").exists()


def test_another_broker_is_refused(own: Post) -> None:
    done = called(own, CELERY, "-A", "pidispatch", "-b", "redis://127.0.0.1:1", "worker")
    assert refusal(done).startswith("pi-dispatch: CELERY_BROKER_URL cannot be set")


@pytest.mark.parametrize("command", [[*WORKER], [PROGRAM, "worker"], [CELERY, "-A", "pidispatch", "status"]])
def test_a_setting_that_cannot_be_read_is_refused(command: list[str], own: Post) -> None:
    assert "PI_MAX_TURNS='many'" in refusal(called(own, *command, PI_MAX_TURNS="many"))


@pytest.mark.parametrize("named", [True, False])
def test_an_operators_file_that_sets_what_is_fixed_is_refused_by_file_and_entry(named: bool, post: Post) -> None:
    state = post.folder / "w1"
    state.mkdir(mode=0o700)
    path = post.folder / "mine.py" if named else state / "celeryconfig.py"
    path.write_text("task_acks_late = False\n")
    done = called(post, PROGRAM, "worker", PI_CELERY_CONFIG=str(path) if named else None)
    assert f"{path}: task_acks_late is fixed" in refusal(done)


@pytest.mark.parametrize("command", [["status"], ["inspect", "active"], ["flower"]])
def test_a_command_of_celerys_never_starts_a_server(command: list[str], own: Post) -> None:
    done = called(own, CELERY, "-A", "pidispatch", *command)
    assert done.returncode == 1
    assert done.stderr.startswith("pi-dispatch: pi-dispatch's own server does not run, and this does not start it. ")
    assert not (own.folder / "w1").exists()


def test_our_own_server_comes_with_its_first_user_and_goes_with_its_last(own: Post) -> None:
    worker = own.worker()
    # A command of Celery's joins it, and a client's job runs.
    done = called(own, CELERY, "-A", "pidispatch", "status")
    assert (done.returncode, "w1@" in done.stdout) == (0, True), done
    job_id = own.submit(own.job())
    assert own.await_end(job_id).state is JobState.COMPLETED
    assert worker.stop() == 0
    with closing(connect(own.address)) as client, pytest.raises(Unreachable):
        client.ping()
    again = own.worker()
    assert own.row(job_id).state is JobState.COMPLETED
    assert again.stop() == 0


def test_one_worker_an_engine_until_it_is_gone(post: Post) -> None:
    engine = f"{post.prefix}shared"
    first = post.worker("w1", engine=engine)
    second = post.worker("w2", engine=engine, ready=False)
    assert second.await_end() == 2
    lock = f"/run/lock/pi-dispatch-{re.sub('[^A-Za-z0-9._-]', '_', engine)}.lock"
    assert f"pi-dispatch: another worker serves this container engine: it holds {lock}. " in second.log
    assert not second.events("worker_started")
    first.kill()
    third = post.worker("w2", engine=engine)
    assert third.stop() == 0


def test_an_engine_that_was_away_is_cleared_before_the_first_container(post: Post, engine: docker.DockerClient) -> None:
    socket = post.folder / "engine.sock"
    worker = post.worker(DOCKER_HOST=f"unix://{socket}")
    assert worker.events("reaper_skipped")
    stray = engine.containers.create(
        post.image,
        name=f"{names.JOB_PREFIX}local-stray-{secrets.token_hex(4)}",
        labels={names.LABEL_DEPLOYMENT: post.store.open(None)},
        network="none",
    )
    try:
        socket.symlink_to(os.environ["DOCKER_HOST"].removeprefix("unix://"))
        job_id = post.submit(post.job())
        assert post.await_end(job_id).state is JobState.COMPLETED
        with pytest.raises(docker.errors.NotFound):
            stray.reload()
    finally:
        with contextlib.suppress(docker.errors.NotFound):
            stray.remove(force=True)
    assert worker.stop() == 0


@pytest.mark.parametrize(
    ("key", "value", "told"),
    [("deployment", "f" * 16, "the store belongs to deployment"), ("schema", "99", "the store is written in format")],
)
def test_a_store_that_is_not_for_it_is_refused(key: str, value: str, told: str, post: Post) -> None:
    state = post.folder / "w1"
    state.mkdir(mode=0o700)
    (state / "deployment").write_text("0" * 16 + "\n")
    (state / "deployment").chmod(0o600)
    with closing(connect(post.address)) as client:
        client.mset({f"{post.prefix}schema": "1", f"{post.prefix}{key}": value})
    assert refusal(called(post, PROGRAM, "worker")).startswith(f"pi-dispatch: {told}")


def test_a_state_folder_without_an_id_adopts_the_stores(post: Post) -> None:
    with closing(connect(post.address)) as client:
        client.mset({f"{post.prefix}schema": "1", f"{post.prefix}deployment": "e" * 16})
    worker = post.worker()
    assert worker.events("worker_started")[0]["deployment"] == "e" * 16
    assert (post.folder / "w1" / "deployment").read_text().strip() == "e" * 16


def test_what_it_may_spend_is_said_at_its_start_and_no_secret(
    engine: docker.DockerClient, stub: str, neighbour: str, tmp_path: Path
) -> None:
    with (
        OwnServer("valkey", tmp_path / "server", tcp=True, password=PASSWORD) as server,
        Post(engine, stub, neighbour, server) as post,
    ):
        url = f"redis://default:{PASSWORD}@127.0.0.1:{server.port}/0"
        # By Celery's command, which prints a banner of its own.
        worker = post.worker(
            command=WORKER,
            cwd=tmp_path,
            DOCKER_HOST=NO_ENGINE,
            VALKEY_URL=url,
            PI_MAX_TOKENS="5000",
            PI_DAILY_CAP=None,
            PI_WEEKLY_CAP="90",
            PI_MONTHLY_CAP=None,
        )
        started = worker.events("worker_started")[0]
        shown = ("concurrency", "maxTurns", "maxTokens", "dailyCap", "weeklyCap", "monthlyCap", "egress", "valkey")
        assert {name: started[name] for name in shown} == {
            "concurrency": 3,
            "maxTurns": 30,
            "maxTokens": 5000,
            "dailyCap": 25,
            "weeklyCap": 90,
            "monthlyCap": None,
            "egress": True,
            "valkey": f"redis://127.0.0.1:{server.port}/0",
        }
        asked = [
            called(post, CELERY, "-A", "pidispatch", *command, VALKEY_URL=url)
            for command in (["report"], ["inspect", "conf"], ["inspect", "stats"])
        ]
        assert [one.returncode for one in asked] == [0, 0, 0], asked
        assert worker.stop() == 0
        said = worker.log + "".join(one.stdout + one.stderr for one in asked)
        assert PASSWORD not in said


def test_at_a_terminal_the_output_of_jobs_is_shown_line_by_line(post: Post) -> None:
    told = json.dumps({"limits": {"renew_every_s": 1}, "engine": f"{post.prefix}w1"})
    process, terminal = at_terminal(
        [sys.executable, "-m", "tests.support.worker_app"], post.environment(PI_TEST_WORKER=told), ROOT
    )
    chunks: list[bytes] = []

    def follow() -> None:
        with contextlib.suppress(OSError):
            while chunk := os.read(terminal, 65536):
                chunks.append(chunk)

    reader = threading.Thread(target=follow, daemon=True)
    reader.start()
    try:
        job_id = post.submit(post.job())
        post.await_end(job_id)
        until(lambda: f'[{job_id}] {{"event":"exit"'.encode() in b"".join(chunks), "the output of the job", 30)
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 0
    finally:
        process.kill()
        process.wait()
        reader.join(10)
        os.close(terminal)
    assert f'[{job_id}] {{"event":"turn"' in b"".join(chunks).decode()


def test_where_the_log_is_json_nothing_else_is_shown(post: Post) -> None:
    worker = post.worker()
    job_id = post.submit(post.job())
    post.await_end(job_id)
    assert worker.stop() == 0
    assert [line for line in worker.log.splitlines() if line and not _is_event(line)] == []


def _is_event(line: str) -> bool:
    try:
        found: Any = json.loads(line)
    except ValueError:
        return False
    return isinstance(found, dict) and "event" in found


def test_help_needs_nothing(tmp_path: Path) -> None:
    with tempfile.TemporaryDirectory() as home:
        done = subprocess.run(
            [PROGRAM, "worker", "--help"], env={"HOME": home}, cwd=tmp_path, capture_output=True, text=True, check=True
        )
    assert done.stdout.startswith("Usage: pi-dispatch worker")
