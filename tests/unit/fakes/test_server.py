"""The server over real sockets: every kind of step, refusals, keep-alive, clients that leave, and a quick stop."""

from __future__ import annotations

import http.client
import json
import socket
import threading
import time
from pathlib import Path

import pytest

from tests.fakes.model import CATALOGUE, RequestLog, Server, total_usage, usage_of
from tests.fakes.model.director import SUMMARY
from tests.unit.fakes.wire_client import (
    ANTHROPIC_HEADERS,
    OPENAI_HEADERS,
    anthropic_body,
    ask,
    assemble,
    exchange,
    openai_body,
)

APIS = pytest.mark.parametrize("api", ["openai", "anthropic"])


@APIS
def test_the_edit_scenario_turn_by_turn(api: str, server: Server, log: RequestLog) -> None:
    answers = [assemble(api, [ask(server.port, api, "edit", turn).data]) for turn in range(3)]
    assert [[name for name, _ in answer.calls] for answer in answers] == [["write"], ["edit"], []]
    assert answers[2].text == "Done: hello.txt says hello pi."
    requests = log.requests(key="key-1", model="edit")
    assert [(entry.turn, entry.step, entry.status, entry.proxied) for entry in requests] == [
        (0, "Call", 200, False),
        (1, "Call", 200, False),
        (2, "Say", 200, False),
    ]


def test_the_reported_usage_sums_to_what_a_test_computes(server: Server) -> None:
    reported = [assemble("openai", [ask(server.port, "openai", "edit", turn).data]).usage for turn in range(3)]
    assert sum(usage["total_tokens"] for usage in reported if usage) == total_usage(3).total


def test_a_scenarios_own_usage(server: Server) -> None:
    reported = assemble("anthropic", [ask(server.port, "anthropic", "big", 4).data]).usage
    assert reported is not None
    assert (reported["input_tokens"], reported["output_tokens"]) == (50_000, 10_000)


@APIS
def test_streams_are_server_sent_events(api: str, server: Server) -> None:
    reply = ask(server.port, api, "say")
    assert reply.headers["content-type"] == "text/event-stream; charset=utf-8"
    assert reply.headers["transfer-encoding"] == "chunked"
    assert reply.headers["request-id" if api == "anthropic" else "x-request-id"] == "req_000001"


@APIS
@pytest.mark.parametrize(
    ("model", "status"), [("overloaded", 429), ("broken", 500), ("refused", 401), ("forbidden", 403), ("nope", 404)]
)
def test_errors_in_the_providers_own_shape(api: str, model: str, status: int, server: Server) -> None:
    reply = ask(server.port, api, model)
    assert (reply.status, reply.headers["content-type"]) == (status, "application/json")
    assert set(reply.json()) == ({"error"} if api == "openai" else {"type", "error", "request_id"})


def test_the_words_for_an_unknown_model(server: Server, log: RequestLog) -> None:
    assert ask(server.port, "openai", "nope").json()["error"]["message"].startswith("The model `nope` does not exist")
    assert ask(server.port, "anthropic", "nope").json()["error"]["message"] == "model: nope"
    assert [(entry.step, entry.status) for entry in log.requests(model="nope")] == [(None, 404)] * 2


@APIS
def test_flaky_recovers_after_two_errors_for_each_key(api: str, server: Server) -> None:
    for key in ("a", "b"):
        assert [ask(server.port, api, "flaky", key=key).status for _ in range(4)] == [503, 503, 200, 200]


@APIS
def test_a_cut_stream_ends_without_its_end(api: str, server: Server) -> None:
    with pytest.raises(http.client.IncompleteRead) as caught:
        ask(server.port, api, "cut")
    cut = assemble(api, [caught.value.partial])
    assert (cut.text, cut.finish) == ("This sentence breaks off in the", None)
    assert assemble(api, [ask(server.port, api, "cut").data]).text == "Recovered after the cut."


@APIS
def test_slow_takes_its_time(api: str, server: Server) -> None:
    start = time.monotonic()
    reply = ask(server.port, api, "brisk")
    assert time.monotonic() - start >= 10 * 0.02
    assert assemble(api, [reply.data]).text == "0123456789"


@APIS
def test_length_and_no_usage(api: str, server: Server) -> None:
    assert assemble(api, [ask(server.port, api, "length").data]).finish in ("length", "max_tokens")
    assert not any((assemble(api, [ask(server.port, api, "nousage").data]).usage or {}).values())


@APIS
def test_a_request_without_tools_gets_text(api: str, server: Server) -> None:
    assert assemble(api, [ask(server.port, api, "loop", changed={"tools": []}).data]).text == SUMMARY


def test_skillecho_says_the_last_user_message_back(server: Server) -> None:
    parts = [{"type": "text", "text": "first "}, {"type": "image"}, {"type": "text", "text": "second"}]
    messages = [{"role": "user", "content": parts}, {"role": "user", "content": [{"type": "tool_result"}]}]
    reply = ask(server.port, "anthropic", "skillecho", changed={"messages": messages})
    assert assemble("anthropic", [reply.data]).text == "I was told:\nfirst second"
    nothing = ask(server.port, "openai", "skillecho", changed={"messages": [{"role": "system", "content": "be good"}]})
    assert assemble("openai", [nothing.data]).text == "I was told:\n"


def test_usage_of_an_openai_stream_only_when_asked_for(server: Server) -> None:
    reply = ask(server.port, "openai", "say", changed={"stream_options": None})
    assert b"usage" not in reply.data


def test_message_threads_are_refused_by_name(server: Server) -> None:
    reply = ask(server.port, "anthropic", "say", changed={"thread": {"type": "create"}})
    assert reply.status == 400
    assert reply.json()["error"] == {
        "type": "invalid_request_error",
        "message": "thread: Extra inputs are not permitted",
    }


@pytest.mark.parametrize(
    ("api", "more", "message"),
    [
        ("openai", {"model": 3}, "Missing required parameter: 'model'."),
        ("openai", {"messages": []}, "Missing required parameter: 'messages'."),
        ("openai", {"stream": False}, "stream: this model only streams"),
        ("anthropic", {"model": ""}, "model: Field required"),
        ("anthropic", {"messages": "hi"}, "messages: Field required"),
        ("anthropic", {"max_tokens": None}, "max_tokens: Field required"),
    ],
)
def test_bodies_the_provider_would_refuse(api: str, more: dict[str, object], message: str, server: Server) -> None:
    reply = ask(server.port, api, "say", changed=more)
    assert reply.status == 400
    assert message in reply.json()["error"]["message"]


def post(server: Server, path: str, body: object, headers: dict[str, str], method: str = "POST") -> tuple[int, str]:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=20)
    try:
        reply = exchange(connection, path, body, headers, method)
        return reply.status, reply.data.decode()
    finally:
        connection.close()


def test_requests_without_a_key_or_a_version(server: Server, log: RequestLog) -> None:
    status, text = post(server, "/v1/messages", anthropic_body("say"), {"anthropic-version": "2023-06-01"})
    assert (status, "x-api-key header is required" in text, "authentication_error" in text) == (401, True, True)
    status, text = post(server, "/v1/chat/completions", openai_body("say"), {"Authorization": "Basic eDp5"})
    assert (status, "invalid_api_key" in text) == (401, True)
    status, text = post(server, "/v1/messages", anthropic_body("say"), {"x-api-key": "k"})
    assert (status, "anthropic-version: header is required" in text) == (400, True)
    assert [entry.key for entry in log.requests()] == ["", "", "k"]


def test_a_body_that_is_no_json_is_refused_and_logged_as_text(server: Server, log: RequestLog) -> None:
    status, text = post(server, "/v1/chat/completions", b"{not json", OPENAI_HEADERS)
    assert (status, "could not parse the JSON body" in text) == (400, True)
    assert (log.requests()[0].body, log.requests()[0].model) == ("{not json", None)


def test_the_short_openai_path_and_anthropic_with_a_bearer_token(server: Server) -> None:
    assert post(server, "/chat/completions", openai_body("say"), OPENAI_HEADERS)[0] == 200
    bearer = {"Authorization": "Bearer token", "anthropic-version": "2023-06-01"}
    assert post(server, "/v1/messages", anthropic_body("say"), bearer)[0] == 200


def test_unknown_paths(server: Server, log: RequestLog) -> None:
    assert post(server, "/v1/responses", {}, OPENAI_HEADERS)[0] == 404
    assert post(server, "/favicon.ico", b"", {}, "GET")[0] == 404
    assert [entry.path for entry in log.lookups()] == ["/v1/responses", "/favicon.ico"]
    assert log.requests() == []


def test_the_list_of_models_in_both_shapes(server: Server, log: RequestLog) -> None:
    status, text = post(server, "/v1/models", b"", OPENAI_HEADERS, "GET")
    assert (status, '"object": "list"' in text, '"id": "edit"' in text) == (200, True, True)
    status, text = post(server, "/v1/models?limit=20", b"", ANTHROPIC_HEADERS, "GET")
    assert (status, '"has_more": false' in text, '"display_name": "edit"' in text) == (200, True, True)
    assert [entry.path for entry in log.lookups()] == ["/v1/models", "/v1/models?limit=20"]


def test_health_is_not_logged(server: Server, log: RequestLog) -> None:
    assert post(server, "/healthz", b"", {}, "GET") == (200, '{"status": "ok"}')
    assert log.entries() == []


def test_one_connection_serves_many_requests(server: Server, log: RequestLog) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=20)
    statuses = [
        exchange(connection, "/v1/chat/completions", openai_body(model), OPENAI_HEADERS).status
        for model in ("say", "broken", "say")
    ]
    connection.close()
    assert statuses == [200, 500, 200]
    assert len({entry.client for entry in log.requests()}) == 1
    assert [entry.n for entry in log.requests()] == [1, 2, 3]


def test_the_log_holds_the_whole_body_and_both_clocks(server: Server, log: RequestLog) -> None:
    before, ticks = time.time(), time.monotonic()
    body = {**openai_body("say", 1), "extra": ["kept"]}
    post(server, "/v1/chat/completions", body, OPENAI_HEADERS)
    entry = log.requests()[0]
    assert entry.body == body
    assert before <= entry.time <= time.time()
    assert ticks <= entry.monotonic <= time.monotonic()
    assert (entry.method, entry.path, entry.api) == ("POST", "/v1/chat/completions", "openai")


@APIS
def test_a_hanging_request_is_logged_at_once_and_its_client_may_leave(
    api: str, server: Server, log: RequestLog
) -> None:
    with pytest.raises(TimeoutError):
        ask(server.port, api, "hang", timeout_s=0.2)
    assert [(entry.step, entry.status) for entry in log.requests(model="hang")] == [("Hang", None)]
    gone = log.wait_until(log.departures, 10, "the client's departure")
    assert [(entry.n, entry.key, entry.model) for entry in gone] == [(1, "key-1", "hang")]


def test_a_client_that_leaves_a_slow_stream(server: Server, log: RequestLog) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=20)
    connection.request("POST", "/v1/messages", body=json.dumps(anthropic_body("slow")), headers=ANTHROPIC_HEADERS)
    answer = connection.getresponse()
    assert answer.read(10)
    answer.close()
    connection.close()
    assert log.wait_until(lambda: log.departures(model="slow"), 10, "the client's departure")


def test_stop_ends_hanging_and_idle_clients_at_once_and_logs_no_departure(tmp_path: Path) -> None:
    log = RequestLog(tmp_path / "requests.jsonl")
    server = Server(CATALOGUE, log).start()
    idle = socket.create_connection(("127.0.0.1", server.port), timeout=20)
    errors: list[BaseException] = []

    def hang() -> None:
        try:
            ask(server.port, "openai", "hang")
        except (ConnectionError, http.client.HTTPException) as error:
            errors.append(error)

    client = threading.Thread(target=hang)
    client.start()
    log.wait_for(1, 10)
    start = time.monotonic()
    server.stop()
    # The answer that hangs must not hold it up.
    assert time.monotonic() - start < 10
    client.join()
    assert len(errors) == 1
    assert idle.recv(1) == b""
    idle.close()
    assert log.departures() == []


def test_turns_are_counted_from_assistant_messages_only(server: Server, log: RequestLog) -> None:
    messages: list[object] = [{"role": "user"}, {"role": "assistant"}, {"role": "tool"}, "noise", {"role": "assistant"}]
    ask(server.port, "openai", "edit", changed={"messages": messages})
    assert log.requests()[0].turn == 2
    assert usage_of(2).total == 1450
