"""`explain-event`: what an event would fire, why each other entry is not fired, and what is never printed or loaded."""

import io
import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import pytest
from rich.console import Console

from pidispatch.cli.entries import fires_on, runs_what
from pidispatch.cli.explain_event import document, show
from pidispatch.cli.main import _run
from pidispatch.cli.walk import Walk, walked
from pidispatch.forges.protocol import ForgeModule, Unverified
from pidispatch.forges.registry import MODULES
from pidispatch.values.event import Actor, Drop, Event, Occasion
from pidispatch.values.forge import FORGES, JobKind
from pidispatch.values.job import Comment, Review, Target
from tests.fakes.github import payloads
from tests.support.documented import documented, keys
from tests.unit.triggers.entries import entry, parsed, rule

TEXTS = ("Broken link", "The footer link 404s.", "alice", "bob", "Mend the footer", "As asked.", "please")
ONE_SHOT = rule(trigger="issue", on={"number": 40, "once": True}, run={"flow": "deploy"})
#: One of each kind, and of each reason for which an entry is passed over.
WHOLE = (
    rule(),
    rule(trigger="comment", run={"flow": "triage"}),
    rule(on={"any": ["pi:fix", "b"]}, run={"flow": "other"}),
    ONE_SHOT,
    rule("gitlab", run={"flow": "deploy"}),
    {**ONE_SHOT, "on": {**ONE_SHOT["on"], "number": 41, "disarmed": {"at": "2026-01-01T00:00:00Z", "jobId": "gh-1"}}},
    {**ONE_SHOT, "on": {**ONE_SHOT["on"], "number": 42, "disarmed": {"at": "by hand"}}},
    rule(
        trigger="pull_request",
        on={"action": ["review_submitted"], "reviewState": ["changes_requested"]},
        run={"flow": None, "command": "wf deploy", "replicas": 2},
    ),
    rule(trigger="pull_request", on={"action": ["labeled", "opened"], "any": ["pi:fix"], "all": ["ok"]}),
    entry(),
)


def without_nulls(one: dict[str, Any]) -> dict[str, Any]:
    return {part: {key: value for key, value in fields.items() if value is not None} for part, fields in one.items()}


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "triggers.json"
    path.write_text(json.dumps({"triggers": [without_nulls(one) for one in WHOLE]}))
    monkeypatch.setenv("PI_TRIGGERS_FILE", str(path))
    monkeypatch.setenv("VALKEY_URL", "nonsense")
    return path


def explained(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, payload: Any, *more: str
) -> dict[str, Any]:
    """What `--json` says of a payload; no text of it is in there, nor in what a person sees."""
    body = tmp_path / "payload.json"
    body.write_bytes(payload if isinstance(payload, bytes) else payloads.encode(payload))
    assert _run(["explain-event", "--event", name, str(body), *more]) == 0
    seen = capsys.readouterr().out
    assert _run(["explain-event", "--event", name, str(body), "--json", *more]) == 0
    printed = capsys.readouterr().out
    for text in TEXTS:
        assert text not in seen + printed
    found: dict[str, Any] = json.loads(printed)
    assert found["why"] in seen
    return found


def reasons(found: dict[str, Any]) -> list[str | None]:
    return [one["reason"] for one in found["triggers"]]


@pytest.mark.usefixtures("file")
def test_a_label_fires_the_first_rule_and_every_other_entry_is_told_why_not(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = explained(tmp_path, capsys, "issues", payloads.LABELED)
    assert (found["fires"], found["flow"], found["replicas"], found["reason"]) == (0, "fix", 1, None)
    assert (found["target"], found["occasions"]) == ("acme/web#7", ["label"])
    assert reasons(found) == [
        *(None, "other-occasion", "earlier-rule", "other-occasion", "other-forge"),
        *("spent", "spent", "other-occasion", "other-occasion", "schedule"),
    ]
    assert [one["why"] for one in found["triggers"]] == [
        "it has the label pi:fix",
        "it is about comments, and this event is about labels of an issue",
        "it fits too, but trigger 0 comes first",
        "it is about closing, and this event is about labels of an issue",
        "it is about GitLab, which this version does not serve",
        "it has fired, with the job gh-1 (2026-01-01T00:00:00Z); pi-dispatch triggers rearm 5 arms it again",
        "it is disarmed by hand (by hand); pi-dispatch triggers rearm 6 arms it again",
        "it is about what happens to pull requests and reviews, and this event is about labels of an issue",
        "it is about what happens to pull requests and reviews, and this event is about labels of an issue",
        "it is a schedule, which no event fires",
    ]
    assert [one["served"] for one in found["triggers"]] == [True] * 4 + [False] + [True] * 5
    assert keys(found) == documented("how-to/receiver-look.md", "### explain-event")


@pytest.mark.usefixtures("file")
def test_of_a_close_it_says_what_the_forge_would_be_asked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = explained(tmp_path, capsys, "issues", payloads.closed(40))
    assert (found["fires"], found["flow"]) == (3, "deploy")
    assert found["assumes"][0] == "who closed it may write to the repository, which GitHub is asked for"
    found = explained(tmp_path, capsys, "issues", payloads.closed(43))
    assert (found["fires"], found["reason"], found["assumes"]) == (None, "close-number-not-matched", [])
    assert found["triggers"][3]["why"] == "it is about number 40 alone"
    assert reasons(found)[5:7] == ["spent", "spent"]


@pytest.mark.usefixtures("file")
def test_a_comment_may_name_the_flow(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = explained(tmp_path, capsys, "issue_comment", payloads.issue_comment("@pi fix now"))
    assert (found["fires"], found["flow"]) == (1, "fix")
    assert found["why"] == "fires trigger 1: flow fix (named in the comment)"
    assert found["triggers"][1]["why"] == 'the comment holds "@pi"'
    assert explained(tmp_path, capsys, "issue_comment", payloads.issue_comment())["flow"] == "triage"
    found = explained(tmp_path, capsys, "issue_comment", payloads.issue_comment("hello"))
    assert (found["fires"], found["reason"]) == (None, "no-trigger-phrase")
    assert found["triggers"][1]["why"] == 'the comment does not hold "@pi"'


@pytest.mark.usefixtures("file")
def test_a_rule_that_fits_is_told_what_stopped_the_event_before_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = explained(tmp_path, capsys, "issue_comment", payloads.issue_comment(association="NONE"))
    assert (found["fires"], found["reason"]) == (None, "author-not-allowed")
    assert found["why"] == ("starts no job: who did it, or wrote the comment, may not start jobs (author-not-allowed)")
    assert found["triggers"][1]["why"] == "it fits, but: who did it, or wrote the comment, may not start jobs"


@pytest.mark.usefixtures("file")
def test_a_review_and_its_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = explained(tmp_path, capsys, "pull_request_review", payloads.pull_request_review())
    assert (found["fires"], found["flow"], found["command"], found["replicas"]) == (7, None, "wf", 2)
    assert found["why"] == "fires trigger 7: command wf, 2 times"
    assert found["triggers"][7]["why"] == "its action is review_submitted"
    assert found["triggers"][8]["why"] == "it is about labeled, opened and nothing else"
    found = explained(tmp_path, capsys, "pull_request_review", payloads.pull_request_review("approved"))
    assert (found["reason"], found["triggers"][7]["why"]) == (
        "review-state-not-matched",
        "the verdict of the review is not changes_requested",
    )
    assert "wf deploy" not in json.dumps(found)


@pytest.mark.usefixtures("file")
def test_labels_of_a_pull_request_that_do_not_fit_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = explained(tmp_path, capsys, "pull_request", payloads.pull_request(labels=["Secret label"]))
    assert found["triggers"][8]["why"] == (
        "none of the labels pi:fix is there; not each of the labels ok is there: ok missing"
    )
    assert "Secret label" not in json.dumps(found)


@pytest.mark.usefixtures("file")
def test_an_event_that_no_rule_is_about(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = explained(tmp_path, capsys, "watch", {"action": "started", "sender": {"id": 1}})
    assert (found["reason"], found["occasions"], found["target"]) == ("unhandled-event", [], None)
    assert found["triggers"][0]["why"] == "no rule is about such events"
    nobody = payloads.issues()
    del nobody["sender"]["id"]
    assert explained(tmp_path, capsys, "issues", nobody)["reason"] == "missing-sender-id"


def test_another_file_and_standard_input(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    other = tmp_path / "next.json"
    other.write_text('{"triggers": []}')
    found = explained(tmp_path, capsys, "issues", payloads.LABELED, "--triggers", str(other))
    assert (found["file"], found["triggers"], found["reason"]) == (str(other), [], "no-allowlisted-label")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(payloads.LABELED)))
    assert _run(["explain-event", "--event", "issues", "-", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["file"] == str(file)
    monkeypatch.delenv("PI_TRIGGERS_FILE")
    monkeypatch.chdir(tmp_path)
    assert explained(tmp_path, capsys, "issues", payloads.LABELED)["file"] == str(tmp_path / "triggers.json")


@pytest.mark.usefixtures("file")
@pytest.mark.parametrize(
    ("arguments", "content", "says"),
    [
        (["--forge", "gitlab"], b"{}", "--forge gitlab is not served by this version. Write one of: github"),
        (["--forge", "bitbucket"], b"{}", "--forge bitbucket is no forge. Write one of: github"),
        ([], b"{", "payload.json: is no JSON at line 1, column 2, in UTF-8"),
        ([], b"\xff{}", "payload.json: is no JSON, in UTF-8 "),
        ([], b"NaN", "payload.json: is no JSON, in UTF-8 "),
        ([], b"[" * 100_000, "payload.json: is no JSON, in UTF-8 "),
        ([], b" " * (2 * 1024 * 1024 + 1), "is larger than 2,097,152 bytes: a receiver would answer 413"),
        (["--triggers", "/nowhere/at/all.json"], b"{}", "/nowhere/at/all.json: cannot be read"),
    ],
)
def test_what_cannot_be_explained_is_refused(
    arguments: list[str], content: bytes, says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "payload.json").write_bytes(content)
    assert _run(["explain-event", "--event", "issues", str(tmp_path / "payload.json"), *arguments]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert says in captured.err


def test_without_any_file_it_says_how_to_name_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("PI_TRIGGERS_FILE", raising=False)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "payload.json").write_bytes(payloads.LABELED)
    assert _run(["explain-event", "--event", "issues", "payload.json"]) == 2
    assert "there is no triggers.json in this folder: name one with PI_TRIGGERS_FILE" in capsys.readouterr().err
    assert _run(["explain-event", "--event", "issues", "none.json"]) == 2
    assert _run(["explain-event", "payload.json"]) == 1


@pytest.mark.usefixtures("file")
def test_too_much_on_standard_input_is_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b" " * (4 * 1024 * 1024))))
    assert _run(["explain-event", "--event", "issues", "-"]) == 2
    assert "is larger than 2,097,152 bytes" in capsys.readouterr().err


class ForgeOfBodies:
    """A forge whose body alone can hold the id of a delivery, and this one does not."""

    @staticmethod
    def event(_headers: Mapping[str, str], _document: Any) -> Unverified:
        return Unverified(400, "missing-delivery-id")


@pytest.mark.usefixtures("file")
def test_what_a_forge_does_not_take_for_an_event_is_told_as_the_receiver_would(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(MODULES, JobKind.AZURE, cast(ForgeModule, ForgeOfBodies()))
    (tmp_path / "p.json").write_text("[]")
    assert _run(["explain-event", "--forge", "azure", "--event", "x", str(tmp_path / "p.json")]) == 2
    assert "no event of Azure DevOps: a receiver would answer 400 missing-delivery-id" in capsys.readouterr().err


def gitlab(**more: Any) -> Event:
    given: dict[str, Any] = {
        "forge": JobKind.GITLAB,
        "delivery": "1",
        "event": "issue",
        "action": "close",
        "occasions": (Occasion.CLOSE, Occasion.LABEL),
        "actor": Actor(id=7),
        "repo": "grp/app",
        "target": Target(type="issue", number=5),
        "labels": ("pi:fix",),
    }
    return Event(**{**given, **more})


def steps(walk: Walk) -> list[str | None]:
    return [step.reason for step in walk.steps]


def test_a_forge_that_is_asked_of_everybody_is_assumed_to_say_yes() -> None:
    rules = parsed(rule("gitlab", "issue", on={"number": 9}), rule("gitlab"), rule("gitlab", on={"any": ["b"]}))
    walk = walked(gitlab(), rules)
    assert walk.fired is not None
    assert walk.fired.rule.index == 1
    assert walk.assumes[0] == "who did it may start jobs in the repository, which GitLab is asked for"
    assert steps(walk) == ["close-number-not-matched", None, "no-allowlisted-label"]
    assert walk.steps[2].why == "none of the labels b was added"


def test_a_rule_of_another_kind_of_item_and_labels_that_must_not_be_there() -> None:
    rules = parsed(rule("gitlab", "pull_request", on={"action": ["close"]}), rule("gitlab", on={"none": ["pi:fix"]}))
    walk = walked(gitlab(), rules)
    assert steps(walk) == ["no-matching-close-trigger", "no-allowlisted-label"]
    assert [step.why for step in walk.steps] == [
        "it is about closing a pull request",
        "pi:fix was added, and must not be",
    ]
    pull = gitlab(occasions=(Occasion.CLOSE,), target=Target(type="pull_request", number=5))
    rules = parsed(rule("gitlab", "issue"), rule("gitlab", "pull_request", on={"action": ["close"]}))
    assert [step.why for step in walked(pull, rules).steps] == [
        "it is about closing an issue",
        "its action is close",
    ]


def test_a_rule_that_reads_no_more_of_the_event_than_that_it_came() -> None:
    rules = parsed(rule("gitlab", "pull_request", on={"action": ["open"], "none": ["x"]}))
    event = gitlab(action="open", occasions=(Occasion.PULL_REQUEST,), target=Target(type="pull_request", number=5))
    [step] = walked(event, rules).steps
    assert (step.fires, step.why) == (True, "its action is open")


def test_a_rule_that_two_occasions_reach_is_told_by_the_one_on_which_it_fires() -> None:
    rules = parsed(rule("gitlab", "pull_request", on={"action": ["open"]}))
    occasions = (Occasion.PULL_REQUEST, Occasion.REVIEW)
    event = gitlab(action="open", occasions=occasions, target=Target(type="pull_request", number=5))
    assert steps(walked(event, rules)) == [None]


def test_an_event_without_what_a_job_needs_is_told_as_the_receiver_would() -> None:
    walk = walked(gitlab(occasions=(Occasion.LABEL,), repo=None), parsed(rule("gitlab")))
    assert walk.drop is Drop.MISSING_REPOSITORY
    assert [step.why for step in walk.steps] == ["neither event nor rule names the repository"]


def test_the_repository_may_be_the_rules() -> None:
    rules = parsed(rule("azure"))
    event = gitlab(forge=JobKind.AZURE, occasions=(Occasion.LABEL,), repo=None, project="Proj")
    found = document(Path("t.json"), walked(event, rules))
    assert (found["repo"], found["target"]) == ("Proj/widgets", "Proj/widgets#5")


def test_a_review_without_a_verdict_that_is_named() -> None:
    review = Review(state="commented", body="x")
    on = {"action": ["review_submitted"], "reviewState": ["approved", "changes_requested"]}
    event = gitlab(
        forge=JobKind.GITHUB,
        occasions=(Occasion.REVIEW,),
        association="OWNER",
        review=review,
        comment=Comment(body=""),
        target=Target(type="pull_request", number=5),
    )
    [step] = walked(event, parsed(rule(trigger="pull_request", on=on))).steps
    assert step.why == "the verdict of the review is not approved or changes_requested"


@pytest.mark.parametrize(
    ("one", "on", "runs"),
    [
        (
            rule(on={"all": ["ok"], "none": ["wip"]}),
            "an issue with any of the labels pi:fix; all of the labels ok; none of the labels wip",
            "flow fix",
        ),
        (rule(trigger="comment"), 'a comment with "@pi"', "flow fix"),
        (ONE_SHOT, "issue 40 closed, once", "flow deploy"),
        (rule(trigger="issue"), "any issue closed", "flow fix"),
        (rule("gitlab", "pull_request", on={"action": ["close"]}), "any pull request closed", "flow fix"),
        (without_nulls(WHOLE[7]), "a pull request: review_submitted; verdict changes_requested", "command wf, 2 times"),
        (WHOLE[8], "a pull request: labeled, opened; with any of the labels pi:fix; all of the labels ok", "flow fix"),
        (entry(), "the schedule 0 3 * * *", "flow tidy"),
    ],
)
def test_an_entry_in_words(one: dict[str, Any], on: str, runs: str) -> None:
    [trigger] = parsed(one).triggers
    assert (fires_on(trigger), runs_what(trigger)) == (on, runs)


def test_a_person_sees_each_reason_on_a_line_of_its_own() -> None:
    walk = walked(gitlab(), parsed(rule("gitlab"), rule("gitlab", on={"any": ["b\x1b[31m"]})))
    out = io.StringIO()
    show(Console(file=out, force_terminal=True, width=60, color_system=None), Path("t.json"), walk)
    said = out.getvalue()
    assert "0  yes  an issue with any of the labels pi:fix -> flow fix\n     it has the label pi:fix\n" in said
    assert "1  no  " in said
    assert "\x1b[31m" not in said


def test_the_forges_that_are_served_are_those_with_a_module() -> None:
    from pidispatch.cli.heard import is_served

    assert {one for one in FORGES if is_served(one)} == set(MODULES)


def test_neither_a_forges_client_nor_the_queue_is_loaded(file: Path, tmp_path: Path) -> None:
    """Whoever edits a file tries event after event."""
    (tmp_path / "payload.json").write_bytes(payloads.LABELED)
    script = (
        "import sys; from pidispatch.cli.main import _run; "
        f"code = _run(['explain-event', '--event', 'issues', {str(tmp_path / 'payload.json')!r}, '--triggers', "
        f"{str(file)!r}]); "
        "print([one for one in ('github', 'redis', 'celery', 'requests', 'docker') if one in sys.modules], code)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.splitlines()[-1] == "[] 0"
