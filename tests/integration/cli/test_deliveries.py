"""`deliveries`: the log of a real store, as it stands and while it grows."""

import json
import re
import signal
from collections.abc import Callable
from typing import Any

import pytest

from pidispatch.cli.deliveries import Log, follow_log, nothing_came
from pidispatch.cli.main import _run
from pidispatch.jobs.delivered import Delivery
from pidispatch.values.forge import JobKind
from tests.integration.cli.bench import Bench, Script
from tests.support.documented import documented, keys
from tests.support.oneshots import fired_by, rule
from tests.support.program import RUN_S
from tests.support.server import free_port

CLOSED = Delivery(id="d-1", event="issues", action="closed", target="acme/web#40", trigger=3)
DROPPED = Delivery(id="d-2", event="watch", reason="unhandled-event")


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a run needs is broken."""
    monkeypatch.setenv("PI_MAX_TURNS", "many")


@pytest.fixture
def heard(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> Bench:
    """A receiver hears GitHub; one event made a job, one was coalesced, one dropped."""
    monkeypatch.setenv("VALKEY_URL", bench.server.url)
    bench.store.hear([JobKind.GITHUB])
    for number in (1, 2):
        job = fired_by(rule(), job_id=f"gh-{number}", oneshot=None)
        bench.store.submit(job, queue="pi-jobs", dedup_key="acme/web#40:closed:deploy", delivery=CLOSED)
    bench.store.log_delivery(JobKind.GITHUB, DROPPED, "dropped")
    return bench


def printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    assert _run(["deliveries", "--json", *arguments]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


@pytest.mark.usefixtures("heard")
def test_all_that_it_says_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    found = printed(capsys)
    assert [(one["verdict"], one["reason"], one["jobId"]) for one in found["deliveries"]] == [
        ("queued", None, "gh-1"),
        ("coalesced", None, "gh-1"),
        ("dropped", "unhandled-event", None),
    ]
    first = found["deliveries"][0]
    assert (first["forge"], first["id"], first["event"], first["action"]) == ("github", "d-1", "issues", "closed")
    assert (first["target"], first["trigger"]) == ("acme/web#40", 3)
    [source] = found["sources"]
    assert (source["forge"], source["since"] <= source["last"]) == ("github", True)
    assert keys(found) == documented("how-to/receiver-look.md", "### deliveries")
    assert "a private title" not in json.dumps(found)
    assert [one["id"] for one in printed(capsys, "--limit", "1")["deliveries"]] == ["d-2"]
    assert printed(capsys, "--forge", "gitlab") == {"deliveries": [], "sources": []}


@pytest.mark.usefixtures("heard")
def test_a_person_sees_the_same_newest_last(capsys: pytest.CaptureFixture[str]) -> None:
    assert _run(["deliveries"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [re.split(r" {2,}", line.strip())[0:6] for line in lines[:1]] == [
        ["WHEN", "FORGE", "EVENT", "TARGET", "VERDICT", "WHY/JOB"]
    ]
    assert [re.split(r" {2,}", line.strip())[1:] for line in lines[1:]] == [
        ["github", "issues closed", "acme/web#40", "queued", "gh-1"],
        ["github", "issues closed", "acme/web#40", "coalesced", "gh-1"],
        ["github", "watch", "-", "dropped", "unhandled-event"],
    ]
    assert _run(["deliveries", "--limit", "2"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 3


def test_events_of_all_forges_stand_in_one_order(heard: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    for forge in (JobKind.GITLAB, JobKind.GITHUB, JobKind.GITLAB):
        heard.store.log_delivery(forge, DROPPED, "dropped")
    found = printed(capsys)["deliveries"]
    assert len(found) == 6
    assert [one["at"] for one in found] == sorted(one["at"] for one in found)
    assert len(printed(capsys, "--limit", "2")["deliveries"]) == 2


def test_of_an_empty_log_it_says_where_to_look(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("VALKEY_URL", bench.server.url)
    assert _run(["deliveries"]) == 0
    assert "no receiver has said lately that it hears a forge" in capsys.readouterr().err
    bench.store.hear([JobKind.GITHUB, JobKind.GITLAB])
    assert _run(["deliveries", "--forge", "gitlab"]) == 0
    captured = capsys.readouterr()
    assert captured.out == ""
    assert re.search(r"a receiver hears GitLab since \S+ \S+Z\. Look at the forge's list", captured.err)
    assert nothing_came(bench.store.sources()).count("since") == 2


def test_a_server_that_is_away_is_an_error(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("VALKEY_URL", f"redis://127.0.0.1:{free_port()}/0")
    assert _run(["deliveries"]) == 1
    assert "does not answer" in capsys.readouterr().err
    assert _run(["deliveries", "--forge", "bitbucket"]) == 1


def followed(bench: Bench, most: int, *steps: Callable[[], object], as_json: bool = False) -> None:
    """Follow the log, with these steps one after the other in the pauses."""
    follow_log(Log(bench.store, [JobKind.GITHUB]), most, Script(steps), as_json=as_json)


def log(bench: Bench, name: str) -> Callable[[], object]:
    return lambda: bench.store.log_delivery(JobKind.GITHUB, DROPPED.model_copy(update={"id": name}), "dropped")


def test_following_goes_on_with_those_that_come(heard: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    def three() -> None:
        for name in ("a", "b", "c"):
            log(heard, name)()

    followed(heard, 1, lambda: None, three, log(heard, "d"), as_json=True)
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["id"] for line in lines] == ["d-2", "a", "b", "c", "d"]
    assert {f"deliveries.{key}" for key in lines[0]} <= documented("how-to/receiver-look.md", "### deliveries")


def test_lines_come_one_by_one_for_a_person(heard: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    evil = DROPPED.model_copy(update={"target": "acme/\x1b[31m[bold]"})
    followed(heard, 50, lambda: heard.store.log_delivery(JobKind.GITHUB, evil, "retry"))
    lines = capsys.readouterr().out.splitlines()
    assert [re.split(r" {2,}", line.strip())[-2:] for line in lines] == [
        *(["VERDICT", "WHY/JOB"], ["queued", "gh-1"], ["coalesced", "gh-1"], ["dropped", "unhandled-event"]),
        ["retry", "unhandled-event"],
    ]
    assert "acme/\\u{001B}[31m[bold]" in lines[-1]
    assert (
        len({line.index(word) for line, word in zip(lines[1:4], ("queued", "coalesced", "dropped"), strict=True)}) == 1
    )


def test_a_server_that_is_away_meanwhile_is_told_once_and_asked_again(
    heard: Bench, capsys: pytest.CaptureFixture[str]
) -> None:
    followed(
        heard,
        50,
        lambda: heard.server.stop(signal.SIGKILL),
        lambda: None,
        lambda: None,
        heard.server.start,
        log(heard, "later"),
        as_json=True,
    )
    captured = capsys.readouterr()
    assert [json.loads(line)["id"] for line in captured.out.splitlines()] == ["d-1", "d-1", "d-2", "later"]
    assert captured.err.count("does not answer") == 1


def test_nobody_follows_when_nobody_reads(heard: Bench) -> None:
    following = heard.program.start("deliveries", "--follow", "--json")
    with following:
        assert following.stdout is not None
        assert json.loads(following.stdout.readline())["id"] == "d-1"
        following.stdout.close()
        assert following.wait(RUN_S) == 0


def test_ctrl_c_ends_it(heard: Bench) -> None:
    following = heard.program.start("deliveries", "-f", "--limit", "1")
    with following:
        assert following.stdout is not None
        lines = [following.stdout.readline() for _ in range(2)]
        following.send_signal(signal.SIGINT)
        assert following.wait(RUN_S) == 0
    assert "WHY/JOB" in lines[0]
    assert "unhandled-event" in lines[1]
