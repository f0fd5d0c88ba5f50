"""What a job of a forge is told of its event: every key by name, and nothing of how it is run."""

import json

from hypothesis import given
from hypothesis import strategies as st

from pidispatch.values.forge import JobKind
from pidispatch.values.job import Comment, Head, Matched, Review, Sender
from pidispatch.workspace.forge_event import forge_event
from tests.unit.workspace.forgejobs import forge_job, issue, origin, pull_request

TEXTS = st.text(st.characters(exclude_categories=["Cs"]))


def test_the_event_of_an_issue() -> None:
    text = forge_event(forge_job())
    assert text.endswith("}\n")
    assert json.loads(text) == {
        "event": "issues",
        "action": "labeled",
        "delivery": "8f2c",
        "repository": {"full_name": "acme/web"},
        "issue": {"number": 7, "title": "a title", "body": "a body"},
        "sender": {"id": 42},
        "matched": {"type": "label", "index": 3, "label": "pi:fix"},
    }


def test_the_event_of_a_review() -> None:
    target = pull_request(head=Head(ref="topic", sha="a" * 40, repo="fork/web"), base="main")
    came = origin(
        event="pull_request_review",
        action="submitted",
        matched=Matched(type="pull_request", index=0, action="review_submitted"),
        review=Review(id=5, body="no", state="changes_requested", author_association="MEMBER"),
    )
    told = json.loads(forge_event(forge_job(target=target, trigger=came)))
    assert told["pull_request"] == {
        "number": 7,
        "title": "a title",
        "body": "a body",
        "head": {"ref": "topic", "sha": "a" * 40, "repo": "fork/web"},
        "base": "main",
    }
    assert told["review"] == {"id": 5, "body": "no", "state": "changes_requested", "author_association": "MEMBER"}
    assert "issue" not in told
    assert "comment" not in told


def test_what_is_not_known_is_left_out() -> None:
    came = origin(comment=Comment(body="@pi fix"), review=Review(state="approved"), sender=Sender(id="azid-1"))
    told = json.loads(forge_event(forge_job(target=pull_request(), trigger=came, kind=JobKind.AZURE)))
    assert told["pull_request"] == {"number": 7, "title": "a title", "body": "a body"}
    assert told["comment"] == {"body": "@pi fix"}
    assert told["review"] == {"body": "", "state": "approved"}
    assert told["sender"] == {"id": "azid-1"}


def test_a_comment_says_whose_word_it_is() -> None:
    came = origin(comment=Comment(body="@pi fix", author_association="OWNER"))
    told = json.loads(forge_event(forge_job(trigger=came)))
    assert told["comment"] == {"body": "@pi fix", "author_association": "OWNER"}


def test_nothing_tells_how_the_job_is_run() -> None:
    job = forge_job(
        replica=2,
        replicas=3,
        instructions="private words",
        skills_dir="/srv/private",
        provider="anthropic",
        model="private-model",
        image="private-image",
        max_turns=77,
        oneshot="private-oneshot",
    )
    assert forge_event(job) == forge_event(forge_job())


@given(TEXTS, TEXTS, TEXTS)
def test_any_text_gives_one_line_of_json(title: str, body: str, comment: str) -> None:
    text = forge_event(forge_job(target=issue(title, body), trigger=origin(comment=Comment(body=comment))))
    assert text.count("\n") == 1
    assert text.isascii()
    told = json.loads(text)
    assert (told["issue"]["title"], told["issue"]["body"], told["comment"]["body"]) == (title, body, comment)
