"""The poller from one cycle to the next: which repositories, how long it waits, and what goes wrong."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from pidispatch.receiver.poll_boot import chosen
from pidispatch.values.errors import ConfigError, InfraError
from tests.fakes.github.edge import Edge
from tests.fakes.github.faults import Fault
from tests.fakes.github.model import IssueEvent
from tests.support.clock import FakeClock
from tests.support.poll import REPO, PollBox
from tests.support.receiver import label

Poll = Callable[..., PollBox]
Logs = list[dict[str, Any]]
NOW = datetime(2026, 1, 31, 12, 0, tzinfo=UTC)
SHOP = "acme/shop"


def told(logs: Logs, event: str) -> list[dict[str, Any]]:
    """What was logged of one kind."""
    return [one for one in logs if one["event"] == event]


def test_it_waits_between_two_cycles_as_long_as_it_is_told_and_as_github_wants(poll: Poll, edge: Edge) -> None:
    box = poll(label(), interval_s=30)
    edge.state.poll_interval_s = 90
    box.between = [lambda: setattr(edge.state, "poll_interval_s", 10)]
    done = box.cycle(2)
    assert box.pauses == [90, 30]
    assert (done.cycles, done.looked, done.failed) == (2, 2, 0)


def test_a_used_up_limit_is_waited_for_and_no_other_repository_is_asked_about(
    poll: Poll, edge: Edge, logs: Logs
) -> None:
    clock = FakeClock(NOW)
    edge.repository(SHOP)
    edge.state.now = clock.now
    edge.issue()
    box = poll(label(), repositories=(REPO, SHOP), clock=clock)
    box.cycle()
    edge.label(1)
    edge.use_up_rate_limit(600)
    edge.asked.clear()
    done = box.cycle()
    assert box.pauses == [60, 607]
    assert len(edge.asked) == 1
    assert (done.looked, done.failed) == (0, 1)
    [limited] = told(logs, "poll_rate_limited")
    assert (limited["repo"], limited["seconds"]) == (REPO, 607)
    clock.instant += timedelta(seconds=601)
    box.cycle()
    assert len(box.inbox.jobs()) == 1, "nothing was lost"


def test_a_limit_is_waited_for_no_longer_than_one_can_last_whatever_the_clocks_say(poll: Poll, edge: Edge) -> None:
    box = poll(label(), clock=FakeClock(NOW))
    edge.state.now = lambda: NOW + timedelta(hours=5)
    edge.use_up_rate_limit(600)
    box.cycle()
    assert box.pauses == [3607]


def test_a_limit_that_comes_back_keeps_no_repository_from_being_looked_at(poll: Poll, edge: Edge) -> None:
    edge.repository(SHOP, permissions={"alice": "write", "pi-bot": "write"})
    box = poll(label(), repositories=(REPO, SHOP))
    box.between = [lambda: edge.fault(f"/repos/{REPO}", Fault.SECONDARY_LIMIT, 1)]
    edge.fault(f"/repos/{REPO}", Fault.SECONDARY_LIMIT, 1)
    done = box.cycle(2)
    assert (done.looked, done.failed) == (1, 2)
    assert any(SHOP in path for path in edge.paths())


def test_a_limit_that_does_not_say_until_when_is_waited_for_a_minute(poll: Poll, edge: Edge) -> None:
    box = poll(label(), interval_s=30)
    edge.fault("/repos/", Fault.LIMIT_IN_WORDS)
    box.cycle()
    assert 66 < box.pauses[0] <= 67


def test_a_limit_of_who_is_asked_about_who_may_is_waited_for_too(poll: Poll, edge: Edge) -> None:
    edge.issue()
    close = {"on": {"type": "issue", "action": ["closed"]}, "run": {"kind": "github", "flow": "deploy"}}
    box = poll(close)
    box.cycle()
    edge.close(1)
    edge.fault(f"/repos/{REPO}/collaborators", Fault.SECONDARY_LIMIT, 1)
    box.cycle()
    assert box.pauses[1] > 60
    box.cycle()
    assert len(box.inbox.jobs()) == 1


def test_what_goes_wrong_with_one_repository_keeps_nobody_from_the_others(poll: Poll, edge: Edge, logs: Logs) -> None:
    edge.repository(SHOP, permissions={"alice": "write", "pi-bot": "write"})
    edge.issue()
    edge.issue(SHOP)
    box = poll(label(), repositories=("acme/none", REPO, SHOP))
    box.cycle()
    edge.label(1)
    edge.label(1, repo=SHOP)
    edge.fault(f"/repos/{REPO}/issues/comments", Fault.BAD_GATEWAY, 1)
    done = box.cycle()
    assert len(box.inbox.jobs()) == 2, "what came before it is handed in"
    assert (done.looked, done.failed) == (1, 2)
    failed = {(one["repo"], one["cause"]) for one in told(logs, "poll_repository_failed")}
    assert failed == {("acme/none", "repository-unseen"), (REPO, "forge-unanswered")}
    box.cycle()
    assert len(box.inbox.deliveries(2)) == 2, "and is not told again"


def test_a_store_that_takes_no_job_leaves_it_to_be_seen_again(poll: Poll, edge: Edge, logs: Logs) -> None:
    edge.issue()
    box = poll(label())
    box.cycle()
    edge.label(1)
    box.inbox.client.set("pi:queues", "no set")
    box.cycle()
    assert [one["cause"] for one in told(logs, "poll_repository_failed")] == ["enqueue-failed"]
    box.inbox.client.delete("pi:queues")
    box.inbox.client.delete(*box.inbox.client.keys("pi:job:*"), *box.inbox.client.keys("pi:dedup:*"))
    box.cycle()
    assert len(box.inbox.jobs()) == 1


def test_a_mistake_of_ours_is_told_without_its_words(poll: Poll, edge: Edge, logs: Logs) -> None:
    edge.issue()
    box = poll(label(), repositories=(REPO, REPO))
    box.cycle()
    edge.label(1)
    box.inbox.client.set(f"pi:poll:{REPO}:prs", "no hash")
    box.cycle()
    assert {one["cause"] for one in told(logs, "poll_repository_failed")} == {"store-error"}
    box.inbox.client.delete(f"pi:poll:{REPO}:prs")
    box.inbox.client.hset(f"pi:poll:{REPO}:prs", "secret words", "x")
    done = box.cycle()
    [broke, _] = told(logs, "poll_broke")
    assert (broke["cause"], broke["repo"]) == ("ValueError", REPO)
    assert "secret" not in str(logs)
    assert done.failed == 2


def test_told_to_stop_it_finishes_the_repository_it_is_at(poll: Poll, edge: Edge) -> None:
    edge.repository(SHOP)
    box = poll(label(), repositories=(REPO, SHOP))
    stop = asyncio.Event()
    look = box.look

    async def stopped(watch: Any) -> int:
        stop.set()
        return await look(watch)

    box.look = stopped  # type: ignore[assignment]
    done = box.cycle(5, stop)
    assert (done.cycles, done.looked, box.pauses) == (1, 1, [])
    assert f"pi:poll:{REPO}:cursor:prs" in box.inbox.client.keys("pi:poll:*")
    assert not [path for path in edge.paths() if SHOP in path]


def app(poll: Poll, edge: Edge, folder: Path, *names: str, **more: Any) -> PollBox:
    """A poller with the App, installed on these."""
    edge.install(*names)
    box = poll(label(), variables=edge.app_variables(folder), listed=True, **more)
    box.repositories = chosen(box.inbox.settings, box.polling)
    return box


def test_an_app_looks_where_it_is_installed_and_asks_again_every_tenth_cycle(
    poll: Poll, edge: Edge, tmp_path: Path, logs: Logs
) -> None:
    edge.repository(SHOP)
    box = app(poll, edge, tmp_path, REPO)
    assert box.repositories == [REPO]
    installation = edge.state.installations[88]
    installation.repositories.add(SHOP)
    assert box.cycle(11).looked == 10 + 2
    listing = "GET /installation/repositories"
    assert edge.paths().count(listing) == 2
    edge.fault("/installation/repositories", Fault.SERVER_ERROR, 1)
    assert box.cycle(11).looked == 11
    assert [one["cause"] for one in told(logs, "poll_list_failed")] == ["forge-unanswered"]
    installation.repositories.clear()
    edge.fault("/repos/", Fault.NOT_FOUND)
    assert box.cycle(11).looked == 0
    assert len(told(logs, "poll_repository_failed")) == 11, "none is no list"


def test_an_app_uses_a_token_for_a_while_and_another_one_where_it_is_not_taken(
    poll: Poll, edge: Edge, tmp_path: Path, logs: Logs
) -> None:
    clock = FakeClock(datetime.now(UTC))
    box = app(poll, edge, tmp_path, REPO, clock=clock)
    mint = "POST /app/installations/88/access_tokens"
    edge.asked.clear()
    box.cycle(3)
    assert edge.paths().count(mint) == 1
    clock.seconds += 1801
    box.cycle()
    assert edge.paths().count(mint) == 2
    edge.expire()
    box.cycle(2)
    assert edge.paths().count(mint) == 3
    assert [one["cause"] for one in told(logs, "poll_repository_failed")] == ["forge-refused"]
    edge.expire()
    edge.fault("/app/installations", Fault.NOT_FOUND)
    box.cycle(2)
    assert [one["repo"] for one in told(logs, "poll_token_failed")] == [REPO]


def test_an_app_of_many_repositories_is_told_of_all_and_of_what_is_none_of_nothing(
    poll: Poll, edge: Edge, tmp_path: Path
) -> None:
    names = [f"acme/r{number}" for number in range(120)]
    for name in names:
        edge.repository(name, {})
    box = app(poll, edge, tmp_path, *names)
    assert sorted(box.repositories) == sorted(names)
    for fault in (Fault.WRONG_SHAPE, Fault.RATE_LIMITED):
        edge.fault("/installation/repositories", fault)
        with pytest.raises(InfraError, match="does not say on which repositories the App is installed"):
            chosen(box.inbox.settings, box.polling)
    edge.fault("/installation/repositories", Fault.RATE_LIMITED, 0)
    edge.state.installations[88].repositories.clear()
    with pytest.raises(ConfigError, match="installed on no repository"):
        chosen(box.inbox.settings, box.polling)


def test_only_an_app_is_asked_where_to_look(poll: Poll, edge: Edge) -> None:
    box = poll(label())
    with pytest.raises(ConfigError, match="POLL_REPOS is not set"):
        chosen(box.inbox.settings, box.polling)
    box = poll(label(), variables=edge.pat_variables() | {"POLL_REPOS": "acme/web, ACME/web,acme/shop"})
    assert chosen(box.inbox.settings, box.polling) == ("acme/web", "acme/shop")


def test_more_than_is_read_at_once_is_told(poll: Poll, edge: Edge, logs: Logs) -> None:
    edge.issue()
    pull = edge.pull("mend")
    rule = {"on": {"type": "pull_request", "action": ["review_submitted"]}, "run": {"kind": "github", "flow": "x"}}
    box = poll(rule)
    box.cycle()
    repository = edge.state.repository(REPO)
    for number in range(3, 53):
        repository.issues[number] = replace(pull, id=edge.state.new_id(), number=number)
    event = IssueEvent(1, "renamed", edge.state.user("alice"), repository.issues[1], None, edge.state.instant())
    repository.events += [replace(event, id=edge.state.new_id()) for _ in range(501)]
    edge.asked.clear()
    box.cycle()
    assert [one["repo"] for one in told(logs, "poll_events_gap")] == [REPO]
    assert [(one["pulls"], one["looked_at"]) for one in told(logs, "poll_reviews_gap")] == [(51, 50)]
    assert sum(path.endswith("/reviews") for path in edge.paths()) == 50
    box.cycle()
    assert sum(path.endswith("/pulls") for path in edge.paths()) == 2
    assert [one.status for one in edge.asked if one.path.partition("?")[0].endswith("/pulls")] == [200, 200]


@pytest.mark.parametrize("where", ["issues/1$", "activity"])
def test_what_is_not_answered_is_asked_again(poll: Poll, edge: Edge, logs: Logs, where: str) -> None:
    edge.issue()
    edge.pull("mend")
    comment = {"on": {"type": "comment", "phrase": "@pi"}, "run": {"kind": "github", "flow": "triage"}}
    pushed = {"on": {"type": "pull_request", "action": ["synchronize"]}, "run": {"kind": "github", "flow": "review"}}
    box = poll(comment, pushed)
    box.pushed_by_people()
    box.cycle()
    edge.comment(1)
    edge.push("mend", {"a.txt": "a"})
    edge.fault(f"/repos/{REPO}/{where}", Fault.SERVER_ERROR, 1)
    box.cycle()
    assert [one["cause"] for one in told(logs, "poll_repository_failed")] == ["forge-unanswered"]
    box.cycle()
    assert len(box.inbox.jobs()) == 2
    assert len(box.inbox.deliveries(2)) == 2


def test_where_who_pushed_is_not_shown_it_is_unknown(poll: Poll, edge: Edge, logs: Logs) -> None:
    edge.pull("mend")
    pushed = {"on": {"type": "pull_request", "action": ["synchronize"]}, "run": {"kind": "github", "flow": "review"}}
    box = poll(pushed)
    box.pushed_by_people()
    box.cycle()
    edge.push("mend", {"a.txt": "a"})
    edge.fault(f"/repos/{REPO}/activity", Fault.FORBIDDEN, 1)
    box.cycle()
    assert told(logs, "poll_repository_failed") == []
    # As what a later version would leave.
    box.inbox.client.set(f"pi:poll:{REPO}:cursor:prs", "[]")
    box.cycle()
    assert len(box.inbox.jobs()) == 1
