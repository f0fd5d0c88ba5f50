"""The rungs of a job that works at a forge: its token, and whether the branch it starts from is protected.

Asked for anew by every attempt and kept nowhere: what the forge said an hour ago says nothing of now
(docs/explanation/forge-jobs.md).
"""

import math
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Final, TypeVar

from pidispatch.config.log import log
from pidispatch.runs.site import Site
from pidispatch.values.change import Change
from pidispatch.values.errors import ConfigError, RateLimited
from pidispatch.values.forge import FORGES
from pidispatch.values.job import ForgeJob
from pidispatch.values.outcome import Refused
from pidispatch.values.reason import Reason
from pidispatch.values.verdict import Defer, Why
from pidispatch.workspace import skills_dir

T = TypeVar("T")
#: Seconds for which a job is put off at least and at most where its forge will not be asked more, and where that would
#: be over by this machine's clock.
_LEAST_S: Final = 1.0
_MOST_S: Final = 3600.0
_OVER_S: Final = 60.0
#: By how much the clocks of this machine and of a forge may differ in what is asked about "since the run began".
_SKEW: Final = timedelta(seconds=60)


def look_for_skills(site: Site) -> str | Refused | None:
    """Whether the folder of skills that the rule names is there."""
    job = site.job
    if not isinstance(job, ForgeJob) or job.skills_dir is None:
        return None
    return skills_dir.check(Path(job.skills_dir)) or ""


def mint(site: Site) -> str | Defer | None:
    """Ask for the job's token. Raises `ConfigError` and `InfraError`."""
    kind = site.forge
    if kind is None:
        return None
    repo = site.job.repo if isinstance(site.job, ForgeJob) else None

    def ask() -> str:
        site.account = site.accounts(kind)
        token = site.account.mint(repo)
        if not isinstance(token.value, str) or not token.value.strip():
            # Without one the agent would work as nobody, and be paid for.
            raise ConfigError(
                f"the token that {FORGES[kind].title} gave is empty. Check the credential; docs/how-to/github.md says "
                "what it needs",
                "forge-token-empty",
            )
        site.token = token
        return FORGES[kind].title

    return _or_later(site, ask)


def look_at_branch(site: Site) -> str | Refused | Defer | None:
    """Ask for the default branch as it is now; one that is not protected is refused. Raises like `mint`."""
    job = site.job
    if not isinstance(job, ForgeJob):
        return None
    token = site.token
    assert token is not None, "it was asked for on the rung before"

    def ask() -> str | Refused:
        site.branch = site.account.default_branch(job.repo, token)
        if site.branch.protected:
            return site.branch.name
        return Refused(
            reason=Reason.UNPROTECTED_BRANCH,
            detail=f"the default branch of {job.repo} is not protected, so an agent with a token could push to it",
        )

    return _or_later(site, ask)


def said_there(site: Site, change: Change) -> Change:
    """`change`, which counts as one too where the agent has only written on the item. Raises like `mint`.

    Of a run that was ended it is not asked: its end says enough, and whoever ended it waits.
    """
    job = site.job
    if change.changed or not isinstance(job, ForgeJob) or site.abort.reason is not None:
        return change
    token = site.token
    assert token is not None, "without one it would not have run"
    acted = site.account.acted(job.repo, job.target, site.begun_at - _SKEW, token)
    return change.model_copy(update={"changed": acted})


def _or_later(site: Site, ask: Callable[[], T]) -> T | Defer:
    """What `ask` returns; that the job is put off where its forge will not be asked more for now."""
    try:
        return ask()
    except RateLimited as limited:
        left = (limited.resets - site.clock.now()).total_seconds()
        delay_ms = math.ceil(1000 * (min(max(left, _LEAST_S), _MOST_S) if left > 0 else _OVER_S))
        log().info("forge_limited_deferred", jobId=site.job.id, kind=site.job.kind.value, delayMs=delay_ms)
        return Defer(why=Why.FORGE_LIMITED, delay_ms=delay_ms)
