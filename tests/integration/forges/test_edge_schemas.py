"""The edge says nothing that GitHub would not: every answer and every delivery against GitHub's own descriptions."""

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from pidispatch.forges.github.api import app_jwt
from tests.fakes.github import rest_activity, rest_apps
from tests.fakes.github.apps import private_key
from tests.fakes.github.calls import ROUTES, find
from tests.fakes.github.edge import Edge
from tests.fakes.github.faults import FAULTS, Fault
from tests.payloads.schemas import answer_errors, delivery_errors
from tests.support.edge_client import Told, ask

WEB = "/repos/acme/web"
MINT = "/app/installations/88/access_tokens"


@pytest.fixture
def edge(tmp_path: Path) -> Iterator[Edge]:
    """One with a repository, an issue and a pull request."""
    with Edge(tmp_path / "hub") as edge:
        edge.repository(files={"README.md": "# Sample\n", "src/main.py": "print()\n"}, permissions={"alice": "admin"})
        edge.state.repository("acme/web").ruled.add("main")
        edge.issue()
        edge.pull("mend")
        edge.install("acme/web")
        yield edge


def template(method: str, path: str) -> str:
    """The endpoint of a path, as GitHub writes it."""
    found = find(method, path)
    if found is not None:
        return found[0].path
    return re.sub(r"/installations/\d+", "/installations/{installation_id}", path)


def word() -> str:
    """What the App calls itself with."""
    return app_jwt(77, private_key(), datetime.now(UTC)).token


class Asker:
    """Asks, and holds every answer against its description."""

    def __init__(self, edge: Edge, token: str) -> None:
        self.edge = edge
        self.token = token
        self.asked: set[tuple[str, str]] = set()

    def __call__(self, method: str, path: str, status: int, body: Any = None, token: str | None = None) -> Told:
        told = ask(self.edge, method, path, token or self.token, body)
        assert told.status == status, (method, path, told)
        endpoint = template(method, path.partition("?")[0])
        assert answer_errors(method, endpoint, status, told.body) == [], (method, path)
        self.asked.add((method, endpoint))
        return told


def test_every_answer_is_as_github_describes_it(edge: Edge) -> None:
    asker = Asker(edge, edge.person("alice"))
    rest_activity.note_pushes(edge.state)
    edge.push("mend", {"more.txt": "more\n"})
    assert asker("GET", f"{WEB}/activity?ref=refs/heads/mend", 200).body
    asker("GET", "/", 200)
    asker("GET", "/user", 200)
    asker("GET", "/users/alice", 200)
    asker("GET", "/users/nobody", 404)
    asker("GET", "/rate_limit", 200)
    asker("GET", WEB, 200)
    asker("GET", f"{WEB}/collaborators/alice/permission", 200)
    asker("GET", f"{WEB}/collaborators/nobody/permission", 404)
    asker("GET", f"{WEB}/branches", 200)
    asker("GET", f"{WEB}/branches?protected=true", 200)
    asker("GET", f"{WEB}/branches/main", 200)
    asker("GET", f"{WEB}/branches/gone", 404)
    asker("GET", f"{WEB}/rules/branches/main", 200)
    asker("GET", f"{WEB}/git/ref/heads/main", 200)
    asker("GET", f"{WEB}/git/ref/heads/gone", 404)
    asker("GET", f"{WEB}/git/matching-refs/heads/m", 200)
    asker("GET", f"{WEB}/commits/main", 200)
    asker("GET", f"{WEB}/commits/gone", 422)
    asker("GET", f"{WEB}/contents/README.md", 200)
    asker("GET", f"{WEB}/contents/src", 200)
    asker("GET", f"{WEB}/contents/gone", 404)
    # Issues.
    asker("POST", f"{WEB}/issues", 201, {"title": "Another", "body": None, "labels": ["bug"]})
    asker("GET", f"{WEB}/issues?state=all", 200)
    asker("GET", f"{WEB}/issues/1", 200)
    asker("GET", f"{WEB}/issues/99", 404)
    asker("POST", f"{WEB}/issues/1/comments", 201, {"body": "Why?"})
    asker("GET", f"{WEB}/issues/1/comments", 200)
    asker("GET", f"{WEB}/issues/comments?sort=updated&direction=desc&since=2020-01-01T00:00:00Z", 200)
    asker("POST", f"{WEB}/issues/1/labels", 200, {"labels": ["pi:fix"]})
    asker("GET", f"{WEB}/issues/1/labels", 200)
    asker("DELETE", f"{WEB}/issues/1/labels/pi:fix", 200)
    asker("DELETE", f"{WEB}/issues/1/labels/pi:fix", 404)
    asker("GET", f"{WEB}/labels", 200)
    asker("PATCH", f"{WEB}/issues/1", 200, {"state": "closed"})
    asker("GET", f"{WEB}/issues/1", 200)
    asker("PATCH", f"{WEB}/issues/1", 200, {"state": "open"})
    asker("GET", f"{WEB}/issues/events", 200)
    # Pull requests.
    edge.push("other", {"other.txt": "other\n"})
    asker("POST", f"{WEB}/pulls", 201, {"title": "Other", "head": "other", "base": "main", "body": "As asked."})
    asker("POST", f"{WEB}/pulls", 422, {"title": "Other", "head": "other", "base": "main"})
    asker("GET", f"{WEB}/pulls?state=open&head=acme:other&base=main", 200)
    asker("GET", f"{WEB}/pulls/2", 200)
    asker("GET", f"{WEB}/pulls/1", 404)
    asker("PATCH", f"{WEB}/pulls/2", 200, {"title": "Mend it all"})
    for event in ("APPROVE", "REQUEST_CHANGES", "COMMENT"):
        asker("POST", f"{WEB}/pulls/2/reviews", 200, {"event": event, "body": "So it is."})
    asker("GET", f"{WEB}/pulls/2/reviews", 200)
    asker("PUT", f"{WEB}/pulls/2/merge", 200)
    asker("PUT", f"{WEB}/pulls/2/merge", 405)
    asker("GET", f"{WEB}/pulls/2", 200)
    asker("DELETE", f"{WEB}/git/refs/heads/other", 204)
    asker("DELETE", f"{WEB}/git/refs/heads/main", 422)
    # The App.
    asker("GET", "/app", 200, token=word())
    asker("GET", "/app/installations/88", 200, token=word())
    asker("GET", "/app/installations/99", 404, token=word())
    scope = {"repositories": ["web"], "permissions": {"metadata": "read"}}
    minted = asker("POST", MINT, 201, scope, token=word()).body["token"]
    asker("POST", MINT, 201, {}, token=word())
    asker("POST", MINT, 422, {"repositories": ["other"]}, token=word())
    asker("GET", "/installation/repositories", 200, token=minted)
    asker("GET", "/installation/repositories", 403)
    asker("GET", f"{WEB}/issues/1", 403, token=minted)
    asker("GET", "/app", 401, token="ghs_wrong")
    asker("GET", f"{WEB}/issues/1", 401, token="ghs_wrong")
    wanted = {(one.method, one.path) for one in ROUTES} | {("GET", rest_apps.PATHS[0]), ("GET", rest_apps.PATHS[1])}
    assert asker.asked == wanted | {("POST", rest_apps.PATHS[2])}


def test_every_delivery_is_as_github_describes_it(edge: Edge) -> None:
    # Nobody is there: what is looked at is what would be sent.
    edge.hook("http://127.0.0.1:9/")
    edge.issue()
    edge.label(1)
    edge.label(2)
    edge.state.unlabel(edge.state.repository("acme/web"), edge.state.repository("acme/web").issues[1],
                       edge.state.user("alice"), "pi:fix")  # fmt: skip
    edge.comment(1)
    edge.comment(2)
    edge.close(1)
    edge.reopen(1)
    edge.pull("third")
    edge.push("third", {"more.txt": "more\n"})
    for state in ("APPROVED", "CHANGES_REQUESTED", "COMMENTED"):
        edge.review(2, state)
    edge.close(2)
    edge.reopen(2)
    edge.state.merge(edge.state.repository("acme/web"), edge.pulls()[-1], edge.state.user("alice"))
    deliveries = edge.deliveries()
    assert {f"{one.event}.{one.action}" for one in deliveries} == {
        *(f"issues.{action}" for action in ("opened", "labeled", "unlabeled", "closed", "reopened")),
        *(f"pull_request.{action}" for action in ("opened", "labeled", "synchronize", "closed", "reopened")),
        "issue_comment.created",
        "pull_request_review.submitted",
    }
    for one in deliveries:
        assert delivery_errors(one.event, one.action, one.payload) == [], (one.event, one.action)


def test_a_drift_would_be_seen(edge: Edge) -> None:
    told = ask(edge, "GET", f"{WEB}/issues/1", edge.person("alice")).body
    endpoint = "/repos/{owner}/{repo}/issues/{issue_number}"
    assert answer_errors("GET", endpoint, 200, told | {"lables": []})
    assert answer_errors("GET", endpoint, 200, told | {"number": "1"})
    assert answer_errors("GET", endpoint, 200, {key: value for key, value in told.items() if key != "state"})
    edge.hook("http://127.0.0.1:9/")
    edge.label(1)
    [one] = edge.deliveries()
    assert delivery_errors("issues", "labeled", one.payload | {"isue": {}})
    assert delivery_errors("issues", "labeled", one.payload | {"action": "unlabeled"})


REFUSALS = [Fault.SERVER_ERROR, Fault.NOT_FOUND, Fault.BAD_CREDENTIALS, Fault.FORBIDDEN, Fault.RATE_LIMITED]


@pytest.mark.parametrize("fault", REFUSALS, ids=lambda fault: fault.name)
def test_refusals_on_demand_are_github_s_own(fault: Fault) -> None:
    reply = FAULTS[fault]
    assert answer_errors("GET", "/repos/{owner}/{repo}", reply.status, reply.body) == []
