"""What of a payload goes further, whatever stands in it."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pidispatch.forges.github.payload import OCCASIONS, project
from pidispatch.values.event import Drop, Event, Occasion
from pidispatch.values.job import Comment, Head, Review, Target
from tests.fakes.github import payloads

GUID = "11111111-1111-1111-1111-111111111111"


def event_of(name: str, payload: Any) -> Event:
    return project({"x-github-event": name, "x-github-delivery": GUID}, payload)


def test_an_issue_with_a_label() -> None:
    event = event_of("issues", json.loads(payloads.LABELED))
    assert event.occasions == (Occasion.LABEL,)
    assert (event.forge, event.delivery, event.event, event.action) == ("github", GUID, "issues", "labeled")
    assert (event.actor.id, event.actor.login, event.association) == (1001, "alice", None)
    assert (event.repo, event.labels) == ("acme/web", ("pi:fix",))
    assert event.target == Target(type="issue", number=7, title="Broken link", body="The footer link 404s.")
    assert (event.comment, event.review, event.repo_id) == (None, None, None)
    assert "alice" not in event.model_dump_json()
    assert "alice" not in repr(event)


def test_a_comment_counts_by_its_author() -> None:
    event = event_of("issue_comment", payloads.issue_comment("@pi fix", association="NONE"))
    assert event.occasions == (Occasion.COMMENT,)
    assert event.association == "NONE"
    assert event.comment == Comment(body="@pi fix", author_association="NONE")
    assert event.target == Target(type="issue", number=9, title="A question", body="Why?")


def test_a_comment_on_a_pull_request_is_about_it() -> None:
    event = event_of("issue_comment", payloads.issue_comment(on_pull=True))
    assert event.target == Target(type="pull_request", number=9, title="A question", body="Why?")


@pytest.mark.parametrize("action", ["labeled", "opened", "synchronize", "reopened"])
def test_a_pull_request_counts_by_its_author(action: str) -> None:
    event = event_of("pull_request", payloads.pull_request(action, association="CONTRIBUTOR", labels=["a", "b"]))
    assert event.occasions == (Occasion.PULL_REQUEST,)
    assert (event.association, event.labels) == ("CONTRIBUTOR", ("a", "b"))
    assert event.target == Target(
        type="pull_request",
        number=8,
        title="Mend the footer",
        body="As asked.",
        head=Head(ref="mend", sha="a" * 40, repo="fork/web"),
        base="main",
    )


def test_a_review_counts_by_its_reviewer() -> None:
    event = event_of("pull_request_review", payloads.pull_request_review(reviewer="MEMBER", author="NONE"))
    assert event.occasions == (Occasion.REVIEW,)
    assert (event.action, event.association) == ("submitted", "MEMBER")
    assert event.review == Review(
        id=5001, body="Please mend the test.", state="changes_requested", author_association="MEMBER"
    )
    assert event.target is not None
    assert (event.target.type, event.target.number) == ("pull_request", 8)


@pytest.mark.parametrize(
    ("name", "payload", "kind"),
    [
        ("issues", payloads.closed(40), "issue"),
        ("pull_request", payloads.pull_request("closed", number=40), "pull_request"),
    ],
)
def test_something_that_is_closed(name: str, payload: Any, kind: str) -> None:
    event = event_of(name, payload)
    assert event.occasions == (Occasion.CLOSE,)
    assert event.target is not None
    assert (event.target.type, event.target.number) == (kind, 40)


@pytest.mark.parametrize(
    ("name", "action"),
    [
        ("issues", "edited"),
        ("issues", "unlabeled"),
        ("issue_comment", "edited"),
        ("issue_comment", "deleted"),
        ("pull_request", "unlabeled"),
        ("pull_request", "review_submitted"),
        ("pull_request_review", "edited"),
        ("pull_request_review", "dismissed"),
        ("push", ""),
        ("ping", "created"),
        ("", ""),
    ],
)
def test_of_all_else_no_rule_is_told(name: str, action: str) -> None:
    event = event_of(name, {"action": action})
    assert (event.occasions, event.unhandled) == ((), Drop.UNHANDLED_EVENT)


def test_an_issue_that_is_a_pull_request_is_none_to_rules_for_issues() -> None:
    payload = payloads.issues()
    payload["issue"]["pull_request"] = {}
    assert event_of("issues", payload).target is None
    payload["issue"]["pull_request"] = None
    assert event_of("issues", payload).target is not None


@pytest.mark.parametrize("value", ["1001", 1001.0, True, 0, -1, 2**63, None, [1001], {"id": 1001}])
def test_an_id_or_a_number_that_is_none_is_missing(value: Any) -> None:
    payload = payloads.issues()
    payload["sender"]["id"] = payload["issue"]["number"] = value
    event = event_of("issues", payload)
    assert (event.actor.id, event.target) == (None, None)


def test_the_largest_number_is_kept() -> None:
    payload = payloads.issues(number=2**63 - 1, sender=2**63 - 1)
    event = event_of("issues", payload)
    assert event.target is not None
    assert (event.actor.id, event.target.number) == (2**63 - 1, 2**63 - 1)


@pytest.mark.parametrize(
    "name",
    [
        "acme",
        "acme/web/x",
        "/web",
        "acme/",
        "acme/.",
        "../web",
        "acme/web?x",
        "acme/web#1",
        "ac me/web",
        "acme/web\n",
        "acme/web\x00",
        "acme/\u202eweb",
        "acme/\ud800",
        "acme/\u00a0web",
        "a" * 101 + "/web",
        "",
        7,
        None,
        ["acme/web"],
    ],
)
def test_a_repository_that_is_not_two_clean_parts_is_none(name: Any) -> None:
    payload = payloads.pull_request()
    payload["repository"]["full_name"] = payload["pull_request"]["head"]["repo"]["full_name"] = name
    event = event_of("pull_request", payload)
    assert event.repo is None
    assert event.target is not None
    assert event.target.head is not None
    assert event.target.head.repo is None


@pytest.mark.parametrize("head", [None, {}, {"ref": "a"}, {"sha": "b"}, {"ref": 1, "sha": 2}, "x"])
def test_a_head_is_whole_or_none(head: Any) -> None:
    payload = payloads.pull_request()
    payload["pull_request"]["head"] = head
    target = event_of("pull_request", payload).target
    assert target is not None
    assert target.head is None


def test_half_a_surrogate_pair_becomes_a_character() -> None:
    payload = json.loads(
        r'{"action":"created","issue":{"number":1,"title":"\ud800","body":"a\udfffb"},'
        r'"comment":{"body":"@pi \ud83d","author_association":"\ud800"},"sender":{"id":1,"login":"\udc00"}}'
    )
    event = event_of("issue_comment", payload)
    assert event.target == Target(type="issue", number=1, title="\ufffd", body="a\ufffdb")
    assert event.comment == Comment(body="@pi \ufffd")
    assert event.actor.login == "\ufffd"
    assert event.model_dump_json()


def test_labels_that_are_no_names_are_passed_over() -> None:
    payload = payloads.issues()
    payload["issue"]["labels"] = ["x", None, {"name": 7}, {"name": "a"}, {}, {"name": "\ud800"}]
    assert event_of("issues", payload).labels == ("a", "\ufffd")
    payload["issue"]["labels"] = {"name": "a"}
    assert event_of("issues", payload).labels == ()


@pytest.mark.parametrize("word", ["a sentence of a stranger's", "x" * 101, "", 7, None, "é"])
def test_what_is_no_word_is_no_action_and_no_association(word: Any) -> None:
    event = event_of("pull_request_review", payloads.pull_request_review(word, reviewer=word, action=word))
    assert (event.action, event.association) == ("", None)
    assert event.review is not None
    assert (event.review.state, event.review.author_association) == ("", None)


def test_where_only_the_event_is_known_there_is_no_delivery() -> None:
    assert project({"x-github-event": "issues"}, {}).delivery == ""
    assert project({}, {}).event == ""


_PARTS = (
    "action",
    "issue",
    "pull_request",
    "comment",
    "review",
    "sender",
    "repository",
    "labels",
    "head",
    "base",
    "repo",
)
_FIELDS = ("number", "id", "login", "title", "body", "name", "ref", "sha", "full_name", "author_association", "state")
_KEYS = st.sampled_from((*_PARTS, *_FIELDS))
_LEAVES = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(st.characters(codec=None), max_size=8)
    | st.sampled_from(["acme/web", "created", "labeled", "MEMBER", 1, 2**70])
)
_JSON = st.recursive(
    _LEAVES,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_KEYS | st.text(max_size=3), inner),
    max_leaves=30,
)
_NAMES = st.sampled_from(sorted({name for name, _ in OCCASIONS})) | st.text(st.characters(codec=None), max_size=8)


@given(_NAMES, _JSON)
def test_whatever_is_sent_is_an_event(name: str, payload: Any) -> None:
    event = project({"x-github-event": name, "x-github-delivery": name}, payload)
    assert Event.model_validate_json(event.model_dump_json())


@given(st.sampled_from(sorted(OCCASIONS)), st.data())
def test_whatever_stands_in_a_delivery_it_is_an_event(named: tuple[str, str], data: st.DataObject) -> None:
    name, action = named
    whole = payloads.pull_request_review() | payloads.issue_comment() | {"action": action}
    for _ in range(data.draw(st.integers(1, 4))):
        place: Any = whole
        for _ in range(data.draw(st.integers(0, 3))):
            key = data.draw(st.sampled_from(sorted(place))) if isinstance(place, dict) and place else None
            if key is None or not isinstance(place[key], dict):
                break
            place = place[key]
        if isinstance(place, dict) and place:
            place[data.draw(st.sampled_from(sorted(place)))] = data.draw(_JSON)
    event = event_of(name, whole)
    assert event.delivery == GUID
    assert event.model_dump_json()


@pytest.mark.parametrize(
    ("installation", "found"), [({"id": 88}, 88), ({"id": "88"}, None), ({"id": True}, None), (88, None), (None, None)]
)
def test_which_installation_it_was_sent_for_is_read(installation: Any, found: int | None) -> None:
    payload = json.loads(payloads.LABELED) | {"installation": installation}
    assert event_of("issues", payload).installation == found
