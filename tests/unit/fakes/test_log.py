"""The request log, as its writer sees it and as another process does."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from tests.fakes.model import Departure, Refusal, Request, RequestLog
from tests.fakes.model.log import Entry


def request(n: int, *, key: str = "k", model: str = "m") -> Request:
    return Request(
        time=1.5,
        monotonic=2.5,
        n=n,
        method="POST",
        path="/v1/messages",
        api="anthropic",
        model=model,
        key=key,
        turn=0,
        proxied=True,
        client="10.0.0.2:4000",
        step="Say",
        status=200,
        body={"text": "line one\nline two \u2028 three"},
    )


REFUSAL = Refusal(time=1, monotonic=2, method="CONNECT", target="x:443", client="10.0.0.2:4001", why="unknown")
DEPARTURE = Departure(time=1, monotonic=2, n=1, model="m", key="k")


def test_a_log_without_a_file_is_empty(log: RequestLog) -> None:
    assert log.entries() == []


def test_entries_are_read_back_as_they_were_written(log: RequestLog) -> None:
    written: list[Entry] = [request(1), REFUSAL, DEPARTURE, request(2)]
    for entry in written:
        log.append(entry)
    assert RequestLog(log.path).entries() == written
    assert len(log.path.read_bytes().splitlines()) == 4


def test_filters(log: RequestLog) -> None:
    written: list[Entry] = [request(1, key="a"), request(2, key="b"), request(3, key="a", model="x")]
    for entry in (*written, REFUSAL, DEPARTURE):
        log.append(entry)
    assert [entry.n for entry in log.requests()] == [1, 2, 3]
    assert [entry.n for entry in log.requests(key="a")] == [1, 3]
    assert [entry.n for entry in log.requests(key="a", model="x")] == [3]
    assert log.refusals() == [REFUSAL]
    assert log.departures(key="k") == [DEPARTURE]
    assert log.departures(key="other") == []


def test_a_line_still_being_written_is_left_out(log: RequestLog) -> None:
    log.append(request(1))
    with log.path.open("a") as file:
        file.write('{"kind": "request", "ti')
    assert log.entries() == [request(1)]


def test_a_reader_goes_on_where_it_stopped(log: RequestLog) -> None:
    reader = RequestLog(log.path)
    assert reader.entries() == []
    for number in (1, 2, 3):
        log.append(request(number))
        assert [entry.n for entry in reader.requests()] == list(range(1, number + 1))
    assert reader.entries() == log.entries()


def test_waiting_for_what_is_already_there(log: RequestLog) -> None:
    log.append(request(1))
    assert log.wait_for(1, 0) == [request(1)]


@pytest.mark.parametrize("shared", [True, False], ids=["same object", "another reader of the file"])
def test_waiting_for_what_comes_later(log: RequestLog, shared: bool) -> None:
    reader = log if shared else RequestLog(log.path)
    found: list[Request] = []
    waiter = threading.Thread(target=lambda: found.extend(reader.wait_for(2, 20, key="k")))
    waiter.start()
    for entry in (request(1), request(2, key="other"), request(3)):
        log.append(entry)
    waiter.join()
    assert [entry.n for entry in found] == [1, 3]


def test_a_wait_that_ends_says_what_was_missing_and_what_was_there(tmp_path: Path) -> None:
    log = RequestLog(tmp_path / "log.jsonl")
    log.append(request(1))
    log.append(REFUSAL)
    with pytest.raises(TimeoutError) as caught:
        log.wait_for(2, 0.01, key="k")
    assert "2 requests (key k, model any)" in str(caught.value)
    assert "Request k/m" in str(caught.value)
    assert "Refusal x:443" in str(caught.value)
