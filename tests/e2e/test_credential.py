"""Where the provider's key comes from: the environment, else pi's own file, and nowhere else."""

import json

import pytest

from tests.support.program import Stage
from tests.support.repository import Repository


def write_auth(stage: Stage, entry: object) -> str:
    folder = stage.home / "agent"
    folder.mkdir()
    (folder / "auth.json").write_text(json.dumps({"anthropic": entry}))
    return str(folder)


def test_a_run_on_pis_own_key(stage: Stage, repository: Repository) -> None:
    folder = write_auth(stage, {"type": "api_key", "key": stage.key})
    ran = stage.run_job(repository.path, "edit", ANTHROPIC_API_KEY=None, PI_CODING_AGENT_DIR=folder)

    assert (ran.code, ran.document["outcome"]) == (0, "completed"), ran
    # The model's log tells requests apart by their key.
    assert stage.requests() == 3
    assert stage.key not in ran.out + ran.err


@pytest.mark.parametrize(
    ("entry", "changes", "words"),
    [
        ({"type": "oauth", "access": "x"}, {}, "is a login"),
        ({"type": "api_key", "key": "!cat key"}, {}, "no literal key"),
        ({"type": "api_key", "key": "k"}, {"PI_AUTH_FROM_PI": "0"}, "there is no credential"),
        ({"type": "api_key", "key": "k"}, {"PI_FORWARD_ENV": "MY_KEY", "MY_KEY": "k", "PI_AUTH_FROM_PI": "0"}, "no cr"),
    ],
)
def test_what_is_no_key_is_refused_before_the_first_token(
    stage: Stage, repository: Repository, entry: object, changes: dict[str, str], words: str
) -> None:
    folder = write_auth(stage, entry)
    ran = stage.run_job(repository.path, "edit", **{"ANTHROPIC_API_KEY": None, "PI_CODING_AGENT_DIR": folder} | changes)

    assert (ran.code, ran.document["reason"]) == (2, "provider-unconfigured"), ran
    assert words in ran.document["why"]
    assert ran.document["remedy"] == "export ANTHROPIC_API_KEY=..."
    assert stage.requests() == 0
