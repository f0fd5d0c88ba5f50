"""The accounts at the forges: who they are, what they may do, and the repositories that are named."""

from collections.abc import Iterator
from concurrent.futures import Future
from time import monotonic
from typing import Final

from pidispatch.cli.checks.known import Known, schedules_with_token
from pidispatch.cli.checks.row import Finding, Told, failed, passed, warned
from pidispatch.cli.checks.rules import places, some
from pidispatch.cli.checks.scene import Scene
from pidispatch.config.asked import asked
from pidispatch.config.text import printable
from pidispatch.forges.protocol import Account
from pidispatch.forges.rights import Flaw
from pidispatch.values.cause import remedy_of
from pidispatch.values.errors import ConfigError, DispatchError, RateLimited
from pidispatch.values.forge import FORGES, JobKind
from pidispatch.values.reason import Reason

#: Repositories that are looked at in one call: each of them costs questions of the hour's.
_MOST: Final = 20
_MEND: Final = "mend what the message names"
_AGAIN: Final = "check again later; jobs wait for the forge and are tried again"


def accounts(scene: Scene) -> Iterator[Finding]:
    """Who this deployment is at each forge in use, what of its credential jobs need not have, and who gets none."""
    for kind, answer in scene.accounts.items():
        title = FORGES[kind].title
        try:
            known = answer.result(scene.patience_s)
        except DispatchError as error:
            yield _unanswered(title, error)
            continue
        except TimeoutError:
            yield _silent(title, scene.patience_s)
            continue
        yield passed(f"{title}: {known.who}, id {known.identity.id}")
        yield from (warned(f"{title}: {one.found}", one.remedy) for one in known.standing.cautions)
        if kind is JobKind.GITHUB:
            yield from _schedules(scene, known.account)


def _schedules(scene: Scene, account: Account) -> Iterator[Finding]:
    """Schedules whose jobs on folders get no token, since the account makes them for repositories alone."""
    try:
        where = schedules_with_token(scene.triggers[1])
    except Told:
        return
    if not where:
        return
    try:
        account.mint(None)
    except ConfigError as error:
        yield failed(
            f"triggers {places(where)} ask for a token, and their jobs are refused: {error.message}",
            'take "github" out of these entries, or change the credential',
        )


def permissions(scene: Scene) -> Iterator[Finding]:
    """What the accounts lack for the work of a job."""
    for kind in scene.accounts:
        title, known = FORGES[kind].title, _known(scene, kind)
        yield from _lacking(title, known.standing.lacks)
        if not known.standing.lacks:
            yield passed(f"{title}: {known.standing.holds}")


def repositories(scene: Scene) -> Iterator[Finding]:
    """Whether the account can work in each repository that is named, and whether jobs may start from its branch."""
    if JobKind.GITHUB not in scene.accounts:
        return
    until = monotonic() + scene.patience_s
    known = _known(scene, JobKind.GITHUB)
    named = scene.repositories
    if not named:
        yield passed(
            "none is named; each job asks whether its default branch is protected. Look now with: pi-dispatch check "
            "--repo owner/name"
        )
        return
    looks = [(one, asked(lambda one=one: list(_repository(known, one)))) for one in named[:_MOST]]  # type: ignore[misc]
    for name, look in looks:
        yield from _answered(name, look, until, scene.patience_s)
    if len(named) > _MOST:
        yield passed(f"not looked at: {some(named[_MOST:])}; name them with --repo")


def _answered(name: str, look: Future[list[Finding]], until: float, patience_s: float) -> Iterator[Finding]:
    try:
        yield from look.result(max(0.0, until - monotonic()))
    except TimeoutError:
        yield _silent(name, patience_s)


def _repository(known: Known, repo: str) -> Iterator[Finding]:
    """The looks that a job takes, in its order."""
    try:
        standing = known.rights.repository(repo)
        yield from _lacking(repo, standing.lacks)
        yield from (warned(f"{repo}: {one.found}", one.remedy) for one in standing.cautions)
        if standing.lacks:
            return
        branch = known.account.default_branch(repo, known.account.mint(repo))
    except DispatchError as error:
        yield _unanswered(repo, error)
        return
    name = printable(branch.name)
    if branch.protected:
        yield passed(f"{repo}: {standing.holds}; its default branch {name} is protected")
    else:
        reason = Reason.UNPROTECTED_BRANCH
        yield warned(
            f"{repo}: its default branch {name} is not protected, so its jobs are refused ({reason.value})",
            reason.remedy,
        )


def _lacking(where: str, lacks: tuple[Flaw, ...]) -> Iterator[Finding]:
    return (failed(f"{where}: {one.found}", one.remedy) for one in lacks)


def _unanswered(where: str, error: DispatchError) -> Finding:
    """What is refused for good fails; what cannot be told now is said to be that."""
    if isinstance(error, ConfigError):
        return failed(f"{where}: {error.message}", remedy_of(error.cause) or _MEND)
    if isinstance(error, RateLimited):
        until = f"{error.resets:%Y-%m-%dT%H:%M:%SZ}"
        return warned(f"{where}: not known: {error.message}", f"check again after {until}; jobs wait until then too")
    return warned(f"{where}: not known: {error.message}", _AGAIN)


def _silent(where: str, patience_s: float) -> Finding:
    return warned(f"{where}: not known: no answer within {patience_s:g} s", _AGAIN)


def _known(scene: Scene, kind: JobKind) -> Known:
    """The account, for a look that stands on it."""
    try:
        return scene.accounts[kind].result(scene.patience_s)
    except (DispatchError, TimeoutError):
        raise Told from None
