"""`run` against a real server: what it hands in, what it prints where, and the end it waits for."""

import json
import os
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from pidispatch.cli.handing_in import HandIn
from pidispatch.cli.view import error_console
from pidispatch.config.settings import Settings
from pidispatch.jobs.calls import Calls
from pidispatch.jobs.producer import TASK
from pidispatch.jobs.route import route
from pidispatch.jobs.rows import JobState
from pidispatch.server.address import Address
from pidispatch.server.client import check_server, connect
from pidispatch.server.use import Server
from pidispatch.values.errors import InfraError
from pidispatch.values.job import LocalJob, Matched
from pidispatch.values.outcome import Completed, Refused
from pidispatch.values.reason import Reason
from tests.integration.cli.bench import WORKER, Bench
from tests.support.program import PROGRAM, RUN_S, await_line
from tests.support.rows import local_of
from tests.support.server import OwnServer, until

TASK_TEXT = ("--task", " the task\n")


def _id(out: str) -> str:
    """The job's id, alone on its line."""
    assert out.endswith("\n")
    assert len(out.splitlines()) == 1
    return out.rstrip("\n")


def _fresh_minute() -> None:
    """Two calls that are to be the same job must fall into one minute."""
    until(lambda: time.time() % 60 < 50, "a minute with ten seconds left", 15)


def test_a_job_is_handed_in_and_announced(bench: Bench) -> None:
    done = bench.program.run("run", bench.folder, *TASK_TEXT)
    assert done.code == 0, done.err
    job_id = _id(done.out)
    assert job_id.startswith("local-")
    row = bench.row(job_id)
    assert (row.state, row.queue, row.max_attempts) == (JobState.QUEUED, "pi-jobs", 2)
    assert row.job == LocalJob(id=job_id, folder=bench.repository.path, task=" the task\n")
    with bench.server.client() as client:
        [ticket] = [json.loads(one) for one in client.lrange("pi:pi-jobs", 0, -1)]
    assert (ticket["headers"]["id"], ticket["headers"]["task"], ticket["headers"]["gen"]) == (job_id, TASK, "0")
    assert "the task" not in json.dumps(ticket)


def test_what_is_told_beside_the_id(bench: Bench) -> None:
    done = bench.program.run("run", bench.folder, *TASK_TEXT, PI_EGRESS="0")
    said = done.err
    assert f"job {_id(done.out)} in {bench.folder}; queue pi-jobs of {bench.server.url}" in said
    assert "may use up to 30 turns" in said
    assert "PI_EGRESS=0: the agent can reach the internet" in said
    assert "no worker is running: start one with: pi-dispatch worker" in said


def test_a_worker_that_lives_is_not_missed(bench: Bench) -> None:
    bench.store.beat(WORKER, {})
    assert "no worker" not in bench.program.run("run", bench.folder, *TASK_TEXT).err
    other = bench.program.run("run", bench.folder, "--task", "y", PI_WORKER_NAME="build-2")
    assert "no worker named build-2 is running" in other.err
    assert bench.row(_id(other.out)).queue == "pi-jobs@build-2"


def test_what_is_given_is_handed_on(bench: Bench) -> None:
    bench.repository.write("new.txt", "new")
    options = ["--provider", "openai", "--model", "gpt-5", "--max-turns", "7", "--image", "other:1"]
    done = bench.program.run("run", bench.folder, "--task", "x", "--flow", "tidy-up", "--force", *options)
    job = local_of(bench.row(_id(done.out)))
    assert (job.provider, job.model, job.max_turns, job.image) == ("openai", "gpt-5", 7, "other:1")
    assert (job.flow, job.allow_dirty) == ("tidy-up", True)


def test_an_empty_option_is_left_open_and_the_folder_has_its_real_name(bench: Bench) -> None:
    (bench.program.home / "link").symlink_to(bench.repository.path)
    empty = ("--provider", "", "--model", "", "--image", "", "--flow", "")
    done = bench.program.run("run", "./link/.", "--task", "x", *empty)
    job = local_of(bench.row(_id(done.out)))
    assert (job.provider, job.model, job.image, job.flow) == (None, None, None, None)
    assert job.folder == bench.repository.path


def test_a_schedule_is_fired_by_hand_on_the_machine_that_has_its_folder(bench: Bench, tmp_path: Path) -> None:
    run = {"kind": "local", "folder": bench.folder, "flow": "tidy", "task": "tidy up", "maxTurns": 3}
    on = {"type": "cron", "id": "nightly", "pattern": "0 3 * * *"}
    file = tmp_path / "triggers.json"
    file.write_text(json.dumps({"triggers": [{"on": on, "run": run}]}))
    done = bench.program.run("run", "--trigger", "nightly", PI_TRIGGERS_FILE=str(file))
    assert done.code == 0, done.err
    row = bench.row(_id(done.out))
    assert (row.state, local_of(row).trigger) == (JobState.QUEUED, Matched(id="nightly", index=0))
    assert (local_of(row).folder, row.job.flow, row.job.max_turns) == (bench.repository.path, "tidy", 3)
    # The schedule itself is where it was: it is no occurrence.
    assert bench.store.dealt_with(["nightly"]) == {"nightly": None}
    file.write_text(json.dumps({"triggers": [{"on": on, "run": {**run, "folder": "/nonexistent/site"}}]}))
    elsewhere = bench.program.run("run", "--trigger", "nightly", PI_TRIGGERS_FILE=str(file))
    assert elsewhere.code == 2
    assert "does not exist" in elsewhere.err


def test_the_same_wish_within_a_minute_is_the_same_job(bench: Bench) -> None:
    _fresh_minute()
    first = bench.program.run("run", bench.folder, *TASK_TEXT)
    second = bench.program.run("run", bench.folder, *TASK_TEXT, "--max-turns", "3")
    third = bench.program.run("run", bench.folder, *TASK_TEXT, "--json")
    assert second.code == third.code == 0
    assert second.out == first.out
    assert "this is that job, with the options it was given then" in second.err
    assert "this is that job" not in first.err
    assert third.document == {
        "jobId": _id(first.out),
        "status": "duplicate",
        "deduplicated": False,
        "survivingJobId": _id(first.out),
        "queue": "pi-jobs",
        "server": bench.server.url,
    }
    assert bench.row(_id(first.out)).job.max_turns is None


def test_a_refused_folder_leaves_nothing_in_the_store(bench: Bench) -> None:
    bench.repository.write("new.txt", "new")
    done = bench.program.run("run", bench.folder, *TASK_TEXT, "--json")
    assert done.code == 2
    assert (done.document["status"], done.document["cause"]) == ("refused", "dirty-tree")
    assert "new.txt" in done.err
    with bench.server.client() as client:
        assert list(client.scan_iter("pi:*")) == []


def test_a_state_folder_joins_the_stores_deployment_and_another_is_refused(bench: Bench) -> None:
    deployment = bench.store.open(None)
    assert bench.program.run("run", bench.folder, *TASK_TEXT).code == 0
    kept = bench.program.home / "state" / "deployment"
    assert kept.read_text().strip() == deployment
    kept.write_text("0123456789abcdef")
    done = bench.program.run("run", bench.folder, "--task", "other")
    assert done.code == 2
    assert "0123456789abcdef" in done.err
    assert done.out == ""


def test_a_server_that_does_not_answer_is_told_within_seconds(bench: Bench) -> None:
    bench.server.freeze()
    try:
        begun = time.monotonic()
        done = bench.program.run("run", bench.folder, *TASK_TEXT)
        took = time.monotonic() - begun
    finally:
        bench.server.thaw()
    assert (done.code, done.out) == (1, "")
    assert f"{bench.server.url} does not answer" in done.err
    # Two seconds for the answer, and what a program takes to start and git to look.
    assert took < 6


def test_a_job_whose_ticket_cannot_be_published_is_accepted(bench: Bench, tmp_path: Path) -> None:
    with OwnServer("valkey", tmp_path / "mute", "--rename-command", "LPUSH", "") as mute:
        done = bench.program.run("run", bench.folder, *TASK_TEXT, VALKEY_URL=mute.url)
        assert done.code == 0, done.err
        assert "the next sweep of a worker announces it" in done.err
        with mute.client() as client:
            assert client.hget(f"pi:job:{_id(done.out)}", "state") == "queued"


def test_our_own_server_keeps_the_job_after_it_is_ended(bench: Bench) -> None:
    _fresh_minute()
    first = bench.program.run("run", bench.folder, *TASK_TEXT, VALKEY_URL=None)
    assert first.code == 0, first.err
    assert f"pi-dispatch's own server in {bench.program.home / 'state'}" in first.err
    second = bench.program.run("run", bench.folder, *TASK_TEXT, VALKEY_URL=None)
    assert "this is that job" in second.err
    assert second.out == first.out


@pytest.mark.parametrize("form", [[], ["--json"]])
def test_the_wait_ends_as_the_job_does(bench: Bench, form: list[str]) -> None:
    bench.store.beat(WORKER, {})
    with bench.program.start("run", bench.folder, *TASK_TEXT, "--wait", *form) as waiting:
        await_line(waiting, "waiting in pi-jobs")
        [job_id] = _queued(bench)
        lease = bench.take(job_id)
        await_line(waiting, "attempt 1 of 2 runs on build-1")
        bench.store.spend(lease)
        bench.store.progress(job_id, 3, 4500)
        await_line(waiting, "turn 3: 4,500 tokens so far")
        bench.end(lease, Refused(reason=Reason.RUNNER_POLICY, cause="turn_budget", detail="used up", remedy="more"))
        out, _ = waiting.communicate(timeout=RUN_S)
    assert waiting.returncode == 2
    if form:
        document = json.loads(out)
        assert (document["jobId"], document["outcome"], document["reason"]) == (job_id, "policy", "runner-policy")
        assert (document["why"], document["remedy"], document["diff"]) == ("used up", "more", "+x\n")
        assert Path(document["record"]).is_file()
    else:
        assert out.startswith(f"{job_id}\nrefused    runner-policy (turn_budget)\nwhy        used up\n")
        assert f"pi-dispatch show {job_id}" in out


def _queued(bench: Bench) -> list[str]:
    with bench.server.client() as client:
        return list(client.zrange("pi:jobs:queued:pi-jobs", 0, -1))


def test_a_duplicate_is_waited_for_as_the_job_that_survives(bench: Bench) -> None:
    _fresh_minute()
    job_id = _id(bench.program.run("run", bench.folder, *TASK_TEXT).out)
    bench.end(bench.take(job_id), Completed())
    done = bench.program.run("run", bench.folder, *TASK_TEXT, "--wait", "--json")
    assert done.code == 0, done.err
    assert (done.document["jobId"], done.document["outcome"]) == (job_id, "completed")


def _sent_away(bench: Bench, waiting: "subprocess.Popen[str]", number: signal.Signals) -> tuple[str, str]:
    await_line(waiting, "waiting in pi-jobs")
    waiting.send_signal(number)
    out, err = waiting.communicate(timeout=RUN_S)
    assert waiting.returncode == 1
    return out, err


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_the_wait_and_never_the_job(bench: Bench, number: signal.Signals) -> None:
    with bench.program.start("run", bench.folder, *TASK_TEXT, "--wait") as waiting:
        out, err = _sent_away(bench, waiting, number)
    job_id = _id(out)
    assert f"The job goes on; cancel it with: pi-dispatch cancel {job_id}" in err
    assert bench.state(job_id) is JobState.QUEUED
    assert not bench.store.cancel_requested([job_id])


def test_whoever_waits_at_once_is_told_that_no_worker_is_there(bench: Bench) -> None:
    with bench.program.start("run", bench.folder, *TASK_TEXT, "--wait") as waiting:
        line = await_line(waiting, "no worker is running")
        _sent_away(bench, waiting, signal.SIGINT)
    assert line == "note: no worker is running: start one with: pi-dispatch worker\n"


def test_a_job_is_handed_in_whoever_reads_its_id(bench: Bench) -> None:
    done = subprocess.run(
        ["sh", "-c", 'exec "$0" "$@" >&-', PROGRAM, "run", bench.folder, *TASK_TEXT],
        env=bench.program.environment(),
        cwd=bench.program.home,
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        timeout=RUN_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert len(_queued(bench)) == 1


def test_a_full_disk_under_the_output_changes_no_end(bench: Bench) -> None:
    with Path(os.devnull).with_name("full").open("w") as full:
        waiting = subprocess.Popen(
            [PROGRAM, "run", bench.folder, *TASK_TEXT, "--wait"],
            env=bench.program.environment(),
            cwd=bench.program.home,
            stdin=subprocess.DEVNULL,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
        )
        with waiting:
            await_line(waiting, "waiting in pi-jobs")
            [job_id] = _queued(bench)
            bench.end(bench.take(job_id), Completed())
            _, err = waiting.communicate(timeout=RUN_S)
    assert waiting.returncode == 0
    assert "standard output is incomplete" in err


class TestLostAnswer:
    """The server has carried a command out, and its answer never came."""

    @staticmethod
    def call(bench: Bench, monkeypatch: pytest.MonkeyPatch, times: int) -> HandIn:
        """A call of the verb whose first answers to `submit` are lost."""
        script, lost = Calls._script, iter(range(times))

        def asked(calls: Calls, name: str, *arguments: str | int) -> Any:
            answer = script(calls, name, *arguments)
            if name == "submit" and next(lost, None) is not None:
                raise InfraError("the server of the queue does not answer", "store-unreachable")
            return answer

        monkeypatch.setattr(Calls, "_script", asked)
        names = {"VALKEY_URL", "PI_STATE_DIR", "PI_LOGS_DIR", "PI_JOBS_DIR"}
        settings = Settings.model_validate({k: v for k, v in bench.program.environment().items() if k in names})
        job = LocalJob(id="local-1", folder=bench.repository.path, task="a private task")
        address = Address.parse(bench.server.url)
        client = connect(address)
        server = Server(address, client, check_server(client, address))
        return HandIn(job, route(job, settings), settings, server, error_console(), as_json=False)

    def test_is_asked_for_again(
        self, bench: Bench, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert self.call(bench, monkeypatch, 1)(None) == 0
        assert capsys.readouterr().out == "local-1\n"
        with bench.server.client() as client:
            assert client.llen("pi:pi-jobs") == 1

    def test_that_stays_away_names_the_job(self, bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
        with pytest.raises(InfraError, match="Job local-1 may have been accepted all the same: the same call within"):
            self.call(bench, monkeypatch, 2)(None)
        assert bench.row().state is JobState.QUEUED

    def test_leaves_a_job_that_a_second_call_announces(self, bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
        with pytest.raises(InfraError):
            self.call(bench, monkeypatch, 2)(None)
        assert self.call(bench, monkeypatch, 0)(None) == 0
        with bench.server.client() as client:
            assert client.llen("pi:pi-jobs") == 1
