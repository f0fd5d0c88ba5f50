"""The triggers file of a receiver, and what is said of forges that it does not hear."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import structlog
from structlog.testing import LogCapture

from pidispatch.config.settings import Settings
from pidispatch.receiver.watching import Unheard, watched_rules
from pidispatch.triggers.file import parse_triggers
from pidispatch.triggers.rules import Rules
from pidispatch.values.errors import ConfigError
from pidispatch.values.forge import JobKind
from pidispatch.values.limits import Limits
from tests.support.receiver import label


@pytest.fixture
def logs() -> Iterator[list[Any]]:
    capture = LogCapture()
    structlog.configure(processors=[capture])
    yield capture.entries
    structlog.reset_defaults()


def rules(*triggers: dict[str, Any]) -> Rules:
    return Rules(parse_triggers(json.dumps({"triggers": triggers}), Path("/t.json")))


def told(logs: list[Any]) -> list[tuple[str, int]]:
    return [(one["forge"], one["rules"]) for one in logs if one["event"] == "forge_not_served"]


def test_the_file_is_the_one_that_is_named_else_one_of_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match=r"triggers\.json: cannot be read"):
        watched_rules(Settings(), Limits()).load()
    for name, flow in (("triggers.json", "fix"), ("other.json", "tidy")):
        (tmp_path / name).write_text(json.dumps({"triggers": [label(flow=flow)]}))
    found = watched_rules(Settings(), Limits())
    assert found.path == tmp_path / "triggers.json"
    assert found.load().flows == {"fix"}
    named = Settings.model_validate({"PI_TRIGGERS_FILE": str(tmp_path / "other.json")})
    assert watched_rules(named, Limits()).load().flows == {"tidy"}


def test_forges_that_rules_are_about_and_that_are_not_heard(logs: list[Any]) -> None:
    unheard = Unheard([JobKind.GITHUB], {})
    unheard(rules(label(), label(kind="gitlab"), label(kind="gitlab"), label(kind="forgejo")))
    assert told(logs) == [("gitlab", 2), ("forgejo", 1)]


def test_forges_that_variables_are_about(logs: list[Any]) -> None:
    environ = {"GITLAB_TOKEN": "x", "FORGEJO_URL": "", "AZURE_ORG_URL": "https://dev.azure.com/x", "GITLAB_URL": "y"}
    Unheard([], environ)(rules())
    assert told(logs) == [("gitlab", 0), ("azure", 0)]


def test_it_is_told_again_when_it_changes(logs: list[Any]) -> None:
    unheard = Unheard([], {})
    for given in ([label()], [label()], [label(), label("b")], [], [label()]):
        unheard(rules(*given))
    assert told(logs) == [("github", 1), ("github", 2), ("github", 1)]
