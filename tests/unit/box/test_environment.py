"""The environment of a job: closed, never empty, and the later step wins."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pidispatch.box.environment import job_environment
from pidispatch.box.providers import KEY_VARIABLES
from pidispatch.box.spec import IMAGE_USER, JobUser
from pidispatch.values import names

OWNER = JobUser(uid=1000, gid=1000, explicit=True)


def environment(**changes: Any) -> dict[str, str]:
    given_: dict[str, Any] = {
        "container": "pi-job-gh-1",
        "provider": "anthropic",
        "model": "claude-sonnet-4-5-20250929",
        "max_turns": 30,
        "max_tokens": None,
        "user": IMAGE_USER,
        "neighbour": None,
        "forward": (),
        "environ": {},
    }
    return job_environment(**(given_ | changes))


@pytest.mark.example("ch3 E3", "of the worker's environment a job gets its provider's key and nothing else")
def test_the_environment_is_closed() -> None:
    host = {"AWS_SECRET_ACCESS_KEY": "a", "WEBHOOK_SECRET": "w", "ANTHROPIC_API_KEY": "k", "PATH": "/bin", "HOME": "/r"}
    env = environment(environ=host)

    assert env["ANTHROPIC_API_KEY"] == "k"
    assert not {"AWS_SECRET_ACCESS_KEY", "WEBHOOK_SECRET", "PATH", "HOME"} & set(env)
    assert "" not in env.values()
    assert env["PI_OFFLINE"] == "1"
    assert env["PI_JOB_ID"] == "pi-job-gh-1"


@pytest.mark.example(
    "ch3 E4", "a forwarded proxy variable that got past the settings loses to the box's own (proxy half)"
)
def test_the_boxs_own_proxy_wins() -> None:
    env = environment(
        forward=("HTTPS_PROXY", "https_proxy"),
        environ={"HTTPS_PROXY": "http://evil:1", "https_proxy": "http://evil:1"},
        neighbour="gate",
    )

    assert env["HTTPS_PROXY"] == env["HTTP_PROXY"] == env["https_proxy"] == env["http_proxy"] == "http://gate:3128"
    assert env["NO_PROXY"] == env["no_proxy"] == "localhost,127.0.0.1"
    assert env["NODE_USE_ENV_PROXY"] == "1"


def test_home_travels_with_an_explicit_user_only() -> None:
    assert "HOME" not in environment()
    assert environment(user=OWNER, forward=("HOME",), environ={"HOME": "/root"})["HOME"] == "/home/pi"


def test_every_candidate_of_the_provider_is_handed_over_and_no_other_providers() -> None:
    host = {name: name.lower() for group in KEY_VARIABLES.values() for name in group}
    env = environment(environ=host)

    assert {name for name in env if name in host} == set(KEY_VARIABLES["anthropic"])


def test_a_token_cap_is_written_only_when_there_is_one() -> None:
    assert "PI_MAX_TOKENS" not in environment()
    assert environment(max_tokens=9)["PI_MAX_TOKENS"] == "9"


def test_a_flow_is_written_only_when_there_is_one() -> None:
    assert "PI_FLOW" not in environment()
    assert "PI_FLOW" not in environment(environ={"PI_FLOW": "evil"})
    assert environment(flow="fix")["PI_FLOW"] == "fix"


@given(
    provider=st.sampled_from([*KEY_VARIABLES, "unknown"]),
    host=st.dictionaries(st.sampled_from(["A", "B", "ANTHROPIC_API_KEY", "OPENAI_API_KEY", "HTTP_PROXY"]), st.text()),
    forward=st.lists(st.sampled_from(["A", "B", "C", "HTTP_PROXY"])),
    neighbour=st.sampled_from([None, "gate"]),
    user=st.sampled_from([IMAGE_USER, OWNER]),
)
def test_nothing_enters_that_was_not_named(
    provider: str, host: dict[str, str], forward: list[str], neighbour: str | None, user: JobUser
) -> None:
    env = environment(provider=provider, environ=host, forward=forward, neighbour=neighbour, user=user)
    allowed = {*names.ALWAYS_WRITTEN, *names.SOMETIMES_WRITTEN, *names.PROXY_WRITTEN, *forward}

    assert set(env) <= allowed | set(KEY_VARIABLES.get(provider, ()))
    assert all(env.values())
