"""What a job takes over from its event and its rule."""

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from pidispatch.receiver.asking import delivery_of, jobs_of, sender_id
from pidispatch.triggers.file import parse_triggers
from pidispatch.triggers.matching import Fired
from pidispatch.triggers.rules import Rules
from pidispatch.values.event import Actor, Event, Occasion
from pidispatch.values.forge import JobKind
from pidispatch.values.job import Comment, Head, Matched, Review, Target
from tests.support.receiver import label

EVENT = Event(
    forge=JobKind.GITHUB,
    delivery="d-1",
    event="pull_request_review",
    action="submitted",
    occasions=(Occasion.REVIEW,),
    actor=Actor(id=1001, login="alice"),
    repo="acme/web",
    repo_id=5,
    target=Target(
        type="pull_request",
        number=8,
        title="t",
        body="b",
        head=Head(ref="mend", sha="a" * 40, repo="fork/web"),
        base="main",
    ),
    comment=Comment(body="c", author_association="MEMBER"),
    review=Review(id=1, body="r", state="approved"),
)


def fired(**run: Any) -> Fired:
    text = json.dumps({"triggers": [label(**run)]})
    [rule] = Rules(parse_triggers(text, Path("/t.json"))).all
    return Fired(rule, Matched(index=0, type="pull_request", action="review_submitted"), "fix")


def test_the_document_of_a_job_and_nothing_else() -> None:
    [asked] = jobs_of(EVENT, fired())
    assert asked.key == "acme/web#8:fix"
    assert json.loads(asked.job.stored()) == {
        "id": "gh-d-1",
        "kind": "github",
        "flow": "fix",
        "breaker": fired().rule.breaker,
        "repo": "acme/web",
        "target": {
            "type": "pull_request",
            "number": 8,
            "title": "t",
            "body": "b",
            "head": {"ref": "mend", "sha": "a" * 40, "repo": "fork/web"},
            "base": "main",
        },
        "trigger": {
            "event": "pull_request_review",
            "action": "submitted",
            "deliveryId": "d-1",
            "sender": {"id": 1001},
            "matched": {"type": "pull_request", "index": 0, "action": "review_submitted"},
            "comment": {"body": "c", "authorAssociation": "MEMBER"},
            "review": {"id": 1, "body": "r", "state": "approved"},
        },
    }


def test_execution_fields_stand_beside_the_trigger() -> None:
    for asked, number in zip(jobs_of(EVENT, fired(replicas=3, maxTurns=4, image="a:b")), (1, 2, 3), strict=True):
        document = json.loads(asked.job.stored())
        assert (document["id"], document["replica"], document["replicas"]) == (f"gh-d-1-r{number}", number, 3)
        assert (document["maxTurns"], document["image"]) == (4, "a:b")
        assert not {"maxTurns", "image", "replica", "replicas"} & set(document["trigger"])
        assert asked.key == f"acme/web#8:fix:r{number}"


def test_an_address_stands_in_no_job() -> None:
    assert sender_id(Actor(id="guid", alias="dana@example.com")) == "guid"
    digest = hashlib.sha256(b"dana@example.com").hexdigest()[:16]
    assert sender_id(Actor(alias="dana@example.com")) == f"azid-{digest}" == "azid-07e2f1394b0ea80e"


@pytest.mark.parametrize(
    ("changes", "target"),
    [({}, "acme/web#8"), ({"repo": None}, None), ({"target": None}, None)],
)
def test_what_the_log_of_deliveries_keeps(changes: dict[str, object], target: str | None) -> None:
    kept = delivery_of(EVENT.model_copy(update=changes), trigger=3, reason="self")
    assert (kept.id, kept.event, kept.action, kept.target) == ("d-1", "pull_request_review", "submitted", target)
    assert (kept.trigger, kept.reason) == (3, "self")


def test_an_event_of_many_words_is_kept_in_few() -> None:
    kept = delivery_of(EVENT.model_copy(update={"event": "e" * 100, "action": ""}))
    assert (kept.event, kept.action) == ("e" * 64, None)
