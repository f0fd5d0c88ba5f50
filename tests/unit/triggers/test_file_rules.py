"""Rules for events in the file: what each forge can say, what does not go together, and what is told of it."""

import json
from typing import Any

import pytest

from pidispatch.triggers.entry import CommentOn, ForgeTrigger, IssueOn, LabelOn, PullRequestOn
from pidispatch.triggers.refused import EVENTS, NULL_IS_ABSENT, SWITCHES_RULES, UNSERVED_RULES
from pidispatch.triggers.refusedrules import SELECTORS
from pidispatch.triggers.vocabulary import VERDICTS, words_of
from pidispatch.values.forge import FORGES, REVIEW_ACTION
from tests.unit.triggers.entries import ABSENT, document, entry, parsed, refusal, rule, text

AT0 = "trigger at index 0"
#: Every type of rule on every forge that has it.
PAIRS = [
    (str(row.kind), trigger)
    for row in FORGES.values()
    for trigger in EVENTS
    if trigger != "issue" or row.close_word is not None
]
CLOSED = {"action": ["closed"]}
ONCE = {"number": 40, "once": True}
MARK = {"at": "2026-01-31T12:00:00Z", "jobId": "gh-1"}


@pytest.mark.parametrize(("kind", "trigger"), PAIRS)
def test_each_type_of_each_forge_comes_out_as_it_was_written(kind: str, trigger: str) -> None:
    smallest = rule(kind, trigger)
    assert document(smallest) == [smallest]
    run = {
        "provider": "openai",
        "model": "@cf/x",
        "maxTurns": 3,
        "maxTokens": 9_000,
        "image": "pi-job:latest",
        "replicas": 2,
        "instructions": "x" * 2_000,
        "skillsDir": "skills/../of mine",
        "packages": False,
        "resume": False,
    }
    whole = rule(kind, trigger, run=run)
    assert document(whole) == [whole]
    command = rule(kind, trigger, run={"flow": ABSENT, "command": "wf deploy  now"})
    assert document(command) == [command]


def test_the_models_are_those_of_the_types() -> None:
    file = parsed(*(rule("github", trigger) for trigger in EVENTS))
    assert [type(one.on) for _, one in file.forge_rules] == [LabelOn, CommentOn, PullRequestOn, IssueOn]


def test_an_entry_keeps_its_place_whatever_stands_around_it() -> None:
    spent = rule("github", "issue", {**ONCE, "disarmed": MARK})
    file = parsed(entry(), rule(), spent, entry({"id": "b"}), rule("gitlab", "comment"))
    assert [index for index, _ in file.schedules] == [0, 3]
    assert [index for index, _ in file.forge_rules] == [1, 2, 4]
    assert [at for at, one in file.forge_rules if one.mark is not None] == [2]
    marked = file.triggers[2]
    assert isinstance(marked, ForgeTrigger)
    assert marked.mark is not None
    assert (marked.mark.at, marked.mark.job_id) == (MARK["at"], MARK["jobId"])
    assert file.document()["triggers"] == [entry(), rule(), spent, entry({"id": "b"}), rule("gitlab", "comment")]


@pytest.mark.parametrize(("kind", "trigger"), PAIRS)
def test_what_is_unknown_or_of_another_type_is_dropped(kind: str, trigger: str) -> None:
    unknown = {"note": {"deep": 1}, "id": "a:b", "pattern": None}
    local = {"folder": 1, "task": None, "github": True, "note": 1}
    nulls = dict.fromkeys(("provider", "model", "maxTurns", "models", "maxCostUsd"))
    smallest = rule(kind, trigger)
    assert document(rule(kind, trigger, unknown, local | nulls)) == [smallest]
    if trigger in ("label", "comment"):
        assert document(rule(kind, trigger, {"action": 1, "reviewState": None})) == [smallest]
    if trigger == "comment":
        assert document(rule(kind, trigger, {"any": 1, "all": [], "none": None})) == [smallest]


def test_an_empty_list_of_labels_asks_for_nothing() -> None:
    assert document(rule(on={"all": [], "none": []})) == [rule()]
    assert document(rule("gitlab", "pull_request", {"any": []})) == [rule("gitlab", "pull_request")]


@pytest.mark.parametrize("row", FORGES.values(), ids=lambda row: str(row.kind))
def test_each_forge_has_its_own_words(row: Any) -> None:
    every = {word for other in FORGES.values() for word in other.pull_actions} | {"label_cleared", "merge", "Opened"}
    for word in sorted(every):
        labels = {"any": ["x"]} if row.pull_labels and word != row.close_word else {}
        content = text(rule(row.kind, "pull_request", {"action": [word]} | labels))
        if word in row.pull_actions:
            assert parsed(*json.loads(content)["triggers"])
        else:
            told = refusal(content)
            assert f'{AT0}, field "on.action": must hold only words that {row.title} has for pull requests: ' in told
            assert f'Write for example: "action": ["{words_of(row, "pull_request")[0]}"]' in told
    for word in sorted(every) if row.close_word else ():
        content = text(rule(row.kind, "issue", {"action": [word]}))
        if word != row.close_word:
            told = (
                f'must hold only words that {row.title} has for issues: {row.close_word}. Write for example: "action"'
            )
            assert told in refusal(content)


@pytest.mark.parametrize("kind", [row.kind for row in FORGES.values() if row.close_word])
@pytest.mark.parametrize("trigger", ["issue", "pull_request"])
def test_a_rule_for_closing_can_name_one_fire_once_and_be_spent(kind: str, trigger: str) -> None:
    row = FORGES[next(known for known in FORGES if known == kind)]
    closing = {"action": [row.close_word]}
    for on in (
        {"number": 1},
        {"number": 1, "once": False},
        {"once": False},
        ONCE,
        {**ONCE, "disarmed": {"at": "now"}},
        {**ONCE, "disarmed": MARK},
        {"action": [row.close_word, row.close_word]},
    ):
        written = rule(kind, trigger, closing | on)
        assert document(written) == [written]


def test_verdicts_narrow_the_rule_for_reviews() -> None:
    for verdicts in ([VERDICTS[0]], list(VERDICTS)):
        written = rule("github", "pull_request", {"action": [REVIEW_ACTION, "opened"], "reviewState": verdicts})
        assert document(written) == [written]


#: Kind, type, `on`, `run`, the field that is named, and a part of what is told.
FIELDS: dict[str, tuple[str, str, dict[str, Any], dict[str, Any], str, str]] = {
    # Labels.
    "labels text": ("github", "label", {"any": "a"}, {}, "on.any", 'a list of labels. Write for example: "any": ['),
    "labels null": ("github", "label", {"all": None}, {}, "on.all", "must be a list of labels"),
    "label blank": ("github", "label", {"none": [" "]}, {}, "on.none", "must not be empty or blank"),
    "label number": ("github", "label", {"any": [1]}, {}, "on.any", "must be text"),
    "no label": ("github", "label", {"any": ABSENT}, {}, "on.any", "must name a label where on.all names none"),
    "no label but none": ("gitlab", "label", {"any": [], "none": ["x"]}, {}, "on.any", "fire on every issue"),
    "labeled": ("github", "pull_request", {"action": ["labeled", "opened"]}, {}, "on.any", "labeled is about labels"),
    "label_updated": (
        "forgejo",
        "pull_request",
        {"action": ["label_updated"], "none": ["wip"]},
        {},
        "on.any",
        'label_updated is about labels. Write for example: "any": ["pi:fix"]',
    ),
    # Comments.
    "phrase missing": ("forgejo", "comment", {"phrase": ABSENT}, {}, "on.phrase", 'is missing. Write for example: "ph'),
    "phrase blank": ("github", "comment", {"phrase": "\n"}, {}, "on.phrase", "must not be empty or blank"),
    "phrase null": ("github", "comment", {"phrase": None}, {}, "on.phrase", "must be text"),
    # What happens to a pull request.
    "action missing": ("gitlab", "pull_request", {"action": ABSENT}, {}, "on.action", 'example: "action": ["open"]'),
    "issue's action missing": ("gitlab", "issue", {"action": ABSENT}, {}, "on.action", 'example: "action": ["close"]'),
    "action text": ("github", "pull_request", {"action": "opened"}, {}, "on.action", "a list with at least one word"),
    "action empty": ("azure", "pull_request", {"action": []}, {}, "on.action", 'example: "action": ["created"]'),
    "action null": ("github", "issue", {"action": None}, {}, "on.action", "a list with at least one word"),
    "action number": ("forgejo", "pull_request", {"action": [1]}, {}, "on.action", "must be text"),
    "a list in the action": ("github", "issue", {"action": [["closed"]]}, {}, "on.action", "must be text"),
    "closing and more, gitlab": (
        "gitlab",
        "pull_request",
        {"action": ["open", "close"]},
        {},
        "on.action",
        'has close beside other words, and a rule for closing is about nothing else. Write "action": ["close"], and',
    ),
    "null in azure's action": ("azure", "pull_request", {"action": [None]}, {}, "on.action", "must be text"),
    "issue opened": ("github", "issue", {"action": ["closed", "opened"]}, {}, "on.action", "has for issues: closed"),
    # Reviews.
    "verdict unknown": (
        "github",
        "pull_request",
        {"action": [REVIEW_ACTION], "reviewState": ["approved", "dismissed"]},
        {},
        "on.reviewState",
        'only verdicts of a review: approved, changes_requested, commented. Write for example: "reviewState": ["',
    ),
    "verdicts empty": (
        "github",
        "pull_request",
        {"action": [REVIEW_ACTION], "reviewState": []},
        {},
        "on.reviewState",
        "at least one word",
    ),
    "verdicts null": (
        "github",
        "pull_request",
        {"action": [REVIEW_ACTION], "reviewState": None},
        {},
        "on.reviewState",
        "at least one word",
    ),
    "verdicts without reviews": (
        "github",
        "pull_request",
        {"reviewState": ["approved"]},
        {},
        "on.reviewState",
        "has no meaning without review_submitted in on.action",
    ),
    "verdicts without an action": (
        "github",
        "pull_request",
        {"action": ABSENT, "reviewState": ["approved"]},
        {},
        "on.reviewState",
        "without review_submitted",
    ),
    "verdicts on GitLab": (
        "gitlab",
        "pull_request",
        {"action": ["approved"], "reviewState": ["approved"]},
        {},
        "on.reviewState",
        "has no meaning for GitLab",
    ),
    # Closing.
    "number of a label rule": ("github", "label", {"number": 1}, {}, "on.number", "not about closing alone"),
    "once of a comment rule": ("github", "comment", {"once": False}, {}, "on.once", "not about closing alone"),
    "mark of another rule": ("github", "pull_request", {"disarmed": MARK}, {}, "on.disarmed", "not about closing"),
    "number without an action": ("github", "pull_request", {"action": 1, "number": 1}, {}, "on.number", "not about"),
    "number on azure": ("azure", "pull_request", {"number": 1}, {}, "on.number", "not about closing alone"),
    "number 0": ("github", "issue", {"number": 0}, {}, "on.number", "must be a whole number of 1 or more"),
    "number true": ("github", "issue", {"number": True}, {}, "on.number", "must be a whole number"),
    "number text": ("github", "issue", {"number": "40"}, {}, "on.number", "must be a whole number"),
    "number fraction": ("github", "issue", {"number": 40.0}, {}, "on.number", "must be a whole number"),
    "number null": ("github", "issue", {"number": None, "once": True}, {}, "on.number", "must be a whole number"),
    "once text": ("github", "issue", {"once": "true", "number": 1}, {}, "on.once", "must be true or false"),
    "once null": ("github", "issue", {"once": None}, {}, "on.once", "must be true or false"),
    "once 1": ("github", "issue", {"once": 1, "number": 1}, {}, "on.once", "must be true or false"),
    "mark without once": ("github", "issue", {"disarmed": MARK}, {}, "on.disarmed", "marks a rule that does not fire"),
    "mark with once false": (
        "github",
        "pull_request",
        {**CLOSED, "number": 1, "once": False, "disarmed": MARK},
        {},
        "on.disarmed",
        "marks a rule that does not fire once",
    ),
    "mark null": ("github", "issue", {**ONCE, "disarmed": None}, {}, "on.disarmed", "must be an object"),
    "mark list": ("github", "issue", {**ONCE, "disarmed": [MARK]}, {}, "on.disarmed", 'example: "disarmed": {"at": "'),
    "mark empty": ("github", "issue", {**ONCE, "disarmed": {}}, {}, "on.disarmed.at", "is missing"),
    "mark without a time": ("github", "issue", {**ONCE, "disarmed": {"at": " "}}, {}, "on.disarmed.at", "blank"),
    "mark with a null job": (
        "github",
        "issue",
        {**ONCE, "disarmed": {"at": "x", "jobId": None}},
        {},
        "on.disarmed.jobId",
        "must be text",
    ),
    "mark with more": (
        "github",
        "issue",
        {**ONCE, "disarmed": {"at": "x", "job_id": "y"}},
        {},
        "on.disarmed.job_id",
        "is no field of it. Take it out",
    ),
    "labels of a closed issue": ("github", "issue", {"any": []}, {}, "on.any", "has no meaning in a rule for closing"),
    "labels of a closed one": (
        "gitlab",
        "pull_request",
        {"action": ["close"], "none": ["x"]},
        {},
        "on.none",
        "closing",
    ),
    "missed": ("github", "label", {"missed": "once"}, {}, "on.missed", "has no meaning for an event"),
    # Once beside what would make it several.
    "once and replicas": ("github", "issue", ONCE, {"replicas": 2}, "run.replicas", "stands beside on.once"),
    "once and broken replicas": ("github", "issue", ONCE, {"replicas": None}, "run.replicas", "stands beside on.once"),
    "a spent entry is held to all of it": (
        "github",
        "issue",
        {**ONCE, "disarmed": MARK},
        {"flow": "Fix!"},
        "run.flow",
        "lower-case letters",
    ),
    # What is run.
    "flow nor command": ("github", "label", {}, {"flow": ABSENT}, "run.flow", "is missing, and so is run.command"),
    "flow and command, null": ("github", "label", {}, {"command": None}, "run.command", "stands beside run.flow"),
    "flow null": ("github", "label", {}, {"flow": None}, "run.flow", "must be text"),
    "flow long": ("github", "label", {}, {"flow": "a" * 65}, "run.flow", "at most 64"),
    "flow that ends so": ("github", "label", {}, {"flow": "fix-"}, "run.flow", 'Write for example: "flow": "fix"'),
    "command blank": ("github", "label", {}, {"flow": ABSENT, "command": " "}, "run.command", "empty or blank"),
    "command null": ("github", "label", {}, {"flow": ABSENT, "command": None}, "run.command", "must be text"),
    "command with blanks": ("github", "label", {}, {"flow": ABSENT, "command": " wf"}, "run.command", "have blanks"),
    "command with a slash": ("github", "label", {}, {"flow": ABSENT, "command": "/wf"}, "run.command", "its slash"),
    "command of two lines": ("github", "label", {}, {"flow": ABSENT, "command": "wf\nx"}, "run.command", "control"),
    "command with DEL": ("github", "label", {}, {"flow": ABSENT, "command": "wf\x7fx"}, "run.command", "control"),
    "command and instructions": (
        "github",
        "comment",
        {},
        {"flow": ABSENT, "command": "wf", "instructions": "x"},
        "run.instructions",
        "stands beside run.command",
    ),
    "command that goes on": (
        "github",
        "comment",
        {},
        {"flow": ABSENT, "command": "wf", "resume": True},
        "run.resume",
        "cannot be true beside run.command",
    ),
    "instructions blank": ("github", "label", {}, {"instructions": "\t"}, "run.instructions", "empty or blank"),
    "instructions null": ("github", "label", {}, {"instructions": None}, "run.instructions", "must be text"),
    "skillsDir blank around": ("github", "label", {}, {"skillsDir": "/x "}, "run.skillsDir", "must not have blanks"),
    "skillsDir null": ("github", "label", {}, {"skillsDir": None}, "run.skillsDir", "must be text"),
    "skillsDir with a null character": ("github", "label", {}, {"skillsDir": "/a\0b"}, "run.skillsDir", "control"),
    "image": ("gitlab", "label", {}, {"image": "-x"}, "run.image", "is no image reference"),
    "image null": ("gitlab", "label", {}, {"image": None}, "run.image", "must be text"),
    "provider": ("github", "label", {}, {"provider": "-"}, "run.provider", "must be 1 to 64"),
    "model": ("github", "label", {}, {"model": "~"}, "run.model", "must be a model's id"),
    "turns": ("github", "label", {}, {"maxTurns": 0}, "run.maxTurns", "must be 1 or more"),
    "tokens": ("github", "label", {}, {"maxTokens": None}, "run.maxTokens", "must be a whole number"),
    "one replica": ("azure", "pull_request", {}, {"replicas": 1}, "run.replicas", "must be 2 or 3"),
    "four replicas": ("gitlab", "label", {}, {"replicas": 4}, "run.replicas", "must be 2 or 3"),
    "replicas text": ("github", "label", {}, {"replicas": "2"}, "run.replicas", "must be 2 or 3"),
    "replicas fraction": ("github", "label", {}, {"replicas": 2.0}, "run.replicas", "must be 2 or 3"),
    "replicas true": ("github", "label", {}, {"replicas": True}, "run.replicas", "must be 2 or 3"),
    "replicas that go on": (
        "github",
        "label",
        {},
        {"replicas": 2, "resume": True},
        "run.resume",
        "beside run.replicas",
    ),
    "replicas that wait": (
        "github",
        "label",
        {},
        {"replicas": 2, "waitFor": [{"profile": "x"}]},
        "run.waitFor",
        "stands beside run.replicas",
    ),
    "profile without secrets": (
        "github",
        "label",
        {},
        {"secretsProfile": "x"},
        "run.secretsProfile",
        "has no meaning without run.secrets",
    ),
    "packages null": ("github", "label", {}, {"packages": None}, "run.packages", "must be false"),
    "resume text": ("github", "label", {}, {"resume": "no"}, "run.resume", "must be false"),
    "portfolio": ("github", "label", {}, {"portfolio": False}, "run.portfolio", "has no meaning for an event"),
    "portfolio of a spent one": (
        "github",
        "issue",
        {**ONCE, "disarmed": MARK},
        {"portfolio": None},
        "run.portfolio",
        "has no meaning for an event",
    ),
    "tools": ("github", "label", {}, {"tools": []}, "run.tools", "is no field"),
    "noTools": ("github", "label", {}, {"noTools": True}, "run.noTools", "is no field"),
    # The repository.
    "repository missing": ("azure", "label", {}, {"repository": ABSENT}, "run.repository", 'example: "repository": "w'),
    "repository missing, comment": ("azure", "comment", {}, {"repository": ABSENT}, "run.repository", "is missing"),
    "repository of a pull request": ("azure", "pull_request", {}, {"repository": "x"}, "run.repository", "no meaning"),
    "repository null": ("azure", "label", {}, {"repository": None}, "run.repository", "must be text"),
    "repository path": ("azure", "label", {}, {"repository": "a/b"}, "run.repository", "without a slash"),
    "repository blank around": ("azure", "label", {}, {"repository": "a "}, "run.repository", "must not have blanks"),
    # Keys that are nearly a field.
    "model_name": ("github", "label", {}, {"model_name": "x"}, "run.model_name", "run.model is one"),
    "a look-alike": ("github", "label", {}, {"m\u043edelname": "x"}, "run.m\u043edelname", "run.model is one"),
    "a field of run in on": ("gitlab", "comment", {"provider": "x"}, {}, "on.provider", "run.provider is one"),
    "a field of schedules in run": ("github", "label", {}, {"missed": "once"}, "run.missed", "on.missed is one"),
    "a misspelling of one": ("github", "label", {"Missed": "once"}, {}, "on.Missed", "on.missed is one"),
}


@pytest.mark.parametrize("name", FIELDS)
def test_a_field_that_cannot_stand_so(name: str) -> None:
    kind, trigger, on, run, field, reason = FIELDS[name]
    message = refusal(text(rule(kind, trigger, on, run)))
    assert message.startswith(f'{AT0}, field "{field}": ')
    assert reason in message
    assert "\n" not in message


@pytest.mark.parametrize("name", [*UNSERVED_RULES, *SWITCHES_RULES])
@pytest.mark.parametrize("value", [True, ["x"], {"x": 1}])
def test_what_nothing_serves_refuses_the_file(name: str, value: object) -> None:
    run = {name: value} | ({"secrets": {"x": "y"}} if name == "secretsProfile" else {})
    named = "secrets" if name == "secretsProfile" else name
    told = "is not served by this version" if value is True or name not in SWITCHES_RULES else "must be false"
    assert f'{AT0}, field "run.{named}": {told}' in refusal(text(rule(run=run)))


@pytest.mark.parametrize("name", sorted({*UNSERVED_RULES} - NULL_IS_ABSENT - {"secretsProfile"}))
def test_null_is_a_value_where_the_page_does_not_say_otherwise(name: str) -> None:
    assert f'{AT0}, field "run.{name}": is not served by this version' in refusal(text(rule(run={name: None})))


def test_one_rule_for_comments_of_each_forge() -> None:
    one_each = [rule(str(row.kind), "comment") for row in FORGES.values()]
    assert len(parsed(*one_each).forge_rules) == len(FORGES)
    message = refusal(text(*one_each, rule(), rule("gitlab", "comment"), rule("gitlab", "comment")))
    assert [line.partition(". ")[0] for line in message.splitlines()] == [
        f'trigger at index {at}, field "on.type": makes a second rule for comments of GitLab, beside the trigger at '
        "index 1"
        for at in (5, 6)
    ]


E12: dict[str, tuple[list[Any], str]] = {
    "cron with kind github": (
        [entry(run={"kind": "github"})],
        'cron trigger "nightly", field "run.kind": must be local',
    ),
    "label with kind local": ([rule(run={"kind": "local"})], f'{AT0}, field "run.kind": must not be local'),
    "second github comment trigger": (
        [rule("github", "comment"), rule("github", "comment")],
        'trigger at index 1, field "on.type": makes a second rule for comments of GitHub, beside the trigger at index',
    ),
    "cron id a:b": ([entry({"id": "a:b"})], 'cron trigger "a:b", field "on.id": must not hold a colon'),
    "pattern with 4 fields": (
        [entry({"pattern": "0 3 * *"})],
        'cron trigger "nightly", field "on.pattern": must have 5 fields',
    ),
    "duplicate cron id": (
        [entry(), entry()],
        'trigger at index 1, field "on.id": is "nightly", which is the id of the trigger at index 0',
    ),
    "closed beside opened": (
        [rule("github", "pull_request", {"action": ["closed", "opened"]})],
        f'{AT0}, field "on.action": has closed beside other words',
    ),
    "once without number": ([rule("github", "issue", {"once": True})], f'{AT0}, field "on.once": needs on.number'),
    "once with waitFor": (
        [rule("github", "issue", ONCE, {"waitFor": [{"profile": "x"}]})],
        f'{AT0}, field "run.waitFor": stands beside on.once',
    ),
    "flow and command": ([rule(run={"command": "x"})], f'{AT0}, field "run.command": stands beside run.flow'),
    "flow Fix! on a label trigger": ([rule(run={"flow": "Fix!"})], f'{AT0}, field "run.flow": must be lower-case'),
    "run.waitfor": ([rule(run={"waitfor": []})], f'{AT0}, field "run.waitfor": is no field, and run.waitFor is one'),
    "on.waitFor": ([rule(on={"waitFor": []})], f'{AT0}, field "on.waitFor": is no field, and run.waitFor is one'),
    "waitFor without a zone": (
        [rule(run={"waitFor": [{"after": "2026-09-01T09:00:00"}]})],
        f'{AT0}, field "run.waitFor": is not served by this version',
    ),
    "waitFor the 31st of February": (
        [rule(run={"waitFor": [{"after": "2026-02-31T00:00:00Z"}]})],
        f'{AT0}, field "run.waitFor": is not served by this version',
    ),
    "waitFor on cron": (
        [entry(run={"waitFor": [{"profile": "x"}]})],
        'cron trigger "nightly", field "run.waitFor": cannot stand in a schedule',
    ),
    "a reserved secret": (
        [rule(run={"secrets": {"GITHUB_TOKEN": "hush"}})],
        f'{AT0}, field "run.secrets": is not served by this version',
    ),
    "secrets with resume": (
        [rule(run={"secrets": {"A": "hush"}, "resume": True})],
        f'{AT0}, field "run.resume": cannot be true beside run.secrets',
    ),
    "azure pull_request with any": (
        [rule("azure", "pull_request", {"any": ["a"]})],
        f'{AT0}, field "on.any": has no meaning for a pull request of Azure DevOps',
    ),
    "azure issue": (
        [rule("azure", "issue")],
        f'{AT0}, field "on.type": cannot be issue for Azure DevOps: closing is not yet covered there',
    ),
    "repository on github": ([rule(run={"repository": "x"})], f'{AT0}, field "run.repository": has no meaning here'),
    "instructions of 2001 characters": (
        [rule(run={"instructions": "x" * 2001})],
        f'{AT0}, field "run.instructions": must be at most 2,000 characters',
    ),
    "packages in quotes": ([rule(run={"packages": "false"})], f'{AT0}, field "run.packages": must be false'),
    "modelId": ([rule(run={"modelId": "hush"})], f'{AT0}, field "run.modelId": is no field, and run.model is one'),
}


@pytest.mark.example(
    "ch1 E12",
    "Each of these alone refuses the whole file, with entry, field and remedy; what is not served as yet by its name.",
)
@pytest.mark.parametrize("name", E12)
def test_the_worked_refusals(name: str) -> None:
    entries, told = E12[name]
    message = refusal(text(*entries))
    assert told in message
    assert "hush" not in message
    # A good entry beside it does not save the file.
    assert told.partition(", field ")[2] in refusal(text(*entries, entry({"id": "good"})))


@pytest.mark.example("ch1 E12", "A key that stands twice in one object refuses the file, with its name and place.")
def test_the_worked_refusal_of_a_doubled_key() -> None:
    doubled = text(rule()).replace('"flow"', '"flow": "deploy", "flow"')
    assert 'field "flow" stands twice in "triggers[0].run"' in refusal(doubled)


def test_labels_are_named_by_the_types_that_have_them() -> None:
    assert set(SELECTORS) == set(LabelOn.model_fields) - {"type"}
    assert set(SELECTORS) <= set(PullRequestOn.model_fields)
