"""The workspace of a job, everything it is told, and the description of its container."""

import threading
from pathlib import Path

from pidispatch.box.environment import forge_environment, job_environment
from pidispatch.box.spec import BoxMount, ContainerSpec
from pidispatch.config.log import log
from pidispatch.runs.dirty import dirty_tree
from pidispatch.runs.note import AttemptNote, reserve_end, write_note
from pidispatch.runs.site import Site
from pidispatch.values import names
from pidispatch.values.errors import InfraError
from pidispatch.values.job import ForgeJob, LocalJob
from pidispatch.values.outcome import Refused
from pidispatch.values.reason import Reason
from pidispatch.workspace.changes import snapshot
from pidispatch.workspace.clone import clone, give_tree
from pidispatch.workspace.dotpi import DotPi, materialise
from pidispatch.workspace.folder import open_folder
from pidispatch.workspace.forge_event import forge_event
from pidispatch.workspace.forge_prompt import forge_prompt
from pidispatch.workspace.git import open_host_git
from pidispatch.workspace.guard import take_notes
from pidispatch.workspace.inputs import local_event, local_prompt
from pidispatch.workspace.jobdir import deployment_id, make_job_dir, release_job_dir, remove_job_dir, sanitise
from pidispatch.workspace.skills_dir import copy as copy_skills


def container_name(job_id: str) -> str:
    """Name of the job's container; also what its network's name begins with."""
    return names.JOB_PREFIX + sanitise(job_id)


def prepare(site: Site) -> str | Refused:
    """Make the job directory and write into it; what may be shown is the commit. Raises `ConfigError`, `InfraError`."""
    forge = isinstance(site.job, ForgeJob)
    site.job_dir = make_job_dir(site.settings.jobs_dir, (site.user.uid, site.user.gid), outbox=not forge)
    site.cleanup.callback(_leave, site)
    if isinstance(site.job, ForgeJob) and (refused := _clone(site, site.job)) is not None:
        return refused
    if site.abort.reason is not None:
        # The clone was ended with the job. Whoever asks next finds the abort.
        return ""
    site.git = open_host_git(site.folder, site.job_dir.git_dir, site.limits)
    site.before = snapshot(site.git)
    # What an earlier attempt at this very job left is no reason against the next one.
    if not forge and site.before.dirty and not site.local.allow_dirty and site.number == 1:
        return dirty_tree(site.before)
    brought = materialise(site.git, site.job_dir.skills, site.job_dir.give)
    if isinstance(brought, Refused):
        return brought
    injected = _injected(site)
    if isinstance(injected, Refused):
        return injected
    flow = site.job.flow
    if flow is not None and flow not in brought.skills | injected:
        if site.job.matched is None:
            return _no_flow(flow, brought)
        # Nobody is there to answer: the task alone is done, and the runner says in its output that the flow is missing.
        flow = None
    site.job_dir.write_inputs(*_told(site, flow))
    if not forge:
        take_notes(site.folder, site.job_dir.guard)
    reserve_end(site.job_dir.end)
    _note(site)
    skills = f", flows of .pi: {', '.join(sorted(brought.skills))}" if brought.skills else ""
    return site.git.sha[:12] + skills


def _clone(site: Site, job: ForgeJob) -> Refused | None:
    """Clone the default branch's commit, which then belongs to the job's user. Raises `InfraError`."""
    token, workspace = site.token, site.job_dir.workspace
    assert token is not None, "a job of a forge has one"
    stop = threading.Event()
    site.abort.listen(stop.set)
    try:
        refused = clone(site.account.clone_url(job.repo), site.branch.sha, workspace, token.value, site.limits, stop)
    except InfraError:
        if site.abort.reason is not None:
            return None
        raise
    if refused is None:
        give_tree(workspace, site.job_dir.owner)
        site.folder = open_folder(workspace)
    return refused


def _injected(site: Site) -> frozenset[str] | Refused:
    """The skills that the rule brings along, copied beside those of the repository: their names."""
    job = site.job
    if not isinstance(job, ForgeJob) or job.skills_dir is None:
        return frozenset()
    copied = copy_skills(Path(job.skills_dir), site.job_dir.trigger_skills, site.limits, site.job_dir.give)
    if isinstance(copied, Refused):
        return copied
    log().info("trigger_skills_injected", jobId=job.id, dirs=copied.dirs, files=copied.files, bytes=copied.bytes)
    return copied.skills


def _told(site: Site, flow: str | None) -> tuple[str, str]:
    """Prompt and event of the job."""
    if isinstance(site.job, ForgeJob):
        return forge_prompt(site.job, flow), forge_event(site.job)
    return local_prompt(site.local.task, flow), local_event(site.local, site.git.sha)


def container_spec(site: Site) -> ContainerSpec:
    """The description of the job's container, once every rung is passed. Raises `DispatchError`."""
    name, settings, effective = container_name(site.job.id), site.settings, site.effective
    mounts = [
        BoxMount(source=site.job_dir.inputs, target="/job"),
        BoxMount(source=site.folder.path, target="/workspace"),
    ]
    if not isinstance(site.job, ForgeJob):
        mounts.append(BoxMount(source=site.job_dir.outbox, target="/outbox"))
    if settings.global_pi_dir is not None:
        mounts.append(BoxMount(source=settings.global_pi_dir, target="/opt/pi-global"))
    return ContainerSpec(
        isolated=True,
        name=name,
        job_id=site.job.id,
        attempt=site.number,
        image=site.image.digest,
        user=site.user,
        env=job_environment(
            container=name,
            provider=effective.provider,
            model=effective.model,
            max_turns=effective.max_turns,
            max_tokens=effective.max_tokens,
            flow=site.job.flow,
            command=site.job.command if isinstance(site.job, ForgeJob) else None,
            user=site.user,
            neighbour=site.neighbour.alias if site.neighbour else None,
            forward=settings.forward_env,
            environ=site.environ,
            stored=site.stored,
            forge=_forge_variables(site),
        ),
        mounts=tuple(mounts),
        network=f"{name}-net" if site.neighbour else None,
        deployment=deployment_id(settings.state_dir),
        limits=site.limits,
    )


def _forge_variables(site: Site) -> dict[str, str]:
    kind, token = site.forge, site.token
    if kind is None or token is None:
        return {}
    return forge_environment(kind, token.value, site.account.variables(token))


def _note(site: Site) -> None:
    job = site.job.bare()
    assert isinstance(job, LocalJob | ForgeJob), "there is no third kind"
    write_note(
        site.job_dir.note,
        AttemptNote(
            # What it is about is the job's alone, and nobody who settles it needs it.
            job=job,
            attempt=site.number,
            folder=site.folder.path,
            inode=site.folder.path.stat().st_ino,
            provider=site.effective.provider,
            model=site.effective.model,
            image_digest=site.image.digest,
            begun_at=site.begun_at,
            engine=site.engine_facts.id,
            container=container_name(site.job.id),
            neighbour=site.neighbour.id if site.neighbour else None,
            deployment=deployment_id(site.settings.state_dir),
            marks=True,
        ),
    )


def _leave(site: Site) -> None:
    """Remove the job directory, or leave it for the one who settles it."""
    if site.settled:
        remove_job_dir(site.job_dir)
    else:
        release_job_dir(site.job_dir)


def _no_flow(flow: str, brought: DotPi) -> Refused:
    known = f"it holds: {', '.join(sorted(brought.skills))}" if brought.skills else "it holds no flow"
    return Refused(
        reason=Reason.CONFIG_REFUSED,
        cause="flow-missing",
        detail=f"the commit holds no flow {flow!r} (.pi/skills/{flow}/SKILL.md); {known}",
        remedy=f"commit .pi/skills/{flow}/SKILL.md, or name a flow that is there",
    )
