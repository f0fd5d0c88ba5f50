"""What is no delivery, or comes at a bad moment: every status, on every path."""

import asyncio
import threading
from typing import Any

import pytest

from pidispatch.config.clock import SystemClock
from pidispatch.forges.protocol import Answer
from pidispatch.receiver import desk
from pidispatch.receiver.app import forge_at
from pidispatch.values.errors import InfraError
from pidispatch.values.event import Authority, Drop, Event
from pidispatch.values.forge import FORGES, JobKind
from tests.fakes.github import payloads
from tests.fakes.github.server import Fault
from tests.support.clock import FakeClock
from tests.support.receiver import GUID, Inbox, OtherForge, call, guid, label
from tests.support.server import OwnServer, until

LIMIT = 2_097_152
TYPE = {"content-type": "application/json"}
SIGNED = {**TYPE, "x-hub-signature-256": "sha256=00", "x-github-event": "issues", "x-github-delivery": GUID}
OTHER = {**TYPE, "x-secret": "yes"}


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/", JobKind.GITHUB),
        ("/gitlab", JobKind.GITLAB),
        ("/gitlab/", JobKind.GITLAB),
        ("/gitlab//", JobKind.GITHUB),
        ("/forgejo", JobKind.FORGEJO),
        ("/azure/", JobKind.AZURE),
        ("/github", JobKind.GITHUB),
        ("/GitLab", JobKind.GITHUB),
        ("/healthz", JobKind.GITHUB),
        ("", JobKind.GITHUB),
    ],
)
def test_a_path_is_one_forges(path: str, kind: JobKind) -> None:
    assert forge_at(path) is kind


@pytest.mark.example("ch1 E13 routes", "What is not served is not there, whatever is asked of it.")
@pytest.mark.parametrize("kind", [JobKind.GITLAB, JobKind.FORGEJO, JobKind.AZURE])
def test_e13_a_forge_that_is_not_served(inbox: Any, kind: JobKind) -> None:
    box: Inbox = inbox(label())
    told = (404, {"error": f"{kind} webhooks not configured"})
    for method in ("GET", "POST"):
        answered = box.send(FORGES[kind].route, SIGNED, [b"{}"], method)
        assert answered is not None
        assert answered.told == told
        assert answered.headers["connection"] == "close"


@pytest.mark.example("ch1 E13 gitlab only", "Where GitHub is not served, / answers 404, and another forge is heard.")
def test_e13_a_receiver_without_github(inbox: Any, logs: list[Any]) -> None:
    modules = {JobKind.GITLAB: OtherForge()}
    box: Inbox = inbox(label(kind="gitlab"), modules=modules)
    assert box.post(payloads.LABELED).told == (404, {"error": "github webhooks not configured"})
    got = box.send("/gitlab", OTHER, [b""], "GET")
    assert got is not None
    assert (got.told, got.headers["allow"]) == ((405, {"error": "method not allowed"}), "POST")
    sent = box.send("/gitlab/", OTHER, [b'{"id":"wh_1"}'])
    assert sent is not None
    assert sent.told == (202, {"status": "queued"})
    assert box.jobs() == ["gl-wh_1"]
    assert box.job("gl-wh_1").target_name == "grp/sub/app#5"


@pytest.mark.example("ch1 E13 status", "405, 415, 401, 400 and 413, each before anything of the body is read.")
@pytest.mark.parametrize(
    ("method", "sent", "told"),
    [
        ("GET", SIGNED, (405, "method not allowed")),
        ("PUT", {}, (405, "method not allowed")),
        ("POST", {}, (415, "unsupported media type")),
        ("POST", {**SIGNED, "content-type": "text/plain"}, (415, "unsupported media type")),
        ("POST", {**SIGNED, "content-type": "application/jsonx"}, (415, "unsupported media type")),
        ("POST", TYPE, (401, "missing signature")),
        ("POST", {**SIGNED, "x-github-event": ""}, (400, "missing event headers")),
        ("POST", {**SIGNED, "content-length": str(LIMIT + 1)}, (413, "payload too large")),
    ],
)
def test_e13_what_is_refused_unread(inbox: Any, method: str, sent: dict[str, str], told: tuple[int, str]) -> None:
    box: Inbox = inbox(label())
    # There is no body: one that were waited for would never come.
    answered = box.send("/", sent, [], method)
    assert answered is not None
    assert answered.told == (told[0], {"error": told[1]})
    assert answered.headers["connection"] == "close"


def test_azure_is_told_by_tokens(inbox: Any) -> None:
    box: Inbox = inbox(label(), modules={JobKind.AZURE: OtherForge(JobKind.AZURE)})
    words = []
    for method, sent in (("GET", OTHER), ("POST", {}), ("POST", {**OTHER, "content-length": str(LIMIT + 1)})):
        answered = box.send("/azure", sent, [], method)
        assert answered is not None
        words.append(answered.document["error"])
    assert words == ["method-not-allowed", "unsupported-media-type", "payload-too-large"]


def test_parameters_of_the_media_type_do_not_matter(inbox: Any) -> None:
    box: Inbox = inbox(label())
    assert box.post(payloads.LABELED, content_type="Application/JSON ; charset=utf-8").status == 202


@pytest.mark.parametrize(
    ("parts", "told"),
    [
        ([b"x" * LIMIT, b"x"], (413, "payload too large")),
        ([b"x" * (LIMIT + 1)], (413, "payload too large")),
        # It goes on, and does not come.
        ([b"x", b""], (408, "request timeout")),
    ],
)
def test_a_body_beyond_its_bounds(inbox: Any, parts: list[bytes], told: tuple[int, str]) -> None:
    box: Inbox = inbox(label(), body_s=0.05)
    answered = box.send("/", SIGNED, parts)
    assert answered is not None
    assert answered.told == (told[0], {"error": told[1]})
    assert answered.headers["connection"] == "close"


def test_one_who_has_gone_is_not_answered(inbox: Any) -> None:
    box: Inbox = inbox(label())
    assert box.send("/", SIGNED, [b"x", None]) is None


def test_a_body_of_the_largest_size_is_read(inbox: Any) -> None:
    box: Inbox = inbox(label())
    body = payloads.LABELED[:-1] + b" " * (LIMIT - len(payloads.LABELED)) + b"}"
    assert len(body) == LIMIT
    assert box.post(body).status == 202


@pytest.mark.parametrize("body", [b"", b"{", b"[" * 100_000, b'{"a":NaN}', b'{"a":' + b"9" * 5000 + b"}", b"\xff"])
def test_a_signed_body_that_is_no_json(inbox: Any, body: bytes) -> None:
    box: Inbox = inbox(label())
    assert box.post(body).told == (400, {"error": "invalid-json"})
    assert box.jobs() == []


@pytest.mark.parametrize("body", [b"null", b"[]", b"0", b'"x"', b"{}"])
def test_json_that_is_no_payload_is_dropped(inbox: Any, body: bytes, logs: list[Any]) -> None:
    box: Inbox = inbox(label())
    assert box.post(body).status == 204
    assert [one["reason"] for one in logs if one["event"] == "dropped"] == [Drop.MISSING_SENDER_ID]


@pytest.mark.parametrize("given", ["a b", "a\u00e9", "x" * 151, "../x", "a:b"])
def test_an_id_of_a_delivery_gets_into_names_so_it_is_a_plain_word(inbox: Any, given: str, logs: list[Any]) -> None:
    modules = {JobKind.GITLAB: OtherForge(), JobKind.AZURE: HeaderForge(JobKind.AZURE)}
    box: Inbox = inbox(label(kind="gitlab"), modules=modules)
    by_body = box.send("/gitlab", OTHER, [payloads.encode({"id": given})])
    by_header = box.send("/azure", {**OTHER, "x-id": given}, [b"{}"])
    assert by_body is not None
    assert by_header is not None
    assert by_body.told == by_header.told == (400, {"error": "invalid delivery id"})
    assert box.jobs() == []
    assert given not in str(logs)


class HeaderForge(OtherForge):
    """One that has the id in a header."""

    def delivery(self, headers: Any) -> str | None:
        """It."""
        found: str | None = headers.get("x-id")
        return found


def test_a_module_may_find_no_event(inbox: Any) -> None:
    box: Inbox = inbox(modules={JobKind.GITLAB: OtherForge()})
    answered = box.send("/gitlab", OTHER, [b"{}"])
    assert answered is not None
    assert answered.told == (400, {"error": "missing-delivery-id"})


def test_a_forge_that_is_asked_of_everybody(inbox: Any, logs: list[Any]) -> None:
    says = [Answer(Authority.YES), Answer(Authority.NO), Answer(Authority.UNKNOWN, "status-502")]
    asked: list[Event] = []

    def answer(event: Event) -> Answer:
        asked.append(event)
        return says[len(asked) - 1]

    box: Inbox = inbox(label(kind="gitlab"), modules={JobKind.GITLAB: OtherForge(says=answer)})
    told = []
    for number in range(3):
        answered = box.send("/gitlab", OTHER, [payloads.encode({"id": f"wh_{number}"})])
        assert answered is not None
        told.append(answered.told)
    assert told == [(202, {"status": "queued"}), (204, None), (503, {"error": "access-lookup-failed"})]
    assert [one["reason"] for one in logs if one["event"] == "dropped"] == [Drop.AUTHOR_NOT_ALLOWED]
    assert [one["reason"] for one in logs if one["event"] == "lookup_failed"] == ["status-502"]
    # Its own account is never asked about.
    own = box.send("/gitlab", OTHER, [payloads.encode({"id": "wh_9", "by": 1})])
    assert own is not None
    assert own.status == 204
    assert len(asked) == 3


def test_a_forge_that_does_not_answer_in_time(inbox: Any, logs: list[Any]) -> None:
    over = threading.Event()

    def hang(_: Event) -> Answer:
        over.wait(30)
        return Answer(Authority.YES)

    box: Inbox = inbox(label(kind="gitlab"), modules={JobKind.GITLAB: OtherForge(says=hang)}, answer_s=0.05)
    for number in range(5):
        answered = box.send("/gitlab", OTHER, [payloads.encode({"id": f"wh_{number}"})])
        assert answered is not None
        assert answered.told == (503, {"error": "access-lookup-failed"})
    over.set()
    # Two hang, two wait, and for the fifth there is no room.
    reasons = [one["reason"] for one in logs if one["event"] == "lookup_failed"]
    assert reasons == ["timed-out"] * 4 + ["busy"]
    assert box.jobs() == []


def test_a_mistake_of_ours_is_told_without_anything_of_the_payload(inbox: Any, logs: list[Any]) -> None:
    def broken(_: Any) -> Event:
        raise KeyError("the title of an issue")

    box: Inbox = inbox(modules={JobKind.GITLAB: HeaderForge(sees=broken)})
    answered = box.send("/gitlab", {**OTHER, "x-id": "wh_1"}, [b"{}"])
    assert answered is not None
    assert answered.told == (500, {"error": "internal error"})
    [told] = [one for one in logs if one["event"] == "verify_handler_error"]
    assert (told["forge"], told["delivery"], told["cause"]) == ("gitlab", "wh_1", "KeyError")
    assert "title" not in str(logs)


def test_a_mistake_in_handing_in_is_told_too(inbox: Any, logs: list[Any]) -> None:
    def odd(_: Any) -> Event:
        # Half of a pair of surrogates: no such text can be stored.
        event = seen("wh_1")
        assert event.target is not None
        return event.model_copy(update={"target": event.target.model_copy(update={"title": "\ud800"})})

    box: Inbox = inbox(label(kind="gitlab"), modules={JobKind.GITLAB: OtherForge(sees=odd)})
    answered = box.send("/gitlab", OTHER, [b"{}"])
    assert answered is not None
    assert answered.told == (500, {"error": "internal error"})
    assert [one["event"] for one in logs if "error" in one["event"]] == ["verify_handler_error"]


def seen(delivery: str) -> Event:
    """What `OtherForge` makes of a payload."""
    event = OtherForge().event({}, {"id": delivery})
    assert isinstance(event, Event)
    return event


def test_what_cannot_be_handed_in_takes_nothing_else_along(inbox: Any, logs: list[Any]) -> None:
    """Also where it waited for the store together with others."""

    def odd(payload: Any) -> Event:
        event = seen(payload["id"])
        assert event.target is not None
        number, title = payload["number"], "\ud800" if payload["number"] == 2 else "t"
        return event.model_copy(update={"target": event.target.model_copy(update={"number": number, "title": title})})

    modules = {JobKind.GITLAB: OtherForge(sees=odd)}
    box: Inbox = inbox(label(kind="gitlab"), modules=modules, threads=1, gate=threading.Event())

    async def send(number: int) -> int:
        body = payloads.encode({"id": f"wh_{number}", "number": number})
        answered = await call(box.app, "POST", "/gitlab", OTHER, [body])
        assert answered is not None
        return answered.status

    async def together() -> list[int]:
        # The one thread waits, with the ticket of this one.
        first = await send(1)
        rest = [asyncio.create_task(send(number)) for number in (2, 3)]
        # Each comes as far as it does without an answer.
        await asyncio.sleep(0)
        box.gate.set()
        return [first, *await asyncio.gather(*rest)]

    assert asyncio.run(together()) == [202, 500, 202]
    assert box.jobs() == ["gl-wh_1", "gl-wh_3"]
    box.desk.close(5)
    assert [one.job_id for one in box.published] == ["gl-wh_1", "gl-wh_3"]
    assert [one["event"] for one in logs if "error" in one["event"]] == ["verify_handler_error"]


def test_a_wrong_secret_is_told_once_a_minute(inbox: Any, logs: list[Any]) -> None:
    clock = FakeClock(SystemClock().now())
    box: Inbox = inbox(label(), clock=clock)

    def forged(delivery: str) -> None:
        assert box.post(payloads.LABELED, delivery=delivery, x_hub_signature_256="sha256=1").status == 401

    forged(guid("1"))
    forged(guid("2"))
    clock.seconds += 61
    forged(guid("3"))
    box.post(b"{", delivery=guid("4"))
    told = [(one["error"], one["delivery"]) for one in logs if one["event"] == "delivery_refused"]
    assert told == [
        ("invalid signature", guid("1")),
        ("invalid signature", guid("3")),
        ("invalid-json", guid("4")),
    ]


@pytest.mark.example("ch1 E13 store", "A store that is away is answered 503, and the forge may send it again.")
def test_e13_a_store_that_is_away(inbox: Any, logs: list[Any], server: OwnServer) -> None:
    box: Inbox = inbox(label())
    server.stop()
    try:
        assert box.post(payloads.LABELED).told == (503, {"error": "enqueue-failed"})
        box.desk.close(10)
        [told] = [one for one in logs if one["event"] == "enqueue_failed"]
        assert (told["delivery"], told["cause"]) == (GUID, "store-unreachable")
        # One that is ours is started again for the next delivery.
        assert box.started_again == 1
    finally:
        server.start()
    back: Inbox = inbox(label())
    assert back.jobs() == []
    assert back.post(payloads.LABELED).status == 202


def test_a_server_that_cannot_be_started_again_is_told(inbox: Any, logs: list[Any], server: OwnServer) -> None:
    box: Inbox = inbox(label(), unstarted=InfraError("no", "server-start"))
    server.stop()
    try:
        assert box.post(payloads.LABELED).status == 503
        box.desk.close(10)
    finally:
        server.start()
    assert [one["cause"] for one in logs if one["event"] == "server_unavailable"] == ["server-start"]


def test_what_is_under_way_at_the_end_is_not_waited_for_without_bound(
    inbox: Any, logs: list[Any], server: OwnServer
) -> None:
    box: Inbox = inbox(label(), answer_s=0.05)
    server.freeze()
    try:
        assert box.post(payloads.LABELED).status == 503
        box.desk.close(0.05)
    finally:
        server.thaw()
    assert [one["event"] for one in logs if one["event"] == "hand_in_unfinished"] == ["hand_in_unfinished"]


def test_a_forge_that_nothing_is_about_is_left_alone(inbox: Any, logs: list[Any]) -> None:
    modules = {JobKind.GITLAB: OtherForge(chosen=False), JobKind.FORGEJO: OtherForge(JobKind.FORGEJO, chosen=False)}
    box: Inbox = inbox(label(kind="gitlab"), modules=modules)
    assert [one["forge"] for one in logs if one["event"] == "self_identity"] == ["gitlab"]
    sent = box.send("/forgejo", OTHER, [b"{}"])
    assert sent is not None
    assert sent.status == 404


def test_a_store_that_hangs_is_given_up_in_time(inbox: Any, logs: list[Any], server: OwnServer) -> None:
    box: Inbox = inbox(label(), answer_s=0.05)
    server.freeze()
    try:
        answers = [box.post(payloads.LABELED, delivery=guid(str(digit))).status for digit in range(1, 9)]
    finally:
        server.thaw()
    assert answers == [503] * 8
    assert {one["cause"] for one in logs if one["event"] == "enqueue_failed"} == {"timed-out"}
    # What nobody waits for any more is not handed in: four were under way, one a thread.
    box.desk.close(10)
    assert len(box.jobs()) <= 4


def test_a_ticket_that_cannot_be_published_is_no_failure(inbox: Any, logs: list[Any]) -> None:
    box: Inbox = inbox(label(), unpublished=InfraError("no", "ticket-unpublished"))
    assert box.post(payloads.LABELED).status == 202
    box.desk.close(5)
    [told] = [one for one in logs if one["event"] == "ticket_unpublished"]
    assert (told["jobIds"], told["cause"]) == ([f"gh-{GUID}"], "ticket-unpublished")
    assert box.jobs() == [f"gh-{GUID}"]


def test_nothing_hangs_on_the_log_of_deliveries(inbox: Any, logs: list[Any], server: OwnServer) -> None:
    box: Inbox = inbox(label())
    server.stop()
    try:
        assert box.post(payloads.issues(labels=["other"])).status == 204
        box.desk.close(10)
    finally:
        server.start()
    assert [one["event"] for one in logs if "unlogged" in one["event"]] == ["delivery_unlogged"]


def test_what_the_log_of_deliveries_misses_is_told_once(
    inbox: Any, logs: list[Any], server: OwnServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(desk, "_NOTES", 1)
    box: Inbox = inbox(label())
    server.freeze()
    try:
        for number in range(4):
            assert box.post(payloads.issues(labels=["other"]), delivery=f"none-{number}").status == 204
            if number == 0:
                until(lambda: box.desk._notes._queue.empty(), "the first to be under way")
        # One is under way and one waits.
        assert [one["cause"] for one in logs if one["event"] == "delivery_unlogged"] == ["busy"]
    finally:
        server.thaw()
    until(lambda: len(box.store.deliveries(JobKind.GITHUB, 9)) == 2, "the two that had room")
    server.stop()
    try:
        for number in range(2):
            box.post(payloads.issues(labels=["other"]), delivery=f"away-{number}")
            until(lambda: box.desk._notes._queue.empty(), "the note to be taken")
        box.desk.close(10)
    finally:
        server.start()
    told = [one["cause"] for one in logs if one["event"] == "delivery_unlogged"]
    assert told == ["busy", "store-unreachable"]


def test_a_row_that_cannot_be_read_keeps_no_other_job_from_its_ticket(inbox: Any, logs: list[Any]) -> None:
    box: Inbox = inbox(label(flow="fix"), threads=1)
    box.post(payloads.LABELED)
    box.client.hdel(f"pi:job:gh-{GUID}", "gen")
    box.published.clear()
    assert box.post(payloads.LABELED).status == 202
    assert box.post(payloads.issues(number=8), delivery=guid("2")).status == 202
    box.desk.close(5)
    assert [ticket.job_id for ticket in box.published] == [f"gh-{guid('2')}"]
    [told] = [one for one in logs if one["event"] == "ticket_unpublished"]
    assert (told["jobIds"], told["cause"]) == ([f"gh-{GUID}"], "row-unreadable")


def test_a_desk_without_room_says_so(inbox: Any, server: OwnServer, logs: list[Any]) -> None:
    box: Inbox = inbox(label(), answer_s=0.05, waiting=1)
    server.freeze()
    try:
        for digit in range(1, 7):
            assert box.post(payloads.LABELED, delivery=guid(str(digit))).status == 503
    finally:
        server.thaw()
    causes = [one["cause"] for one in logs if one["event"] == "enqueue_failed"]
    # Four are under way, and one waits.
    assert causes == ["timed-out"] * 5 + ["busy"]


def test_the_counters_have_closed_labels(inbox: Any) -> None:
    box: Inbox = inbox(label())
    box.post(payloads.LABELED)
    box.post(payloads.LABELED)
    box.post(payloads.issues(labels=["x"]), delivery=guid("2"))
    for number in range(5):
        box.post(payloads.issues(), f"made-up-{number}", guid("3"))
        box.post(payloads.LABELED, delivery=guid("4"), x_hub_signature_256=f"sha256={number}")
    shown = box.measures.shown(rules=1, faulty=False).decode()
    counted = sorted(line for line in shown.splitlines() if line.startswith("pi_dispatch_receiver_requests_total"))
    head = 'pi_dispatch_receiver_requests_total{event="'
    assert counted == [
        f'{head}issues",forge="github",reason="",verdict="duplicate"}} 1.0',
        f'{head}issues",forge="github",reason="",verdict="queued"}} 1.0',
        f'{head}issues",forge="github",reason="no-allowlisted-label",verdict="dropped"}} 1.0',
        f'{head}other",forge="github",reason="401",verdict="refused"}} 5.0',
        f'{head}other",forge="github",reason="unhandled-event",verdict="dropped"}} 5.0',
    ]
    assert 'pi_dispatch_receiver_seconds_count{forge="github"} 13.0' in shown


def test_faults_of_the_look_up_are_the_forges(inbox: Any, github: Any) -> None:
    """Whatever GitHub says that is no word of yes or no, nothing is decided by it."""
    rule = {"on": {"type": "issue", "action": ["closed"]}, "run": {"kind": "github", "flow": "tidy"}}
    box: Inbox = inbox(rule)
    for digit, fault in enumerate((Fault.BAD_GATEWAY, Fault.RATE_LIMITED, Fault.FOUND, Fault.GARBAGE), 1):
        github.faults["/repos/"] = fault
        assert box.post(payloads.closed(), delivery=guid(str(digit))).status == 503
    assert box.jobs() == []
