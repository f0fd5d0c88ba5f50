"""The last rung before the container: the workspace of a local job, and everything the job is told."""

from pidispatch.config.text import printable
from pidispatch.runs.note import AttemptNote, reserve_end, write_note
from pidispatch.runs.site import Site
from pidispatch.values import names
from pidispatch.values.outcome import Refused
from pidispatch.values.reason import Reason
from pidispatch.workspace.changes import Snapshot, snapshot
from pidispatch.workspace.dotpi import DotPi, materialise
from pidispatch.workspace.git import open_host_git
from pidispatch.workspace.guard import take_notes
from pidispatch.workspace.inputs import local_event, local_prompt
from pidispatch.workspace.jobdir import deployment_id, make_job_dir, release_job_dir, remove_job_dir, sanitise

#: Names shown of a tree that differs from its commit.
_SHOWN = 5


def container_name(job_id: str) -> str:
    """Name of the job's container; also what its network's name begins with."""
    return names.JOB_PREFIX + sanitise(job_id)


def prepare(site: Site) -> str | Refused:
    """Make the job directory and write into it; what may be shown is the commit. Raises `ConfigError`, `InfraError`."""
    job = site.job
    site.job_dir = make_job_dir(site.settings.jobs_dir, (site.user.uid, site.user.gid))
    site.cleanup.callback(_leave, site)
    site.git = open_host_git(site.folder, site.job_dir.git_dir, site.limits)
    site.before = snapshot(site.git)
    if site.before.dirty and not job.allow_dirty:
        return _dirty(site.before)
    brought = materialise(site.git, site.job_dir.skills, site.job_dir.give)
    if isinstance(brought, Refused):
        return brought
    if job.flow is not None and job.flow not in brought.skills:
        return _no_flow(job.flow, brought)
    site.job_dir.write_inputs(local_prompt(job.task, job.flow), local_event(job, site.git.sha))
    take_notes(site.folder, site.job_dir.guard)
    reserve_end(site.job_dir.end)
    _note(site)
    skills = f", flows of .pi: {', '.join(sorted(brought.skills))}" if brought.skills else ""
    return site.git.sha[:12] + skills


def _note(site: Site) -> None:
    write_note(
        site.job_dir.note,
        AttemptNote(
            # The task is the job's alone, and nobody who settles it needs it.
            job=site.job.model_copy(update={"task": "-"}),
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
        ),
    )


def _leave(site: Site) -> None:
    """Remove the job directory, or leave it for the one who settles it."""
    if site.settled:
        remove_job_dir(site.job_dir)
    else:
        release_job_dir(site.job_dir)


def _dirty(before: Snapshot) -> Refused:
    found = [name.decode("utf-8", "replace") for name in [*before.tracked, *before.untracked]]
    shown = ", ".join(printable(name) for name in found[:_SHOWN]) + (", ..." if len(found) > _SHOWN else "")
    return Refused(
        reason=Reason.CONFIG_REFUSED,
        cause="dirty-tree",
        detail=f"the folder has {len(found)} uncommitted change(s), which the agent's would mix with: {shown}",
        remedy="commit or stash them (git stash -u), or run with --force: there is no undo",
    )


def _no_flow(flow: str, brought: DotPi) -> Refused:
    known = f"it holds: {', '.join(sorted(brought.skills))}" if brought.skills else "it holds no flow"
    return Refused(
        reason=Reason.CONFIG_REFUSED,
        cause="flow-missing",
        detail=f"the commit holds no flow {flow!r} (.pi/skills/{flow}/SKILL.md); {known}",
        remedy=f"commit .pi/skills/{flow}/SKILL.md, or name a flow that is there",
    )
