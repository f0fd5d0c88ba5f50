"""Which rule an event fires, and why none does."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pidispatch.triggers.entry import LabelOn, PullRequestOn
from pidispatch.triggers.matching import Ask, Fired, decide, fits, judge, repository_of
from pidispatch.triggers.rules import Rules
from pidispatch.values.event import Actor, Authority, Drop, Event, Identity, Occasion
from pidispatch.values.forge import REVIEW_ACTION
from pidispatch.values.job import Matched
from tests.unit.triggers.entries import ABSENT, entry, parsed, refusal, rule, text
from tests.unit.triggers.events import ME, closed, commented, event, happened, issue, labeled, pull, reviewed

YES, NO = Authority.YES, Authority.NO


def rules(*entries: Any) -> Rules:
    return Rules(parsed(*entries))


def decided(given: Event, *entries: Any, authority: Authority | None = None, **more: Any) -> Fired | Drop | Ask:
    return decide(given, rules(*entries), ME, authority, **more)


def fired(given: Event, *entries: Any, authority: Authority | None = None, **more: Any) -> Fired:
    found = decided(given, *entries, authority=authority, **more)
    assert isinstance(found, Fired), found
    return found


# Who did it.


@pytest.mark.parametrize(
    ("sent_for", "mine", "dropped"), [(88, 88, False), (89, 88, True), (None, 88, False), (89, None, False)]
)
def test_an_event_of_another_installation_of_the_app_fires_nothing(
    sent_for: int | None, mine: int | None, dropped: bool
) -> None:
    sent = labeled("pi:fix", forge="github").model_copy(update={"installation": sent_for})
    me = ME.model_copy(update={"installation": mine})
    found = decide(sent, rules(rule("github")), me, None)
    assert (found is Drop.OTHER_INSTALLATION) is dropped


@pytest.mark.parametrize("forge", ["github", "gitlab", "forgejo", "azure"])
def test_nobody_and_this_deployment_itself_fire_nothing_and_cost_no_question(forge: str) -> None:
    label = rule(forge)
    assert decided(labeled("pi:fix", forge=forge, actor=Actor()), label) is Drop.MISSING_SENDER_ID
    assert decided(labeled("pi:fix", forge=forge, actor=Actor(id=ME.id)), label) is Drop.SELF
    assert decided(labeled("pi:fix", forge=forge, actor=Actor(alias=ME.alias)), label) is Drop.SELF
    # Before anything is known of the event, and whatever the forge says.
    unknown = event(forge, "ping", "", actor=Actor(id=ME.id, alias="x@example.com"))
    assert decided(unknown, label, authority=YES) is Drop.SELF


def test_what_one_side_lacks_is_never_the_same() -> None:
    for me, actor in (
        (Identity(id=1), Actor(alias="a")),
        (Identity(id=None, alias="a"), Actor(id=1)),
        (Identity(id=None), Actor(id=1)),
        (Identity(id=1), Actor(id="1")),
    ):
        assert isinstance(decide(labeled("pi:fix", actor=actor), rules(rule()), me), Fired)


@pytest.mark.parametrize("forge", ["gitlab", "forgejo", "azure"])
def test_these_forges_are_asked_of_everybody_whatever_the_event(forge: str) -> None:
    comment, label = rule(forge, "comment"), rule(forge)
    for one in (labeled("pi:fix", forge=forge), commented("@pi", forge=forge), event(forge, "wiki", "")):
        assert decided(one, comment, label) == Ask(None)
        assert decided(one, comment, label, authority=NO) is Drop.AUTHOR_NOT_ALLOWED
        assert decided(one, comment, label, authority=Authority.UNKNOWN) is Drop.AUTHOR_NOT_ALLOWED
    assert fired(labeled("pi:fix", forge=forge), comment, label, authority=YES).rule.index == 1
    assert fired(commented("@pi", forge=forge, association=None), comment, label, authority=YES).rule.index == 0


def test_what_no_rule_is_about_is_told_as_the_forge_means_it() -> None:
    assert decided(event("github", "ping", ""), rule()) is Drop.UNHANDLED_EVENT
    ignored = event("forgejo", "issues", "label_cleared", unhandled=Drop.ACTION_NOT_ACTIONABLE)
    assert decided(ignored, rule("forgejo"), authority=YES) is Drop.ACTION_NOT_ACTIONABLE


# Labels.


@pytest.mark.example(
    "ch1 E2", "Any, all and none of a label rule, the label it matched, and the files that are refused."
)
def test_the_worked_predicate() -> None:
    label = rule(on={"any": ["a", "b"], "all": ["ok"], "none": ["wip"]})
    assert fired(labeled("a", "ok"), label).matched == Matched(index=0, type="label", label="a")
    for labels in (["ok"], ["b"], ["b", "ok", "wip"]):
        assert decided(labeled(*labels), label) is Drop.NO_ALLOWLISTED_LABEL
    assert 'field "on.any": must name a label' in refusal(text(rule(on={"any": ABSENT, "none": ["wip"]})))
    assert 'field "on.any": must be a list of labels' in refusal(text(rule(on={"any": "a"})))


_LABELS = st.lists(st.sampled_from(["a", "b", "c", "A", "a ", ""]), max_size=4)


@given(_LABELS, _LABELS, _LABELS, _LABELS, st.booleans())
def test_labels_fit_as_the_sentence_says(some: Any, every: Any, no: Any, there: Any, pulls: bool) -> None:
    fields: dict[str, Any] = {"any": tuple(some), "all": tuple(every), "none": tuple(no)}
    on = (
        PullRequestOn.model_construct(type="pull_request", action=("opened",), **fields)
        if pulls
        else LabelOn.model_construct(type="label", **fields)
    )
    one_of_any = not some
    for label in there:
        one_of_any = one_of_any or label in some
    assert fits(on, there) == (
        one_of_any and all(label in there for label in every) and not any(label in there for label in no)
    )


@given(_LABELS.map(lambda labels: [one for one in labels if one.strip()]), _LABELS)
def test_the_label_that_is_told_is_the_first_that_was_asked_for(every: Any, there: Any) -> None:
    found = decided(labeled(*there), rule(on={"any": ["c", "b"], "all": every}), rule(on={"any": ABSENT, "all": ["a"]}))
    if isinstance(found, Fired) and found.rule.index == 0:
        assert found.matched.label == ("c" if "c" in there else "b")
    elif isinstance(found, Fired):
        assert found.matched.label == "a"
    else:
        assert "a" not in there


def test_the_first_rule_of_the_file_that_fits_is_taken() -> None:
    file = [entry(), rule("gitlab"), rule(on={"any": ["x"]}), rule(run={"flow": "two"}), rule(run={"flow": "three"})]
    found = fired(labeled("pi:fix"), *file)
    assert (found.rule.index, found.flow) == (3, "two")
    assert fired(labeled("x", "pi:fix"), *file).rule.index == 2


def test_a_label_rule_needs_no_author_on_github() -> None:
    assert fired(labeled("pi:fix", association="NONE"), rule())
    assert fired(labeled("pi:fix", association=None), rule())


def test_a_rule_of_another_forge_is_never_met() -> None:
    others = [rule(kind, trigger) for kind in ("gitlab", "forgejo", "azure") for trigger in ("label", "pull_request")]
    others += [rule(kind, "comment") for kind in ("gitlab", "forgejo", "azure")]
    assert decided(labeled("pi:fix"), *others) is Drop.NO_ALLOWLISTED_LABEL
    assert decided(commented("@pi"), *others) is Drop.NO_TRIGGER_PHRASE
    assert decided(happened("opened"), *others) is Drop.NO_MATCHING_PR_TRIGGER
    assert decided(reviewed("approved"), *others) is Drop.NO_MATCHING_PR_TRIGGER
    assert decided(closed(), *others) is Drop.NO_MATCHING_CLOSE_TRIGGER


# Comments.

TRIAGE = [
    rule("github", "comment", run={"flow": "triage"}),
    rule(),
    rule("gitlab", run={"flow": "deploy"}),
]


@pytest.mark.example("ch1 E3", "A comment takes the flow that it names, of any forge, else the rule's own.")
def test_the_worked_comments() -> None:
    for body, flow in (
        ("@pi please", "triage"),
        ("@pi fix now", "fix"),
        ("@pi deploy", "deploy"),
        ("@pi rm", "triage"),
    ):
        found = fired(commented(body, target=issue(9)), *TRIAGE)
        assert (found.flow, found.matched) == (flow, Matched(index=0, type="comment", phrase="@pi"))
    assert decided(commented("@pi fix", association="NONE"), *TRIAGE) is Drop.AUTHOR_NOT_ALLOWED
    assert decided(commented("hello"), *TRIAGE) is Drop.NO_TRIGGER_PHRASE
    assert fired(commented("@pi", target=pull(9)), *TRIAGE).flow == "triage"
    command = rule("github", "comment", run={"flow": ABSENT, "command": "wf deploy"})
    found = fired(commented("@pi fix"), command, *TRIAGE[1:])
    assert (found.flow, found.rule.run.command) == (None, "wf deploy")


@pytest.mark.parametrize(
    ("body", "flow"),
    [
        ("x@pi\n\tfix!", "triage"),
        ("x@pi\n\tfix", "fix"),
        ("@pi, fix", "triage"),
        ("@pifix", "triage"),
        # Only the first word after the phrase counts, and only the first phrase that has one.
        ("@pi please fix", "triage"),
        ("@pi rm @pi fix", "triage"),
        ("@pi.@pi fix", "fix"),
        ("@pi   ", "triage"),
        # A flow of a rule for comments themselves, and the one of a rule that is spent, are no flows to be named.
        ("@pi triage", "triage"),
        ("@pi spent", "triage"),
        ("@pi tidy", "triage"),
        ("@pi wf", "triage"),
    ],
)
def test_the_word_after_the_phrase(body: str, flow: str) -> None:
    mark = {"number": 1, "once": True, "disarmed": {"at": "now"}}
    others = [
        rule("github", "issue", mark, {"flow": "spent"}),
        entry(),
        rule("forgejo", run={"flow": ABSENT, "command": "wf"}),
    ]
    assert fired(commented(body), *TRIAGE, *others).flow == flow


def test_a_phrase_is_no_pattern() -> None:
    dots = [rule("github", "comment", {"phrase": "(pi.*)"}, {"flow": "triage"}), rule()]
    assert decided(commented("pixx fix"), *dots) is Drop.NO_TRIGGER_PHRASE
    assert fired(commented("(pi.*) fix"), *dots).flow == "fix"
    assert decided(commented("(PI.*) fix"), *dots) is Drop.NO_TRIGGER_PHRASE


def test_a_rule_for_comments_without_flow_and_command_has_nothing_to_run() -> None:
    # No file holds such a rule; whoever makes one otherwise gets no job without a prompt.
    bare = parsed(rule("github", "comment"))
    one = bare.triggers[0]
    run = one.run.model_copy(update={"flow": None})
    found = Rules(bare.model_copy(update={"triggers": (one.model_copy(update={"run": run}),)}))
    assert decide(commented("@pi"), found, ME) is Drop.NO_FLOW


def test_a_comment_without_text_or_rule() -> None:
    assert decided(commented("@pi", comment=None), *TRIAGE) is Drop.NO_TRIGGER_PHRASE
    assert decided(commented("@pi"), rule()) is Drop.NO_TRIGGER_PHRASE
    for word in ("OWNER", "COLLABORATOR"):
        assert fired(commented("@pi", association=word), *TRIAGE)
    for other in ("CONTRIBUTOR", "member", "", None):
        assert decided(commented("@pi", association=other), *TRIAGE) is Drop.AUTHOR_NOT_ALLOWED


# Pull requests.


def test_a_pull_request_fires_by_its_action_and_its_author() -> None:
    opened = rule("github", "pull_request", {"action": ["opened", "synchronize"]})
    found = fired(happened("synchronize"), opened)
    assert found.matched == Matched(index=0, type="pull_request", action="synchronize")
    assert decided(happened("reopened"), opened) is Drop.NO_MATCHING_PR_TRIGGER
    assert decided(happened("opened", association="CONTRIBUTOR"), opened) is Drop.PR_AUTHOR_NOT_ALLOWED
    # Whoever opened it: labels are put on by somebody whose word counts.
    label = rule("github", "pull_request", {"action": ["labeled"], "any": ["pi:fix"], "none": ["wip"]})
    assert fired(happened("labeled", association="NONE", labels=("pi:fix",)), label).matched.action == "labeled"
    assert decided(happened("labeled", labels=("pi:fix", "wip")), label) is Drop.NO_MATCHING_PR_TRIGGER
    # Its labels narrow the other actions too.
    narrowed = rule("github", "pull_request", {"action": ["opened"], "none": ["wip"]})
    assert fired(happened("opened"), narrowed)
    assert decided(happened("opened", labels=("wip",)), narrowed) is Drop.NO_MATCHING_PR_TRIGGER
    assert decided(happened("opened", target=None), opened) is Drop.MISSING_PULL_REQUEST


@pytest.mark.example("ch1 E5", "A review fires by the reviewer's own word and the verdict.")
def test_the_worked_reviews() -> None:
    review = rule("github", "pull_request", {"action": [REVIEW_ACTION], "reviewState": ["changes_requested"]})
    found = fired(reviewed("changes_requested"), review)
    assert found.matched == Matched(index=0, type="pull_request", action=REVIEW_ACTION)
    assert decided(reviewed("changes_requested", association="NONE"), review) is Drop.REVIEW_AUTHOR_NOT_ALLOWED
    assert decided(reviewed("approved"), review) is Drop.REVIEW_STATE_NOT_MATCHED
    assert decided(reviewed("commented", " \n"), review) is Drop.NO_REVIEW_BODY


def test_a_review_is_told_by_the_rule_that_came_nearest() -> None:
    labels = {"action": [REVIEW_ACTION], "reviewState": ["approved"], "any": ["a"]}
    approved, opened = rule("github", "pull_request", labels), rule("github", "pull_request")
    assert decided(reviewed("commented"), opened, approved) is Drop.NO_MATCHING_PR_TRIGGER
    assert decided(reviewed("commented", labels=("a",)), opened, approved) is Drop.REVIEW_STATE_NOT_MATCHED
    assert decided(reviewed("commented", labels=("a",)), approved, opened) is Drop.REVIEW_STATE_NOT_MATCHED
    assert decided(reviewed("approved", labels=("a",), review=None), approved) is Drop.REVIEW_STATE_NOT_MATCHED
    every = rule("github", "pull_request", {"action": [REVIEW_ACTION]})
    assert fired(reviewed("commented", labels=("a",)), approved, every).rule.index == 1
    assert fired(reviewed("approved", " "), every)
    # A review is no pull request that was opened, and the other way round.
    assert decided(reviewed("approved"), opened) is Drop.NO_MATCHING_PR_TRIGGER
    assert decided(happened("submitted"), every) is Drop.NO_MATCHING_PR_TRIGGER


# Closing.

ONCE = rule("github", "issue", {"number": 40, "once": True}, {"flow": "deploy"})
FILE = [rule(), rule("github", "comment"), rule("github", "pull_request"), ONCE]


@pytest.mark.example(
    "ch1 E6", "A close fires the rule for its number, and nobody is asked where no rule would take it."
)
def test_the_worked_close() -> None:
    found = fired(closed(), *FILE, authority=YES)
    assert found.matched == Matched(index=3, type="issue", action="closed", number=40, once=True)
    assert (found.flow, found.rule.oneshot is None) == ("deploy", False)
    asked = decided(closed(), *FILE)
    assert isinstance(asked, Ask)
    assert asked.rule is not None
    assert asked.rule.index == 3
    assert decided(closed(), *FILE, authority=NO) is Drop.CLOSER_NOT_ALLOWED
    assert decided(closed(41), *FILE) is Drop.CLOSE_NUMBER_NOT_MATCHED
    spent = rule("github", "issue", {"number": 40, "once": True, "disarmed": {"at": "now", "jobId": "gh-1"}})
    assert decided(closed(), *FILE[:3], spent) is Drop.NO_MATCHING_CLOSE_TRIGGER


def test_a_rule_that_the_store_knows_as_spent_is_passed_over() -> None:
    assert decided(closed(), *FILE, spent={3}) is Drop.NO_MATCHING_CLOSE_TRIGGER
    again = rule("github", "issue", run={"flow": "again"})
    assert fired(closed(), *FILE, again, authority=YES).rule.index == 3
    found = fired(closed(), *FILE, again, authority=YES, spent=[3])
    assert (found.rule.index, found.matched) == (4, Matched(index=4, type="issue", action="closed", number=40))


def test_who_closed_must_be_known_to_write_whatever_is_said_of_who_wrote() -> None:
    for authority in (NO, Authority.UNKNOWN):
        given = closed(association="OWNER")
        assert decided(given, *FILE, authority=authority) is Drop.CLOSER_NOT_ALLOWED


def test_an_issue_and_a_pull_request_of_one_number_are_not_taken_for_each_other() -> None:
    on = {"action": ["closed"], "number": 40}
    both = [rule("github", "pull_request", on), rule("github", "issue", {"number": 40})]
    assert fired(closed(kind="pull"), *both, authority=YES).matched == Matched(
        index=0, type="pull_request", action="closed"
    )
    assert fired(closed(), *both, authority=YES).matched == Matched(index=1, type="issue", action="closed", number=40)
    assert decided(closed(), both[0]) is Drop.NO_MATCHING_CLOSE_TRIGGER
    assert decided(closed(kind="pull"), both[1]) is Drop.NO_MATCHING_CLOSE_TRIGGER
    assert decided(closed(41), both[0]) is Drop.NO_MATCHING_CLOSE_TRIGGER
    once = rule("github", "pull_request", on | {"once": True})
    assert fired(closed(kind="pull"), once, authority=YES).matched == Matched(
        index=0, type="pull_request", action="closed", once=True
    )


def test_a_close_that_says_of_what_it_is() -> None:
    assert decided(closed(target=None), *FILE) is Drop.MISSING_ISSUE_NUMBER
    assert decided(closed(kind="pull", target=None), *FILE) is Drop.MISSING_PULL_REQUEST
    assert decided(closed(repo=None), *FILE) is Drop.MISSING_REPOSITORY
    assert decided(labeled("pi:fix", target=None), *FILE) is Drop.MISSING_ISSUE_NUMBER


# What is different about each forge.


def test_gitlab_counts_the_labels_that_an_event_added() -> None:
    label = rule("gitlab", on={"any": ["pi:fix"], "none": ["wip"]})
    assert fired(labeled("pi:fix", forge="gitlab"), label, authority=YES).matched.label == "pi:fix"
    none = labeled(forge="gitlab", labels_added=False)
    assert decided(none, label, authority=YES) is Drop.NO_LABEL_CHANGE
    assert decided(labeled("x", forge="gitlab"), label, authority=YES) is Drop.NO_ALLOWLISTED_LABEL


def test_gitlab_s_merge_requests_fire_by_added_labels_or_by_the_action_alone() -> None:
    label = rule("gitlab", "pull_request", {"action": ["open", "update"], "any": ["a"], "all": ["b"], "none": ["c"]})
    update = {"forge": "gitlab", "association": None}
    found = fired(happened("update", labels=("b", "a"), **update), label, authority=YES)
    assert found.matched == Matched(index=0, type="label", label="a")
    for labels in ((), ("a",), ("a", "b", "c")):
        given = happened("update", labels=labels, labels_added=bool(labels), **update)
        assert decided(given, label, authority=YES) is Drop.NO_MATCHING_PR_TRIGGER
    # Which labels it has is not told, so that they cannot count against it.
    plain = rule("gitlab", "pull_request", {"action": ["approved"], "none": ["c"]})
    found = fired(happened("approved", labels=("c",), **update), plain, authority=YES)
    assert found.matched == Matched(index=0, type="pull_request", action="approved")
    assert decided(happened("merge", **update), plain, authority=YES) is Drop.NO_MATCHING_PR_TRIGGER


def test_gitlab_s_close_with_labels_is_one_job_and_the_close_comes_first() -> None:
    label, close = rule("gitlab"), rule("gitlab", "issue", {"number": 40}, {"flow": "deploy"})
    both = [Occasion.CLOSE, Occasion.LABEL]
    given = closed(forge="gitlab", labels=("pi:fix",), occasions=both)
    found = fired(given, label, close, authority=YES)
    assert (found.flow, found.matched.action, found.matched.number) == ("deploy", "close", 40)
    other = closed(41, forge="gitlab", labels=("pi:fix",), occasions=both)
    assert fired(other, label, close, authority=YES).matched == Matched(index=0, type="label", label="pi:fix")
    # The first reason is told where neither takes it.
    bare = closed(41, forge="gitlab", labels=("x",), occasions=both)
    assert decided(bare, label, close, authority=YES) is Drop.CLOSE_NUMBER_NOT_MATCHED
    assert decided(other, label, close, authority=NO) is Drop.AUTHOR_NOT_ALLOWED


def test_no_other_occasion_is_tried_where_who_closed_may_not() -> None:
    given = closed(labels=("pi:fix",), occasions=[Occasion.CLOSE, Occasion.LABEL])
    assert decided(given, *FILE, authority=NO) is Drop.CLOSER_NOT_ALLOWED
    other = closed(41, labels=("pi:fix",), occasions=[Occasion.CLOSE, Occasion.LABEL])
    assert fired(other, *FILE).rule.index == 0


def test_forgejo_s_own_words_are_those_of_its_rules() -> None:
    rules_of = [
        rule("forgejo", "pull_request", {"action": ["synchronized"]}),
        rule("forgejo", "pull_request", {"action": ["label_updated"], "any": ["pi:fix"]}),
        rule("forgejo", "issue"),
    ]
    own = {"forge": "forgejo", "association": None}
    assert fired(happened("synchronized", **own), *rules_of, authority=YES).matched.action == "synchronized"
    assert decided(happened("synchronize", **own), *rules_of, authority=YES) is Drop.NO_MATCHING_PR_TRIGGER
    found = fired(happened("label_updated", labels=("x", "pi:fix"), **own), *rules_of, authority=YES)
    assert found.matched == Matched(index=1, type="pull_request", action="label_updated")
    assert fired(closed(forge="forgejo"), *rules_of, authority=YES).matched.action == "closed"


def test_azure_s_work_items_are_in_the_repository_that_their_rule_names() -> None:
    item = {"forge": "azure", "repo": None, "project": "Proj"}
    label, comment, created = (rule("azure", trigger) for trigger in ("label", "comment", "pull_request"))
    found = fired(labeled("pi:fix", **item), label, authority=YES)
    assert repository_of(found.rule, labeled("pi:fix", **item)) == "Proj/widgets"
    found = fired(commented("@pi", **item), comment, authority=YES)
    assert repository_of(found.rule, commented("@pi", **item)) == "Proj/widgets"
    # The event's own comes first; without a project there is none.
    own = happened("created", forge="azure", repo="Proj/own", project="Proj")
    assert repository_of(fired(own, created, authority=YES).rule, own) == "Proj/own"
    assert decided(labeled("pi:fix", forge="azure", repo=None), label, authority=YES) is Drop.NO_REPOSITORY
    assert decided(labeled("x", forge="azure", repo=None), label, authority=YES) is Drop.NO_ALLOWLISTED_LABEL
    assert decided(happened("created", **item), created, authority=YES) is Drop.NO_REPOSITORY
    assert decided(labeled(labels_added=False, **item), label, authority=YES) is Drop.NO_LABEL_CHANGE
    assert decided(happened("updated", forge="azure"), created, authority=YES) is Drop.NO_MATCHING_PR_TRIGGER


# What is told of every rule.


def test_every_rule_within_reach_is_judged_whoever_did_it() -> None:
    close = rule("github", "pull_request", {"action": ["closed"]})
    file = rules(
        *FILE, rule("gitlab", "issue"), rule("github", "issue", {"number": 41}), rule("github", "issue"), close
    )
    given = closed(actor=Actor(), labels=("pi:fix",), occasions=[Occasion.CLOSE, Occasion.LABEL])
    told = {(one.rule.index, one.occasion): one.found for one in judge(given, file)}
    assert told == {
        (3, Occasion.CLOSE): Matched(index=3, type="issue", action="closed", number=40, once=True),
        (5, Occasion.CLOSE): Drop.CLOSE_NUMBER_NOT_MATCHED,
        (6, Occasion.CLOSE): Matched(index=6, type="issue", action="closed", number=40),
        (7, Occasion.CLOSE): Drop.NO_MATCHING_CLOSE_TRIGGER,
        (0, Occasion.LABEL): Matched(index=0, type="label", label="pi:fix"),
    }
    assert [one.rule.index for one in judge(given, file, spent=[3])] == [5, 6, 7, 0]


@given(st.data())
def test_the_decision_is_the_first_that_is_judged_to_take_it(data: st.DataObject) -> None:
    labels = st.lists(st.sampled_from("abc"), max_size=2)
    some_label = st.lists(st.sampled_from("abc"), min_size=1, max_size=2)
    given_rules = data.draw(
        st.lists(
            st.builds(lambda some, no: rule(on={"any": some, "none": no}), some_label, labels)
            | st.builds(lambda number: rule("github", "issue", {"number": number}), st.integers(1, 3)),
            max_size=5,
        )
    )
    occasions = data.draw(st.permutations([Occasion.CLOSE, Occasion.LABEL]))
    one = closed(data.draw(st.integers(1, 3)), labels=tuple(data.draw(labels)), occasions=occasions)
    spent = data.draw(st.sets(st.integers(0, 4)))
    file = rules(*given_rules)
    taking = [judged for judged in judge(one, file, spent=spent) if isinstance(judged.found, Matched)]
    found = decide(one, file, ME, YES, spent=spent)
    if taking:
        assert isinstance(found, Fired)
        assert (found.rule, found.matched) == (taking[0].rule, taking[0].found)
    else:
        assert isinstance(found, Drop)
