"""A part of a list, what it goes on with, and that nothing is new: through PyGithub, on a real socket."""

from typing import Any

import pytest

from pidispatch.config.clock import SystemClock
from pidispatch.forges.github.api import Api, Page, token_auth
from pidispatch.forges.github.connection import Unanswered
from tests.fakes.github.faults import Fault, Reply
from tests.integration.forges.scripted import Scripted

PATH = "/repos/acme/web/issues/events"
LINE = f"GET {PATH}"
AUTH = token_auth("t")


def listed(script: Scripted, etag: str | None = None, path: str = f"{PATH}?per_page=2", prefix: str = "") -> Page:
    return Api(script.url + prefix, SystemClock()).listed(AUTH, path, etag)


def refusal(script: Scripted, etag: str | None = None) -> Unanswered:
    with pytest.raises(Unanswered) as caught:
        listed(script, etag)
    return caught.value


def test_a_part_is_its_items_and_what_is_needed_to_go_on(script: Scripted) -> None:
    headers = {"etag": 'W/"1"', "x-poll-interval": "60", "link": f'<{script.url}{PATH}?per_page=2&page=2>; rel="next"'}
    script.replies[LINE] = Reply(200, [{"id": 1}, {"id": 2}], headers)
    assert listed(script) == Page([{"id": 1}, {"id": 2}], 'W/"1"', 60, f"{PATH}?per_page=2&page=2", 200)
    assert (script.asked[0].query, script.asked[0].token, script.asked[0].if_new) == ({"per_page": "2"}, "t", None)


def test_the_last_part_goes_on_with_nothing(script: Scripted) -> None:
    link = f'<{script.url}{PATH}?page=1>; rel="prev", <{script.url}{PATH}?page=1>; rel="first"'
    script.replies[LINE] = Reply(200, [], {"link": link, "x-poll-interval": "soon"})
    assert listed(script) == Page([], None, None, None, 200)


def test_that_nothing_is_new_is_no_fault_where_it_was_asked_for(script: Scripted) -> None:
    script.replies[LINE] = Reply(304, None, {"x-poll-interval": "90"})
    assert listed(script, 'W/"1"') == Page([], 'W/"1"', 90, None, 304)
    assert script.asked[0].if_new == 'W/"1"'
    script.replies[LINE] = Reply(304, None, {"etag": 'W/"2"'})
    assert listed(script, 'W/"1"').etag == 'W/"2"'


def test_that_nothing_is_new_is_one_where_it_was_not(script: Scripted) -> None:
    script.replies[LINE] = Reply(304, None)
    assert (refusal(script).reason, refusal(script).status) == ("lookup-redirected", 304)


@pytest.mark.parametrize(
    ("link", "following"),
    [
        ("https://ghe.example.org/api/v3/repositories/1/events?page=2", "/repositories/1/events?page=2"),
        ("http://127.0.0.1:1/api/v3/repos/a?page=2", "/repos/a?page=2"),
        ("/api/v3/repos/a?x=%2F", "/repos/a?x=%2F"),
    ],
)
def test_a_list_goes_on_at_the_same_server_whatever_host_it_names(script: Scripted, link: str, following: str) -> None:
    script.replies[f"GET /api/v3{PATH}"] = Reply(200, [], {"link": f'<{link}>; rel="next"'})
    script.replies[f"GET /api/v3{following.partition('?')[0]}"] = Reply(200, [{"id": 7}])
    page = listed(script, prefix="/api/v3")
    assert page.next == following
    assert listed(script, path=following, prefix="/api/v3").items == [{"id": 7}]


@pytest.mark.parametrize("link", ["mailto:x", "http://[x", "http://x]/y"])
def test_a_list_that_goes_on_nowhere_is_not_taken_for_whole(script: Scripted, link: str) -> None:
    script.replies[LINE] = Reply(200, [], {"link": f'<{link}>; rel="next"'})
    assert refusal(script).reason == "lookup-unreadable"


@pytest.mark.parametrize("body", [{"items": []}, [{"id": 1}, 2], "text", None, b"[{", b"[" * 200_000])
def test_what_is_no_list_of_objects_is_unreadable(script: Scripted, body: Any) -> None:
    script.replies[LINE] = Reply(200, body)
    assert refusal(script).reason == "lookup-unreadable"


def test_a_list_may_be_longer_than_an_object_and_not_without_end(script: Scripted) -> None:
    longest = b'{"id":1,"body":"' + b"\\u0001" * 65536 + b'"}'
    script.replies[LINE] = Reply(200, b"[" + b",".join([longest] * 100) + b"]")
    assert len(listed(script).items) == 100
    script.replies[LINE] = Reply(200, b"[{}" + b" " * 51_000_000 + b"]")
    assert (refusal(script).reason, refusal(script).status) == ("lookup-unreadable", 200)


def test_the_refusals_are_those_of_every_question(script: Scripted) -> None:
    for fault, reason in [
        (Fault.RATE_LIMITED, "lookup-rate-limited"),
        (Fault.NOT_FOUND, "lookup-refused"),
        (Fault.MOVED_PERMANENTLY, "lookup-redirected"),
        (Fault.SERVER_ERROR, "lookup-server-error"),
    ]:
        script.replies[LINE] = fault
        assert refusal(script, "e").reason == reason
