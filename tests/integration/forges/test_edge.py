"""The edge GitHub keeps what GitHub keeps: who may do what, how often, and what is told of it."""

import http.client
import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import github
import pytest

from pidispatch.forges.github.api import app_jwt
from pidispatch.forges.github.payload import project
from tests.fakes.github.apps import private_key
from tests.fakes.github.edge import Edge, Fault
from tests.fakes.github.payloads import encode, sign
from tests.support.edge_client import ask

WEB = "/repos/acme/web"


class Hand:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.now = datetime(2026, 1, 1, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now


@pytest.fixture
def clock() -> Hand:
    """The edge's."""
    return Hand()


@pytest.fixture
def edge(tmp_path: Path, clock: Hand) -> Iterator[Edge]:
    """One with a private repository to which alice may write, and the App on it."""
    with Edge(tmp_path / "hub", now=clock) as edge:
        edge.repository()
        edge.install("acme/web")
        yield edge


def mint(edge: Edge, **scope: object) -> str:
    """A token of the installation."""
    jwt = app_jwt(77, private_key(), edge.state.now()).token
    told = ask(edge, "POST", "/app/installations/88/access_tokens", jwt, scope)
    assert told.status == 201, told.body
    return str(told.body["token"])


def test_pygithub_finds_its_way(edge: Edge) -> None:
    auth = github.Auth.Token(edge.person("alice"))
    hub = github.Github(
        base_url=edge.api_url, auth=auth, seconds_between_requests=None, seconds_between_writes=None, retry=None
    )
    repository = hub.get_repo("acme/web")
    assert repository.get_branch(repository.default_branch).protected
    issue = repository.create_issue("Broken", "It is.")
    issue.add_to_labels("pi:fix")
    issue.create_comment("Why?")
    assert [one.body for one in repository.get_issues_comments()] == ["Why?"]
    edge.push("mend", {"new.txt": "new\n"})
    pull = repository.create_pull("main", "mend", title="Mend", body="As asked.")
    assert (pull.number, pull.changed_files, pull.head.sha) == (2, 1, repository.get_branch("mend").commit.sha)
    assert repository.get_contents("README.md").decoded_content == b"# Sample\n"  # type: ignore[union-attr]


def test_nobody_sees_a_private_repository_but_who_may(edge: Edge) -> None:
    edge.repository("acme/open", private=False, permissions={})
    stranger = edge.person("mallory")
    assert ask(edge, "GET", WEB, None).status == 401
    assert ask(edge, "GET", WEB, stranger).status == 404
    assert ask(edge, "GET", "/repos/acme/open", stranger).status == 200
    assert ask(edge, "POST", "/repos/acme/open/issues/1/labels", stranger, ["bug"]).status == 403
    assert ask(edge, "GET", "/repos/acme/open", mint(edge)).status == 200


def test_a_token_does_what_it_was_made_for(edge: Edge) -> None:
    edge.repository("acme/other")
    edge.install("acme/web", "acme/other")
    edge.issue()
    edge.issue("acme/other")
    narrow = mint(edge, repositories=["web"], permissions={"issues": "read"})
    assert ask(edge, "GET", f"{WEB}/issues/1", narrow).status == 200
    assert ask(edge, "GET", "/repos/acme/other/issues/1", narrow).status == 404
    refused = ask(edge, "POST", f"{WEB}/issues/1/comments", narrow, {"body": "No"})
    assert (refused.status, refused.body["message"]) == (403, "Resource not accessible by integration")
    fine = edge.person("alice", {"metadata": "read"})
    refused = ask(edge, "GET", f"{WEB}/issues/1", fine)
    assert (refused.status, refused.body["message"]) == (403, "Resource not accessible by personal access token")
    names = {
        one["full_name"] for one in ask(edge, "GET", "/installation/repositories", mint(edge)).body["repositories"]
    }
    assert names == {"acme/web", "acme/other"}


def test_a_token_cannot_be_made_for_more_than_there_is(edge: Edge) -> None:
    jwt = app_jwt(77, private_key(), edge.state.now()).token
    path = "/app/installations/88/access_tokens"
    assert ask(edge, "POST", path, jwt, {"repositories": ["gone"]}).status == 422
    assert ask(edge, "POST", path, jwt, {"permissions": {"administration": "read"}}).status == 422
    assert ask(edge, "GET", path, jwt).status == 404
    assert ask(edge, "POST", path, edge.person("alice")).status == 401


def test_an_installation_s_token_ends(edge: Edge, clock: Hand) -> None:
    token = mint(edge)
    assert ask(edge, "GET", WEB, token).status == 200
    clock.now += timedelta(minutes=61)
    assert ask(edge, "GET", WEB, token).status == 401
    again, person = mint(edge), edge.person("alice")
    assert edge.expire() == 2
    assert [ask(edge, "GET", WEB, one).status for one in (again, person)] == [401, 200]


def test_the_rate_limit(edge: Edge, clock: Hand) -> None:
    token = edge.person("alice")
    edge.state.rate.limit = 2
    assert ask(edge, "GET", WEB, token).headers["x-ratelimit-remaining"] == "1"
    tag = ask(edge, "GET", f"{WEB}/issues/events", token).headers["etag"]
    refused = ask(edge, "GET", WEB, token)
    assert (refused.status, refused.headers["x-ratelimit-remaining"]) == (403, "0")
    assert ask(edge, "GET", "/rate_limit", token).body["rate"]["remaining"] == 0
    clock.now += timedelta(hours=1)
    unchanged = ask(edge, "GET", f"{WEB}/issues/events", token, headers={"If-None-Match": tag})
    assert (unchanged.status, unchanged.body, unchanged.headers["x-ratelimit-remaining"]) == (304, None, "2")
    until = edge.use_up_rate_limit(30)
    assert ask(edge, "GET", WEB, token).headers["x-ratelimit-reset"] == str(int(until.timestamp()))


def test_what_is_new_changes_the_tag(edge: Edge) -> None:
    token = edge.person("alice")
    tag = ask(edge, "GET", f"{WEB}/issues/events", token).headers["etag"]
    edge.issue()
    edge.label(1)
    told = ask(edge, "GET", f"{WEB}/issues/events", token, headers={"If-None-Match": tag})
    assert (told.status, told.headers["x-poll-interval"], told.body[0]["event"]) == (200, "60", "labeled")


def test_pages(edge: Edge) -> None:
    token = edge.person("alice")
    for number in range(5):
        edge.issue(title=str(number))
    told = ask(edge, "GET", f"{WEB}/issues?per_page=2&page=2", token)
    assert [one["title"] for one in told.body] == ["2", "1"]
    assert told.headers["link"].split(", ") == [
        f'<{edge.api_url}{WEB}/issues?per_page=2&page={page}>; rel="{name}"'
        for name, page in (("prev", 1), ("next", 3), ("last", 3), ("first", 1))
    ]
    assert "link" not in ask(edge, "GET", f"{WEB}/issues", token).headers


def test_comments_since(edge: Edge, clock: Hand) -> None:
    edge.issue()
    edge.comment(1, "first")
    clock.now += timedelta(minutes=1)
    edge.comment(1, "second")
    since = edge.state.instant().strftime("%Y-%m-%dT%H:%M:%SZ")
    told = ask(edge, "GET", f"{WEB}/issues/comments?since={since}", edge.person("alice"))
    assert [one["body"] for one in told.body] == ["second"]


def test_it_goes_wrong_when_it_is_told_to(edge: Edge) -> None:
    token = edge.person("alice")
    edge.fault("/repos/", Fault.BAD_GATEWAY, times=1)
    assert [ask(edge, "GET", WEB, token).status for _ in range(2)] == [502, 200]
    edge.fault("/acme/web.git/", Fault.NOT_FOUND)
    assert ask(edge, "GET", "/acme/web.git/info/refs?service=git-upload-pack", None).status == 404
    edge.fault("/user", Fault.HANG_UP)
    with pytest.raises(http.client.RemoteDisconnected):
        ask(edge, "GET", "/user", token)


def test_the_log_names_tokens_and_does_not_show_them(edge: Edge) -> None:
    tokens = [edge.person("alice"), mint(edge), "ghp_unheard", None]
    for token in tokens:
        ask(edge, "GET", f"{WEB}?x=1", token)
    told = [(one.token, one.status, one.boxed) for one in edge.asked if one.path == f"{WEB}?x=1"]
    assert told == [("alice", 200, False), ("installation-88-1", 200, False), ("unknown", 401, False),
                    ("nobody", 401, False)]  # fmt: skip
    assert edge.paths(boxed=True) == []
    assert edge.paths()[0] == "POST /app/installations/88/access_tokens"
    shown = repr(edge.asked) + repr(edge.state.tokens["ghs_" + edge.secrets()[1].removeprefix("ghs_")])
    assert not [one for one in edge.secrets() if one in shown]


def test_an_enterprise_server_s_paths(edge: Edge) -> None:
    token = edge.person("alice")
    assert ask(edge, "GET", f"/api/v3{WEB}", token).body["full_name"] == "acme/web"
    viewer = {"query": "query UserCurrent{viewer{login}}"}
    assert ask(edge, "POST", "/api/graphql", token, viewer).body == {"data": {"viewer": {"login": "alice"}}}


def test_what_breaks_in_the_edge_breaks_the_test(tmp_path: Path) -> None:
    edge = Edge(tmp_path / "hub").__enter__()
    edge.repository()
    assert ask(edge, "POST", f"{WEB}/issues", edge.person("alice"), {}).status == 500
    with pytest.raises(RuntimeError, match="the edge itself broke"):
        edge.__exit__(None)


class Ear:
    """Whoever gets deliveries; the first of them fails."""

    def __init__(self) -> None:
        self.heard: list[tuple[dict[str, str], bytes]] = []
        ear = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                ear.heard.append(({name.lower(): value for name, value in self.headers.items()}, body))
                self.send_response(500 if len(ear.heard) == 1 else 202)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, format: str, *args: object) -> None:
                """Nothing."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/hook"


@pytest.fixture
def ear() -> Iterator[Ear]:
    """One that listens."""
    made = Ear()
    thread = Thread(target=made.server.serve_forever, args=(0.02,))
    thread.start()
    yield made
    made.server.shutdown()
    thread.join()
    made.server.server_close()


def test_deliveries_are_signed_and_can_be_sent_again(edge: Edge, ear: Ear) -> None:
    edge.hook(ear.url, "issues", secret="s3cret")
    edge.issue()
    edge.label(1, "pi:fix")
    edge.comment(1)
    opened, labeled = edge.deliveries()
    edge.hooks.redeliver(opened)
    edge.deliveries()
    assert (opened.statuses, labeled.statuses) == ([500, 202], [202])
    (headers, body), (second, told), (again, same) = ear.heard
    assert headers["x-hub-signature-256"] == sign(body, "s3cret")
    assert (headers["x-github-event"], headers["x-github-delivery"]) == ("issues", opened.guid)
    assert second["x-github-delivery"] == labeled.guid != opened.guid
    assert (again["x-github-delivery"], same) == (opened.guid, body)
    assert headers["user-agent"].startswith("GitHub-Hookshot/")
    assert told == encode(labeled.payload)


def test_what_it_sends_is_what_is_read(edge: Edge, ear: Ear) -> None:
    edge.hook(ear.url)
    edge.pull("mend")
    edge.review(1, "APPROVED")
    edge.deliveries()
    seen = [project({"x-github-event": headers["x-github-event"], "x-github-delivery": "d"}, json.loads(body))
            for headers, body in ear.heard]  # fmt: skip
    told = [(one.event, one.action, one.repo, one.actor.login, one.association) for one in seen]
    assert told == [
        ("pull_request", "opened", "acme/web", "alice", "MEMBER"),
        ("pull_request_review", "submitted", "acme/web", "alice", "MEMBER"),
    ]


def test_nobody_at_the_hook(edge: Edge) -> None:
    edge.hook("http://127.0.0.1:9/")
    edge.issue()
    [one] = edge.deliveries()
    assert one.statuses == [0]
