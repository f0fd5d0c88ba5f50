"""The poller as a program: what it needs, what it leaves, and how it ends."""

from collections.abc import Callable
from pathlib import Path

import pytest

from pidispatch.jobs.store import JobStore
from pidispatch.values.forge import JobKind
from pidispatch.values.limits import Limits
from tests.fakes.github.edge import Edge
from tests.fakes.github.faults import Fault
from tests.support.poll import REPO
from tests.support.program import WorkerRun
from tests.support.receiver import ReceiverProgram, job_ids, label
from tests.support.server import OwnServer, until

Run = Callable[..., ReceiverProgram]
#: What a poller needs none of.
WITHOUT: dict[str, str | None] = {"WEBHOOK_SECRET": None, "RECEIVER_PORT": None, "RECEIVER_BIND": None}


def start(deployment: ReceiverProgram, **changes: str | None) -> WorkerRun:
    """Start it, and wait until it has looked once."""
    run = deployment.launch("poll", **{**WITHOUT, **changes})
    until(lambda: run.events("poller_started") or run.process.poll() is not None, "the poller", 30)
    assert run.process.poll() is None, run.log
    return run


def test_from_its_start_to_its_end(program: Run, server: OwnServer, edge: Edge, tmp_path: Path) -> None:
    edge.install(REPO)
    edge.issue()
    edge.issue()
    deployment = program(label(), label(kind="forgejo"), **edge.app_variables(tmp_path))
    run = start(deployment)
    with server.client() as client:
        until(lambda: client.exists(f"pi:poll:{REPO}:cursor:prs"), "the first look")
        store = JobStore(client, "pi:", Limits())
        assert [one.forge for one in store.sources()] == [JobKind.GITHUB]
        [started] = run.events("poller_started")
        assert (started["forge"], started["repositories"], started["rules"], started["seconds"]) == (
            "github",
            1,
            2,
            60,
        )
        assert [one["forge"] for one in run.events("forge_not_served")] == ["forgejo"]
        edge.label(1)
        assert run.stop() == 0
        assert [one["signal"] for one in run.events("receiver_stopping")] == ["SIGTERM"]
        [stopped] = run.events("poller_stopped")
        assert (stopped["cycles"], stopped["looked"], stopped["failed"], stopped["queued"]) == (1, 1, 0, 0)
        again = start(deployment, POLL_REPOS=REPO)
        event = edge.state.repository(REPO).events[-1].id
        until(lambda: again.events("enqueued"), "what came in between")
        assert job_ids(client) == [f"gh-poll-e{event}"]
        until(lambda: client.llen("pi:pi-jobs"), "the ticket")
        assert again.stop() == 0
        [stopped] = again.events("poller_stopped")
        assert stopped["queued"] == 1
    whole = run.log + again.log
    assert all(line.startswith("{") for line in whole.splitlines())
    for private in (*edge.secrets(), "footer", "alice", "PRIVATE KEY"):
        assert private not in whole


def refused(deployment: ReceiverProgram, **changes: str | None) -> tuple[int, str]:
    """Start it where it does not come up: exit code and reason."""
    run = deployment.launch("poll", **{**WITHOUT, **changes})
    code = run.process.wait(30)
    [told] = run.events("receiver_start_failed")
    return code, told["reason"]


def test_what_cannot_work_is_refused(program: Run, edge: Edge, tmp_path: Path) -> None:
    deployment = program(label(), **edge.pat_variables())
    code, reason = refused(deployment)
    assert (code, reason.partition(",")[0]) == (2, "POLL_REPOS is not set")
    code, reason = refused(deployment, POLL_REPOS="web")
    assert (code, reason.partition(" must")[0]) == (2, "POLL_REPOS='web'")
    code, reason = refused(deployment, POLL_REPOS=REPO, GITHUB_PAT="")
    assert (code, "GITHUB_PAT is not set" in reason) == (2, True)
    code, reason = refused(deployment, POLL_REPOS=REPO, GITHUB_PAT="wrong")
    assert (code, "does not take the token in GITHUB_PAT" in reason) == (2, True)


@pytest.mark.parametrize(("fault", "code"), [(None, 2), (Fault.SERVER_ERROR, 1)])
def test_an_app_that_is_installed_nowhere_is_refused(
    program: Run, edge: Edge, tmp_path: Path, fault: Fault | None, code: int
) -> None:
    edge.install(REPO).repositories.clear()
    if fault is not None:
        edge.fault("/installation/repositories", fault)
    deployment = program(label(), **edge.app_variables(tmp_path))
    ended, reason = refused(deployment)
    assert ended == code
    assert ("installed on no repository" in reason) is (fault is None)
