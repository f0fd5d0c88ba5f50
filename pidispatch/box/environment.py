"""The environment of a job, built from nothing: a name is in it because a step below put it there."""

from collections.abc import Iterable, Mapping

from pidispatch.box.providers import credential
from pidispatch.box.spec import JobUser
from pidispatch.values import names
from pidispatch.values.errors import ConfigError
from pidispatch.values.forge import FORGES, JobKind


def job_environment(
    *,
    container: str,
    provider: str,
    model: str,
    max_turns: int,
    max_tokens: int | None,
    user: JobUser,
    neighbour: str | None,
    forward: Iterable[str],
    environ: Mapping[str, str],
    stored: Mapping[str, str] | None = None,
    flow: str | None = None,
    command: str | None = None,
    forge: Mapping[str, str] | None = None,
) -> dict[str, str]:
    """The variables of one job; later steps win over earlier ones.

    `environ` is the environment of this process, of which only the provider's credential and the names in `forward`
    are looked at. `stored` is the key that pi keeps itself, used where `environ` holds none. `neighbour` is the
    container that answers as proxy, `None` for a job with an open network. `flow` is the skill that the job follows;
    `command` stands in its place where that is the whole prompt. `forge` is what `forge_environment` made.
    No variable is ever set to an empty text: absent means absent (docs/explanation/box.md).
    """
    env = {
        "PI_PROVIDER": provider,
        "PI_MODEL": model,
        "PI_MAX_TURNS": str(max_turns),
        "PI_JOB_ID": container,
        "PI_OFFLINE": "1",
    }
    if max_tokens is not None:
        env["PI_MAX_TOKENS"] = str(max_tokens)
    if command:
        env["PI_COMMAND"] = command
    elif flow:
        env["PI_FLOW"] = flow
    env |= credential(provider, environ) or dict(stored or {})
    env |= {name: environ[name] for name in forward if environ.get(name)}
    if neighbour is not None:
        env |= proxy_environment(neighbour)
    if user.explicit:
        env["HOME"] = names.BOX_HOME
    # Last, so that nothing of the steps before stands where the job's own token belongs.
    return env | dict(forge or {})


def forge_environment(kind: JobKind, token: str, more: Mapping[str, str]) -> dict[str, str]:
    """The variables in which a job of `kind` finds its forge's token.

    A job on a folder that was given one has GitHub's. `more` is what the forge's account adds, such as the host. Raises
    `ConfigError` for a kind without a forge and for an empty token: such a job would be paid for and could do nothing.
    """
    row = FORGES.get(JobKind.GITHUB if kind == JobKind.LOCAL else kind)
    if row is None:
        raise ConfigError(
            f"a job of {str(kind)!r} has no forge whose token could be handed to it; known are: {', '.join(FORGES)}",
            "forge-unknown",
        )
    if not token.strip():
        raise ConfigError(
            f"the token that {row.title} gave for this job is empty, so the agent would work there as nobody. Look at "
            "the credential of this deployment: pi-dispatch check",
            "forge-token-empty",
        )
    added = {name: value for name, value in more.items() if value}
    return added | dict.fromkeys(row.token_variables, token)


def proxy_environment(neighbour: str) -> dict[str, str]:
    """The variables that send every client's traffic to the job's one neighbour."""
    url = f"http://{neighbour}:{names.PROXY_PORT}"
    local = "localhost,127.0.0.1"
    return {
        "HTTPS_PROXY": url,
        "HTTP_PROXY": url,
        "NO_PROXY": local,
        "https_proxy": url,
        "http_proxy": url,
        "no_proxy": local,
        # Without it node's own fetch ignores the proxy and every request dies.
        "NODE_USE_ENV_PROXY": "1",
    }
