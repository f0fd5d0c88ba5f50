"""A worker's accounts at forges."""

from collections.abc import Mapping

import pytest
from structlog.testing import capture_logs

from pidispatch.config.settings import Settings
from pidispatch.forges.registry import MODULES
from pidispatch.values.errors import ConfigError
from pidispatch.values.forge import JobKind
from pidispatch.worker.forges import Accounts
from tests.support.settings import settings_of

PAT = {"GITHUB_AUTH_SOURCE": "pat"}


def accounts(settings: Settings, environ: Mapping[str, str]) -> Accounts:
    return Accounts(settings, environ, MODULES)


def test_an_account_is_made_once_and_kept() -> None:
    made = accounts(settings_of(PAT), {"GITHUB_PAT": "ghp_marked"})
    assert made(JobKind.GITHUB) is made(JobKind.GITHUB)


def test_a_forge_that_is_not_served_is_named() -> None:
    with pytest.raises(ConfigError, match="runs no jobs of GitLab") as raised:
        accounts(settings_of({}), {})(JobKind.GITLAB)
    assert raised.value.cause == "forge-unserved"


def test_a_credential_that_cannot_work_stops_no_worker_and_is_told_again_to_its_jobs() -> None:
    made = accounts(settings_of(PAT), {})
    with capture_logs() as logs:
        made.tell_unavailable()
    [told] = logs
    assert (told["event"], told["kind"]) == ("github_auth_unavailable", "github")
    assert "GITHUB_PAT is not set" in told["reason"]
    with pytest.raises(ConfigError, match="GITHUB_PAT is not set"):
        made(JobKind.GITHUB)


@pytest.mark.parametrize(("settings", "environ"), [({}, {}), (PAT, {"GITHUB_PAT": "ghp_marked"})])
def test_nothing_is_told_of_a_forge_that_works_or_that_nobody_named(
    settings: dict[str, str], environ: dict[str, str]
) -> None:
    with capture_logs() as logs:
        accounts(settings_of(settings), environ).tell_unavailable()
    assert logs == []
