"""The ladder: every check of an attempt before its container, in the order in which they are made.

Free and certain checks first, and of these the ones that shut out most jobs; what costs time later. Nothing of it
spends a token: only the container can, and it comes after the last rung (docs/explanation/ladder.md).
"""

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pidispatch.box.admission import refuse_image
from pidispatch.box.authfile import StoredKey, key_beside
from pidispatch.box.overlay import check_overlay
from pidispatch.box.providers import KEY_VARIABLES, credential
from pidispatch.box.run import Neighbour
from pidispatch.box.user import decide_user, refuse_mapping
from pidispatch.config.settings import Settings
from pidispatch.gates.folder import scope_busy
from pidispatch.runs.forge import look_at_branch, look_for_skills, mint
from pidispatch.runs.note import unsettled_run
from pidispatch.runs.oneshot import refuse_if_spent
from pidispatch.runs.prepare import prepare
from pidispatch.runs.site import Site
from pidispatch.values import names
from pidispatch.values.errors import ConfigError, InfraError
from pidispatch.values.job import ForgeJob
from pidispatch.values.outcome import Refused
from pidispatch.values.progress import CheckPassed
from pidispatch.values.reason import Reason
from pidispatch.values.verdict import Defer
from pidispatch.workspace.folder import Folder, open_folder
from pidispatch.workspace.locks import hold_folder, overlap
from pidispatch.workspace.shape import check_shape

#: Our own folders as they were found last: device, inode, and where they lie. Each is one of the settings.
_resolved_before: Final[dict[Path, tuple[int, int, Path]]] = {}


@dataclass(frozen=True)
class Step:
    """One rung. `take` sets what it establishes on the site.

    It returns what may be shown of it (`None`: it did not apply), the refusal, or that the job has to come back later;
    it raises `ConfigError` or `InfraError`.
    """

    name: str
    take: Callable[[Site], str | Refused | Defer | None]


def climb(site: Site, ladder: tuple[Step, ...]) -> Refused | Defer | None:
    """Take every step in order, telling each that is passed; the first that turns it away ends it, as an abort does."""
    for step in ladder:
        if site.abort.reason is not None:
            return None
        found = step.take(site)
        if isinstance(found, Refused | Defer):
            return found
        if found is not None:
            site.progress(CheckPassed(name=step.name, detail=found))
    return None


def _records(site: Site) -> str:
    site.records.reserve(site.job.id)
    return ""


def _folder(site: Site) -> str | Defer | None:
    if isinstance(site.job, ForgeJob):
        # It works in a clone, which is made last of all.
        return None
    folder = open_folder(site.local.folder)
    check_shape(folder)
    _refuse_own(site.settings, folder)
    try:
        lock = hold_folder(site.settings.state_dir, folder.path)
    except InfraError as error:
        if error.cause != "folder-busy":
            raise
        # Another program of this account works there. That says nothing of this job.
        return scope_busy(site.job, site.limits)
    site.cleanup.callback(lock.release)
    if (note := unsettled_run(site.settings.jobs_dir, folder.path)) is not None:
        raise InfraError(
            f"the run {note.job.id} in {folder.path.name!r} was broken off and is not settled: its container may still "
            "run, and what it changed in .git is not put back. A worker settles it when it starts, and its log says "
            "why it could not. Mend that, then start the worker anew",
            "unsettled",
        )
    site.folder = folder
    return ""


def _refuse_own(settings: Settings, folder: Folder) -> None:
    """Raise `ConfigError` for a folder through which an agent would reach what steers or records its own run."""
    own = {
        "PI_JOBS_DIR": settings.jobs_dir,
        "PI_STATE_DIR": settings.state_dir,
        "PI_LOGS_DIR": settings.logs_dir,
        "PI_EGRESS_DIR": settings.egress_dir,
        "PI_CODING_AGENT_DIR": settings.agent_dir,
        "PI_GLOBAL_PI_DIR": settings.global_pi_dir,
    }
    for variable, path in own.items():
        if path is not None and overlap(_resolved(path), folder.path):
            raise ConfigError(
                f"{folder.path.name!r} and {variable}={path} lie in one another, so the agent could change what steers "
                f"and records its own run. Name another place with {variable}, or work in a folder beside it",
                "folder-overlap",
            )


def _resolved(path: Path) -> Path:
    """`path` with its links resolved; looked at anew where another folder lies there than before."""
    try:
        facts = os.stat(path)
    except OSError:
        return Path(os.path.realpath(path))
    before = _resolved_before.get(path)
    if before is not None and before[:2] == (facts.st_dev, facts.st_ino):
        return before[2]
    resolved = Path(os.path.realpath(path))
    _resolved_before[path] = (facts.st_dev, facts.st_ino, resolved)
    return resolved


def _overlay(site: Site) -> str | None:
    if site.settings.global_pi_dir is None:
        return None
    check_overlay(site.settings.global_pi_dir)
    return ""


def _engine(site: Site) -> str | Refused:
    site.engine = site.connect()
    site.engine_facts = site.engine.facts()
    return refuse_mapping(site.host) or ""


def _image(site: Site) -> str | Refused:
    reference = site.effective.image
    found = site.engine.image(reference)
    if isinstance(found, Refused):
        return found
    site.image = found
    return refuse_image(reference, found, site.job) or reference


def _user(site: Site) -> str | Refused:
    user = decide_user(site.host, any_uid=names.CAPABILITY_ANY_UID in site.image.capabilities)
    if isinstance(user, Refused):
        return user
    site.user = user
    return f"{user.uid}:{user.gid}"


def _credential(site: Site) -> str | Refused:
    provider = site.effective.provider
    stored = StoredKey()
    if not credential(provider, site.environ):
        stored = key_beside(provider, site.settings, site.environ)
        if not stored.variables:
            return _no_credential(provider, stored.refused)
    site.stored = stored.variables
    return provider + (" (pi's own key)" if stored.variables else "")


def _no_credential(provider: str, refused: str | None) -> Refused:
    variables = KEY_VARIABLES.get(provider)
    beside = f"; the entry in pi's auth.json {refused}" if refused else ""
    return Refused(
        reason=Reason.PROVIDER_UNCONFIGURED,
        detail=f"there is no credential for the provider {provider!r}{beside}",
        remedy=f"export {variables[-1]}=..." if variables else f"use one of: {', '.join(KEY_VARIABLES)}",
    )


def _egress(site: Site) -> str | Refused | None:
    if not site.settings.egress:
        return None
    alias = site.settings.egress_proxy
    found = site.engine.neighbour(alias)
    if isinstance(found, Refused):
        return found
    site.neighbour = Neighbour(id=found, alias=alias)
    return alias


def _budget(site: Site) -> str | Refused:
    # One instant for everything this attempt is counted for, also at its end.
    site.counted_at = site.clock.now()
    site.charged, refused = site.spend(site.job, site.counted_at)
    return refused or ""


LADDER: Final = (
    Step("records", _records),
    Step("oneshot", refuse_if_spent),
    Step("folder", _folder),
    Step("overlay", _overlay),
    Step("engine", _engine),
    Step("image", _image),
    Step("user", _user),
    Step("credential", _credential),
    Step("egress", _egress),
    Step("skills", look_for_skills),
    Step("token", mint),
    Step("branch", look_at_branch),
    Step("workspace", prepare),
    Step("budget", _budget),
)
