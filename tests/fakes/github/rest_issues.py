"""REST: issues, labels, comments and events. https://docs.github.com/en/rest/issues"""

from typing import Any

from tests.fakes.github.calls import Call, NotFound, route
from tests.fakes.github.faults import Reply
from tests.fakes.github.shapes import shown

_REPOSITORY = "/repos/{owner}/{repo}"
_ISSUE = f"{_REPOSITORY}/issues/{{issue_number}}"
#: An issue's permission does for its pull requests too.
_EITHER = ("issues", "pull_requests")


@route("GET", f"{_REPOSITORY}/issues", *_EITHER)
def issues(call: Call) -> Reply:
    """https://docs.github.com/en/rest/issues/issues#list-repository-issues"""
    wanted, labels = call.query.get("state", "open"), {*filter(None, call.query.get("labels", "").split(","))}
    rows = [one for one in call.repository.issues.values() if wanted in (one.state, "all") and labels <= {*one.labels}]
    return call.page(rows[::-1], lambda one: call.shapes.issue(call.repository, one))


@route("POST", f"{_REPOSITORY}/issues", "issues")
def create_issue(call: Call) -> Reply:
    """https://docs.github.com/en/rest/issues/issues#create-an-issue"""
    body = call.body
    made = call.state.issue(call.repository, call.user, body["title"], body.get("body"), (*body.get("labels", ()),))
    return Reply(201, call.shapes.issue(call.repository, made))


@route("GET", f"{_REPOSITORY}/issues/comments", *_EITHER)
def comments_of_all(call: Call) -> Reply:
    """https://docs.github.com/en/rest/issues/comments#list-issue-comments-for-a-repository"""
    rows = [(issue, one) for issue in call.repository.issues.values() for one in issue.comments]
    return _comments(call, sorted(rows, key=lambda row: row[1].id))


@route("GET", f"{_REPOSITORY}/issues/events", *_EITHER)
def events(call: Call) -> Reply:
    """https://docs.github.com/en/rest/issues/events#list-issue-events-for-a-repository"""
    found = call.page(call.repository.events[::-1], lambda one: call.shapes.event(call.repository, one))
    return Reply(200, found.body, {**found.headers, "x-poll-interval": str(call.state.poll_interval_s)})


@route("GET", _ISSUE, *_EITHER)
def issue(call: Call) -> Reply:
    """https://docs.github.com/en/rest/issues/issues#get-an-issue"""
    return Reply(200, call.shapes.issue(call.repository, call.issue))


@route("PATCH", _ISSUE, *_EITHER)
def change_issue(call: Call) -> Reply:
    """https://docs.github.com/en/rest/issues/issues#update-an-issue"""
    changed = call.issue
    change(call, changed)
    return Reply(200, call.shapes.issue(call.repository, changed))


def change(call: Call, changed: Any) -> None:
    """Title, text and state, where they are given."""
    changed.title = call.body.get("title", changed.title)
    changed.body = call.body.get("body", changed.body)
    if (wanted := call.body.get("state")) is not None:
        act = call.state.close if wanted == "closed" else call.state.reopen
        act(call.repository, changed, call.user)


@route("GET", f"{_ISSUE}/comments", *_EITHER)
def comments(call: Call) -> Reply:
    """https://docs.github.com/en/rest/issues/comments#list-issue-comments"""
    return _comments(call, [(call.issue, one) for one in call.issue.comments])


def _comments(call: Call, rows: list[Any]) -> Reply:
    since = call.query.get("since", "")
    if call.query.get("sort") == "updated":
        rows = sorted(rows, key=lambda row: row[1].updated, reverse=call.query.get("direction") == "desc")
    rows = [row for row in rows if (shown(row[1].updated) or "") >= since]
    return call.page(rows, lambda row: call.shapes.comment(call.repository, *row))


@route("POST", f"{_ISSUE}/comments", *_EITHER)
def comment(call: Call) -> Reply:
    """https://docs.github.com/en/rest/issues/comments#create-an-issue-comment"""
    made = call.state.comment(call.repository, call.issue, call.user, call.body["body"])
    return Reply(201, call.shapes.comment(call.repository, call.issue, made))


@route("GET", f"{_ISSUE}/labels", *_EITHER)
def labels(call: Call) -> Reply:
    """https://docs.github.com/en/rest/issues/labels#list-labels-for-an-issue"""
    return call.page([*call.issue.labels.values()], lambda one: call.shapes.label(call.repository, one))


@route("POST", f"{_ISSUE}/labels", *_EITHER)
def label(call: Call) -> Reply:
    """https://docs.github.com/en/rest/issues/labels#add-labels-to-an-issue"""
    for name in call.body if isinstance(call.body, list) else call.body["labels"]:
        call.state.label(call.repository, call.issue, call.user, name)
    return labels(call)


@route("DELETE", f"{_ISSUE}/labels/{{name}}", *_EITHER)
def unlabel(call: Call) -> Reply:
    """https://docs.github.com/en/rest/issues/labels#remove-a-label-from-an-issue"""
    try:
        call.state.unlabel(call.repository, call.issue, call.user, call.parts["name"])
    except KeyError:
        raise NotFound from None
    return labels(call)


@route("GET", f"{_REPOSITORY}/labels", *_EITHER)
def labels_of_all(call: Call) -> Reply:
    """https://docs.github.com/en/rest/issues/labels#list-labels-for-a-repository"""
    return call.page([*call.repository.labels.values()], lambda one: call.shapes.label(call.repository, one))
