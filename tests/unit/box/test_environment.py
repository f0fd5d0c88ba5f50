"""The environment of a job: closed, never empty, and the later step wins."""

from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pidispatch.box.environment import forge_environment, job_environment
from pidispatch.box.providers import KEY_VARIABLES
from pidispatch.box.spec import IMAGE_USER, JobUser
from pidispatch.values import names
from pidispatch.values.errors import ConfigError
from pidispatch.values.forge import FORGES, JobKind

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


def test_a_command_stands_in_the_place_of_a_flow() -> None:
    env = environment(command="review all", flow="fix")
    assert env["PI_COMMAND"] == "review all"
    assert "PI_FLOW" not in env
    assert "PI_COMMAND" not in environment(flow="fix")


@pytest.mark.example(
    "ch3 E4", "a token of the operator's that is forwarded, or stored as a key, loses to the minted one (mint half)"
)
@pytest.mark.parametrize("name", names.FORGE_WRITTEN)
def test_nothing_overrides_the_minted_token(name: str) -> None:
    minted = forge_environment(JobKind.GITHUB, "minted", {"GH_HOST": "ghe.example", "GH_ENTERPRISE_TOKEN": "minted"})
    env = environment(forward=(name,), environ={name: "the operator's"}, stored={name: "pi's"}, forge=minted)

    assert (
        {variable: env[variable] for variable in minted}
        == minted
        == {
            "GITHUB_TOKEN": "minted",
            "GH_TOKEN": "minted",
            "GH_HOST": "ghe.example",
            "GH_ENTERPRISE_TOKEN": "minted",
        }
    )


def test_a_job_without_a_token_has_no_variable_of_a_forge() -> None:
    host = dict.fromkeys(names.FORGE_WRITTEN, "the operator's")
    assert not {*names.FORGE_WRITTEN} & set(environment(environ=host))
    assert environment(environ=host, forge=None) == environment(environ=host, forge={})


@pytest.mark.parametrize("kind", FORGES)
def test_the_names_of_a_forge_are_its_own(kind: JobKind) -> None:
    made = forge_environment(kind, "minted", {})
    assert made == dict.fromkeys(FORGES[kind].token_variables, "minted")
    assert set(made) <= set(names.FORGE_WRITTEN)


def test_a_folder_gets_the_names_of_github() -> None:
    assert forge_environment(JobKind.LOCAL, "minted", {}) == {"GITHUB_TOKEN": "minted", "GH_TOKEN": "minted"}


def test_what_the_account_adds_is_no_token_and_never_empty() -> None:
    more = {"GH_HOST": "", "GH_ENTERPRISE_TOKEN": "minted", "GH_TOKEN": "another"}
    assert forge_environment(JobKind.GITHUB, "minted", more) == {
        "GH_ENTERPRISE_TOKEN": "minted",
        "GITHUB_TOKEN": "minted",
        "GH_TOKEN": "minted",
    }


def test_an_unknown_kind_borrows_no_names() -> None:
    with pytest.raises(ConfigError, match=r"a job of 'svn' has no forge .* known are: github, gitlab, ") as caught:
        forge_environment(cast(JobKind, "svn"), "minted", {})
    assert caught.value.cause == "forge-unknown"
    assert "minted" not in str(caught.value)


@pytest.mark.parametrize("token", ["", " ", "\n"])
def test_a_blank_token_is_none(token: str) -> None:
    with pytest.raises(ConfigError, match="the token that GitHub gave for this job is empty") as caught:
        forge_environment(JobKind.LOCAL, token, {})
    assert caught.value.cause == "forge-token-empty"


@given(
    provider=st.sampled_from([*KEY_VARIABLES, "unknown"]),
    host=st.dictionaries(st.sampled_from(["A", "B", "ANTHROPIC_API_KEY", "OPENAI_API_KEY", "HTTP_PROXY"]), st.text()),
    forward=st.lists(st.sampled_from(["A", "B", "C", "HTTP_PROXY"])),
    neighbour=st.sampled_from([None, "gate"]),
    user=st.sampled_from([IMAGE_USER, OWNER]),
    kind=st.sampled_from([None, *JobKind]),
)
def test_nothing_enters_that_was_not_named(
    provider: str,
    host: dict[str, str],
    forward: list[str],
    neighbour: str | None,
    user: JobUser,
    kind: JobKind | None,
) -> None:
    forge = forge_environment(kind, "minted", {"GH_HOST": "ghe.example"}) if kind else None
    env = environment(provider=provider, environ=host, forward=forward, neighbour=neighbour, user=user, forge=forge)
    allowed = {*names.ALWAYS_WRITTEN, *names.SOMETIMES_WRITTEN, *names.PROXY_WRITTEN, *forward}

    assert set(env) <= allowed | set(KEY_VARIABLES.get(provider, ())) | ({*names.FORGE_WRITTEN} if kind else set())
    assert all(env.values())
