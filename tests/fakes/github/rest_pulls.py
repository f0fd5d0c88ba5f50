"""REST: pull requests and their reviews. https://docs.github.com/en/rest/pulls"""

from tests.fakes.github.calls import Call, route
from tests.fakes.github.faults import Reply, message
from tests.fakes.github.rest_issues import change

_PULLS = "/repos/{owner}/{repo}/pulls"
_PULL = f"{_PULLS}/{{pull_number}}"
_NEEDS = "pull_requests"
#: What an answer calls a review that was submitted with one of these words.
STATES = {"APPROVE": "APPROVED", "REQUEST_CHANGES": "CHANGES_REQUESTED", "COMMENT": "COMMENTED"}


@route("GET", _PULLS, _NEEDS)
def pulls(call: Call) -> Reply:
    """https://docs.github.com/en/rest/pulls/pulls#list-pull-requests"""
    wanted, head, base = call.query.get("state", "open"), call.query.get("head"), call.query.get("base")
    owner = call.repository.owner.login
    rows = [
        one
        for one in reversed(call.repository.pulls)
        if wanted in (one.state, "all") and head in (None, f"{owner}:{one.head}") and base in (None, one.base)
    ]
    return call.page(rows, lambda one: call.shapes.pull(call.repository, one))


@route("POST", _PULLS, _NEEDS)
def create_pull(call: Call) -> Reply:
    """https://docs.github.com/en/rest/pulls/pulls#create-a-pull-request"""
    body = call.body
    made = call.state.pull(
        call.repository,
        call.user,
        body["title"],
        body.get("body"),
        body["head"],
        body["base"],
        body.get("draft", False),
    )
    return Reply(201, call.shapes.whole_pull(call.repository, made))


@route("GET", _PULL, _NEEDS)
def pull(call: Call) -> Reply:
    """https://docs.github.com/en/rest/pulls/pulls#get-a-pull-request"""
    if "diff" in call.accept:
        told = call.repository.git.run("diff", f"{call.pull.base}...{call.pull.sha}")
        return Reply(200, told, {"content-type": "text/plain; charset=utf-8"})
    return Reply(200, call.shapes.whole_pull(call.repository, call.pull))


@route("PATCH", _PULL, _NEEDS)
def change_pull(call: Call) -> Reply:
    """https://docs.github.com/en/rest/pulls/pulls#update-a-pull-request"""
    changed = call.pull
    change(call, changed)
    return Reply(200, call.shapes.whole_pull(call.repository, changed))


@route("PUT", f"{_PULL}/merge", "contents")
def merge(call: Call) -> Reply:
    """https://docs.github.com/en/rest/pulls/pulls#merge-a-pull-request"""
    merged = call.pull
    if merged.closed is not None:
        return message(405, "Pull Request is not mergeable")
    call.state.merge(call.repository, merged, call.user)
    return Reply(200, {"sha": merged.merge_commit, "merged": True, "message": "Pull Request successfully merged"})


@route("GET", f"{_PULL}/reviews", _NEEDS)
def reviews(call: Call) -> Reply:
    """https://docs.github.com/en/rest/pulls/reviews#list-reviews-for-a-pull-request"""
    return call.page(call.pull.reviews, lambda one: call.shapes.review(call.repository, call.pull, one))


@route("POST", f"{_PULL}/reviews", _NEEDS)
def review(call: Call) -> Reply:
    """https://docs.github.com/en/rest/pulls/reviews#create-a-review-for-a-pull-request"""
    state = STATES[call.body.get("event", "COMMENT")]
    made = call.state.review(call.repository, call.pull, call.user, state, call.body.get("body", ""))
    return Reply(200, call.shapes.review(call.repository, call.pull, made))
