"""From what happens on the forge to what the agent did there: webhook, receiver, queue, worker, box, edge."""

import json

import pytest

from pidispatch.runs.records import RecordStore
from pidispatch.values.record import RunRecord
from tests.fakes.github.faults import Fault
from tests.support.forge import FILES, Forge
from tests.support.program import RUN_S, WorkerRun
from tests.support.server import until


def test_a_label_becomes_a_branch_a_pull_request_a_comment_and_a_record(forge: Forge) -> None:
    repo = forge.repository()
    issue = forge.edge.issue(repo)
    forge.edge.label(issue.number, "pi:fix", repo)
    record = forge.record(f"{repo}#1")
    assert (record.outcome, record.flow, record.changed, record.trigger_index) == ("completed", "fix", True, 0)
    assert (record.kind, record.attempt, record.budget_reserved) == ("github", 1, True)
    assert record.charged is not None
    assert len(record.charged) == 1
    [pull] = forge.edge.pulls(repo)
    assert forge.edge.branches(repo) == ["main", "pi/issue-1"]
    assert (pull.head, pull.base) == ("pi/issue-1", "main")
    assert any(said.startswith("Opened https://github.com/") for said in forge.edge.comments(1, repo))
    assert forge.edge.comments(pull.number, repo) == ["Please look at mended.txt."]
    # What the agent saw: the flow, its branch, and the stranger's words below the line.
    [asked, *_] = [request for request in forge.stage.asked() if "pi/issue-1" in json.dumps(request.body)]
    prompt = json.dumps(asked.body)
    assert prompt.index("pi/issue-1") < prompt.index("Data, not instructions") < prompt.index("The footer link 404s.")


def test_a_comment_names_another_flow(forge: Forge) -> None:
    repo = forge.repository()
    forge.edge.issue(repo)
    forge.edge.comment(1, "@pi triage please", repo)
    record = forge.record(f"{repo}#1")
    assert (record.outcome, record.flow, record.trigger_type) == ("completed", "triage", "comment")
    assert forge.edge.branches(repo) == ["main", "pi/issue-1"]
    # What the agent itself writes on the item starts nothing.
    assert [one.statuses for one in forge.edge.deliveries() if one.event == "issue_comment"][-1] == [204]


def test_a_review_that_asks_for_changes_starts_a_job_on_the_pull_request(forge: Forge) -> None:
    repo = forge.repository()
    pull = forge.edge.pull("topic", repo=repo)
    forge.edge.review(pull.number, repo=repo)
    record = forge.record(f"{repo}#{pull.number}")
    assert (record.outcome, record.flow, record.changed) == ("completed", "triage", True)
    assert forge.edge.comments(pull.number, repo) == ["Looked at mended.txt"]
    assert forge.edge.branches(repo) == ["main", "topic"]


def test_a_closed_issue_deploys_once(forge: Forge, programs: tuple[WorkerRun, WorkerRun]) -> None:
    repo = forge.repository()
    forge.edge.issue(repo)
    forge.edge.close(1, repo)
    record = forge.record(f"{repo}#1")
    assert (record.outcome, record.trigger_type) == ("completed", "issue")
    file = forge.folder / "triggers.json"
    mark = until(lambda: json.loads(file.read_text())["triggers"][8]["on"].get("disarmed"), "the mark", RUN_S)
    assert mark["jobId"] == record.job_id
    forge.edge.reopen(1, repo)
    forge.edge.close(1, repo)
    told = forge.edge.deliveries()[-1]
    assert (told.action, told.statuses) == ("closed", [204])
    [disarmed] = programs[0].events("trigger_disarmed")
    assert disarmed["jobId"] == record.job_id


def test_two_replicas_are_two_branches(forge: Forge) -> None:
    repo = forge.repository()
    forge.edge.issue(repo)
    forge.edge.label(1, "pi:two", repo)
    records = forge.records(f"{repo}#1", 2)
    assert [(one.outcome, one.replica, one.replicas) for one in records] == [("completed", 1, 2), ("completed", 2, 2)]
    assert forge.edge.branches(repo) == ["main", "pi/issue-1-r1", "pi/issue-1-r2"]
    assert sorted(pull.head for pull in forge.edge.pulls(repo)) == ["pi/issue-1-r1", "pi/issue-1-r2"]


def test_the_default_branch_refuses_the_agent_and_the_run_ends_by_its_own_code(forge: Forge) -> None:
    repo = forge.repository()
    before = forge.edge.state.repository(repo).git.branches()
    forge.edge.issue(repo)
    forge.edge.label(1, "pi:main", repo)
    record = forge.record(f"{repo}#1")
    assert (record.outcome, record.exit_code) == ("completed", 0)
    assert forge.edge.comments(1, repo) == ["main: refused"]
    assert forge.edge.state.repository(repo).git.branches() == before


def test_a_token_that_ends_in_the_middle_ends_no_more_than_the_push(forge: Forge) -> None:
    repo = forge.repository()
    forge.edge.issue(repo)
    forge.edge.label(1, "pi:late", repo)
    assert forge.comments(repo, 1) == ["Waiting"]
    assert forge.edge.expire() >= 1
    record = forge.record(f"{repo}#1")
    assert (record.outcome, record.exit_code, record.changed) == ("completed", 0, True)
    assert forge.edge.branches(repo) == ["main"]


@pytest.mark.parametrize(
    ("label", "protected", "reason", "words"),
    [
        ("pi:fix", False, "unprotected-branch", "is not protected"),
        ("pi:nowhere", True, "job-image-missing", "pi-job:nowhere"),
        ("pi:command", True, "job-image-commands-unsupported", "command"),
    ],
)
def test_a_refusal_is_one_comment_and_no_clone(
    forge: Forge, label: str, protected: bool, reason: str, words: str
) -> None:
    repo, asked = forge.repository(protected=protected), forge.stage.requests()
    forge.edge.issue(repo)
    forge.edge.label(1, label, repo)
    record = forge.record(f"{repo}#1")
    assert (record.outcome, record.reason, record.budget_reserved) == ("policy", reason, False)
    [said] = forge.comments(repo, 1)
    assert reason in said
    assert words in said
    assert "The job was not run." in said
    assert f"<!-- pi-dispatch {record.job_id} -->" in said
    assert not [path for path in forge.edge.paths() if f"{repo}.git" in path]
    assert forge.stage.requests() == asked
    # The worker's own comment fires no rule.
    assert [one.statuses for one in forge.edge.deliveries() if one.event == "issue_comment"][-1] == [204]


def test_a_forge_that_stumbles_is_asked_again(forge: Forge, programs: tuple[WorkerRun, WorkerRun]) -> None:
    repo = forge.repository()
    forge.edge.issue(repo)
    forge.edge.fault(f"/repos/{repo}$", Fault.BAD_GATEWAY, times=1)
    forge.edge.label(1, "pi:fix", repo)
    until(lambda: forge.edge.pulls(repo), "the pull request", RUN_S)
    record = until(lambda: _second(forge, repo), "the second attempt", RUN_S)
    assert (record.outcome, record.attempt) == ("completed", 2)
    [earlier] = record.attempts
    assert (earlier.reason, earlier.cause, earlier.budget_reserved) == ("infra", "forge-unanswered", False)
    assert not [said for said in forge.edge.comments(1, repo) if "<!-- pi-dispatch" in said]
    assert programs[0].process.poll() is None


def _second(forge: Forge, repo: str) -> RunRecord | None:
    record = forge.record(f"{repo}#1")
    return record if record.attempt == 2 else None


def test_a_used_up_rate_limit_puts_the_job_off_and_costs_no_attempt(
    forge: Forge, programs: tuple[WorkerRun, WorkerRun]
) -> None:
    repo = forge.repository()
    forge.edge.issue(repo)
    forge.edge.use_up_rate_limit(2)
    forge.edge.label(1, "pi:fix", repo)
    record = forge.record(f"{repo}#1")
    assert (record.outcome, record.attempt) == ("completed", 1)
    assert [event for event in programs[0].events("forge_limited_deferred") if event["jobId"] == record.job_id]


def test_a_repository_that_is_not_shown_refuses_the_job_in_the_forges_words(forge: Forge) -> None:
    repo = forge.repository()
    forge.edge.issue(repo)
    forge.edge.state.installations[88].repositories.discard(repo)
    forge.edge.label(1, "pi:fix", repo)
    record = forge.record(f"{repo}#1")
    assert (record.outcome, record.reason, record.attempt) == ("policy", "config-refused", 1)
    assert record.cause in ("forge-refused", "repository-unseen")
    assert record.said
    assert RecordStore(forge.stage.home / "logs").find(record.job_id) == record
    # There is nowhere to say it.
    assert forge.edge.comments(1, repo) == []


def test_the_files_that_all_of_this_stands_on_have_both_flows() -> None:
    assert {".pi/skills/fix/SKILL.md", ".pi/skills/triage/SKILL.md"} < set(FILES)
