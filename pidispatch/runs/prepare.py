"""The last rung before the container: the workspace of a local job, everything the job is told, and its container."""

from pidispatch.box.environment import job_environment
from pidispatch.box.spec import BoxMount, ContainerSpec
from pidispatch.runs.dirty import dirty_tree
from pidispatch.runs.note import AttemptNote, reserve_end, write_note
from pidispatch.runs.site import Site
from pidispatch.values import names
from pidispatch.values.outcome import Refused
from pidispatch.values.reason import Reason
from pidispatch.workspace.changes import snapshot
from pidispatch.workspace.dotpi import DotPi, materialise
from pidispatch.workspace.git import open_host_git
from pidispatch.workspace.guard import take_notes
from pidispatch.workspace.inputs import local_event, local_prompt
from pidispatch.workspace.jobdir import deployment_id, make_job_dir, release_job_dir, remove_job_dir, sanitise


def container_name(job_id: str) -> str:
    """Name of the job's container; also what its network's name begins with."""
    return names.JOB_PREFIX + sanitise(job_id)


def prepare(site: Site) -> str | Refused:
    """Make the job directory and write into it; what may be shown is the commit. Raises `ConfigError`, `InfraError`."""
    job = site.local
    site.job_dir = make_job_dir(site.settings.jobs_dir, (site.user.uid, site.user.gid))
    site.cleanup.callback(_leave, site)
    site.git = open_host_git(site.folder, site.job_dir.git_dir, site.limits)
    site.before = snapshot(site.git)
    # What an earlier attempt at this very job left is no reason against the next one.
    if site.before.dirty and not job.allow_dirty and site.number == 1:
        return dirty_tree(site.before)
    brought = materialise(site.git, site.job_dir.skills, site.job_dir.give)
    if isinstance(brought, Refused):
        return brought
    flow = job.flow
    if flow is not None and flow not in brought.skills:
        if job.trigger is None:
            return _no_flow(flow, brought)
        # Nobody is there to answer: the task alone is done, and the runner says in its output that the flow is missing.
        flow = None
    site.job_dir.write_inputs(local_prompt(job.task, flow), local_event(job, site.git.sha))
    take_notes(site.folder, site.job_dir.guard)
    reserve_end(site.job_dir.end)
    _note(site)
    skills = f", flows of .pi: {', '.join(sorted(brought.skills))}" if brought.skills else ""
    return site.git.sha[:12] + skills


def container_spec(site: Site) -> ContainerSpec:
    """The description of the job's container, once every rung is passed. Raises `DispatchError`."""
    name, settings, effective = container_name(site.job.id), site.settings, site.effective
    mounts = [
        BoxMount(source=site.job_dir.inputs, target="/job"),
        BoxMount(source=site.folder.path, target="/workspace"),
        BoxMount(source=site.job_dir.outbox, target="/outbox"),
    ]
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
            user=site.user,
            neighbour=site.neighbour.alias if site.neighbour else None,
            forward=settings.forward_env,
            environ=site.environ,
            stored=site.stored,
        ),
        mounts=tuple(mounts),
        network=f"{name}-net" if site.neighbour else None,
        deployment=deployment_id(settings.state_dir),
        limits=site.limits,
    )


def _note(site: Site) -> None:
    write_note(
        site.job_dir.note,
        AttemptNote(
            # The task is the job's alone, and nobody who settles it needs it.
            job=site.local.model_copy(update={"task": "-"}),
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
