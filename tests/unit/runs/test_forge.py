"""The rungs of a job that works at a forge, and what its run counts as."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from pidispatch.forges.protocol import Account, Branch
from pidispatch.runs import prepare
from pidispatch.runs.forge import said_there
from pidispatch.runs.ladder import LADDER, climb
from pidispatch.runs.seams import no_account
from pidispatch.values.change import Change
from pidispatch.values.errors import ConfigError, InfraError, RateLimited
from pidispatch.values.forge import JobKind
from pidispatch.values.outcome import Refused
from pidispatch.values.reason import AbortReason, Reason
from pidispatch.values.verdict import Defer, Why
from tests.support.account import SHA, SaidAccount
from tests.support.clock import FakeClock
from tests.support.oneshots import fired_by, rule
from tests.unit.runs.place import Place

STEPS = {step.name: step for step in LADDER}
NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)
NO_CHANGE = Change(changed=False, commits=0, head=None, files=(), dirty_before=False)
FORGE_STEPS = [step for step in LADDER if step.name in ("token", "branch")]


def place_of(folder: Path, account: SaidAccount | None = None, **job: Any) -> Place:
    """A place whose job is of GitHub."""
    place = Place(folder)
    place.site.job = fired_by(rule(), **job)
    place.site.clock = FakeClock(NOW)

    def accounts(kind: JobKind) -> Account:
        assert kind is JobKind.GITHUB
        return account or SaidAccount()

    place.site.accounts = accounts
    return place


def test_a_protected_branch_lets_the_job_pass_with_a_token_of_its_repository(tmp_path: Path) -> None:
    account = SaidAccount()
    place = place_of(tmp_path, account)
    assert climb(place.site, tuple(FORGE_STEPS)) is None
    assert [getattr(told, "detail", None) for told in place.told] == ["GitHub", "main"]
    assert account.asked == [("mint", "acme/web"), ("branch", "acme/web", "ghs_marked")]
    assert (place.site.branch, str(place.site.token)) == (Branch("main", SHA, True), "[token]")
    assert "ghs_marked" not in repr(place.told)


def test_an_unprotected_branch_is_refused(tmp_path: Path) -> None:
    place = place_of(tmp_path, SaidAccount(branch=Branch("main", SHA, False)))
    found = climb(place.site, tuple(FORGE_STEPS))
    assert isinstance(found, Refused)
    assert found.reason is Reason.UNPROTECTED_BRANCH
    assert found.detail == (
        "the default branch of acme/web is not protected, so an agent with a token could push to it"
    )


@pytest.mark.example("ch2 EX-49", "a blank token is a configuration refusal before clone and reserve; no container")
@pytest.mark.parametrize("blank", ["  ", "", "\t\n", None, b"x"])
def test_a_blank_token_is_refused_before_clone_and_reserve(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, blank: object
) -> None:
    reached: list[str] = []
    monkeypatch.setattr(prepare, "clone", lambda *_: reached.append("clone"))
    place = place_of(tmp_path, SaidAccount(token=blank))
    place.site.spend = lambda *_: reached.append("spend")  # type: ignore[assignment]
    at = [step.name for step in LADDER].index("token")
    with pytest.raises(ConfigError) as raised:
        climb(place.site, LADDER[at:])
    assert (raised.value.cause, reached) == ("forge-token-empty", [])
    assert "docs/how-to/github.md" in raised.value.message


def test_what_the_account_raises_ends_the_attempt(tmp_path: Path) -> None:
    for account in (SaidAccount(token=InfraError("x", "a")), SaidAccount(branch=ConfigError("x", "b"))):
        with pytest.raises((InfraError, ConfigError), match="x"):
            climb(place_of(tmp_path, account).site, tuple(FORGE_STEPS))


@pytest.mark.parametrize(
    ("left", "delay_ms"),
    [
        (timedelta(minutes=5), 300_000),
        (timedelta(days=2), 3_600_000),
        (timedelta(milliseconds=1), 1_000),
        # The clocks differ.
        (timedelta(0), 60_000),
        (timedelta(hours=-3), 60_000),
        (timedelta(microseconds=1_500_001), 1_501),
    ],
)
def test_a_used_up_rate_limit_puts_the_job_off_and_refuses_nothing(
    tmp_path: Path, left: timedelta, delay_ms: int
) -> None:
    limited = RateLimited("used up", NOW + left)
    for account in (SaidAccount(token=limited), SaidAccount(branch=limited)):
        with capture_logs() as logs:
            found = climb(place_of(tmp_path, account).site, tuple(FORGE_STEPS))
        assert found == Defer(why=Why.FORGE_LIMITED, delay_ms=delay_ms)
        assert [(one["event"], one["jobId"], one["delayMs"]) for one in logs] == [
            ("forge_limited_deferred", "gh-1", delay_ms)
        ]


def test_a_job_on_a_folder_asks_for_no_token_and_one_that_says_github_for_one_of_no_repository(tmp_path: Path) -> None:
    place, account = Place(tmp_path), SaidAccount()
    place.site.accounts = lambda _: account
    assert [step.take(place.site) for step in FORGE_STEPS] == [None, None]
    assert place.site.forge is None
    place.site.job = place.site.local.model_copy(update={"github": True})
    assert [step.take(place.site) for step in FORGE_STEPS] == ["GitHub", None]
    assert account.asked == [("mint", None)]
    assert place.site.forge is JobKind.GITHUB


def test_a_program_without_accounts_says_so() -> None:
    with pytest.raises(ConfigError, match="no account at GitHub") as raised:
        no_account(JobKind.GITHUB)
    assert raised.value.cause == "forge-unserved"


def test_the_folder_of_skills_is_looked_for_where_the_rule_names_one(tmp_path: Path) -> None:
    step = STEPS["skills"]
    assert step.take(Place(tmp_path).site) is None
    assert step.take(place_of(tmp_path).site) is None
    assert step.take(place_of(tmp_path, skills_dir=str(tmp_path)).site) == ""
    found = step.take(place_of(tmp_path, skills_dir=str(tmp_path / "none")).site)
    assert isinstance(found, Refused)
    assert found.reason is Reason.SKILLS_DIR_MISSING


def test_the_rungs_of_a_forge_come_between_the_last_free_check_and_the_clone() -> None:
    order = [step.name for step in LADDER]
    assert order[order.index("egress") :] == ["egress", "skills", "token", "branch", "workspace", "budget"]


# What the run counts as.


@pytest.mark.parametrize("acted", [True, False])
def test_a_run_that_only_spoke_has_changed_something(tmp_path: Path, acted: bool) -> None:
    account = SaidAccount(acts=acted)
    place = place_of(tmp_path, account)
    assert climb(place.site, tuple(FORGE_STEPS)) is None
    assert said_there(place.site, NO_CHANGE).changed is acted
    since = place.site.begun_at - timedelta(seconds=60)
    assert account.asked[-1] == ("acted", "acme/web", 40, since, "ghs_marked")


def test_nobody_is_asked_where_the_clone_differs_or_there_is_none(tmp_path: Path) -> None:
    account = SaidAccount()
    place = place_of(tmp_path, account)
    changed = NO_CHANGE.model_copy(update={"changed": True})
    assert said_there(place.site, changed) is changed
    assert said_there(Place(tmp_path).site, NO_CHANGE) is NO_CHANGE
    assert account.asked == []


def test_nobody_is_asked_of_a_run_that_was_ended(tmp_path: Path) -> None:
    account = SaidAccount()
    place = place_of(tmp_path, account)
    place.site.abort.set(AbortReason.SHUTDOWN)
    assert said_there(place.site, NO_CHANGE) is NO_CHANGE
    assert account.asked == []
