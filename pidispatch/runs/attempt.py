"""One attempt at a job, from its first check to its last clean-up.

The order of the checks is the promise: free and certain ones first, and the container, which alone can spend, last.
"""

import contextlib
import os
import sys
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from pidispatch.box.abort import Abort
from pidispatch.box.engine import Engine, EngineFacts, ImageFacts
from pidispatch.box.environment import job_environment
from pidispatch.box.overlay import check_overlay
from pidispatch.box.providers import KEY_VARIABLES, credential
from pidispatch.box.run import ContainerEnd, Neighbour, run_container
from pidispatch.box.spec import BoxMount, ContainerSpec, JobUser
from pidispatch.box.user import HostFacts, decide_user
from pidispatch.config.log import log
from pidispatch.config.settings import Settings
from pidispatch.runs.classify import classify, classify_error
from pidispatch.values import names
from pidispatch.values.change import Change
from pidispatch.values.clock import Clock
from pidispatch.values.errors import DispatchError
from pidispatch.values.job import Job
from pidispatch.values.limits import Limits
from pidispatch.values.outcome import Refused
from pidispatch.values.progress import CheckPassed, Progress, ProgressSink
from pidispatch.values.reason import AbortReason, Reason
from pidispatch.values.record import Result
from pidispatch.workspace.changes import Snapshot, read_change, snapshot
from pidispatch.workspace.folder import Folder, open_folder
from pidispatch.workspace.git import HostGit, open_host_git
from pidispatch.workspace.inputs import local_event, local_prompt
from pidispatch.workspace.jobdir import (
    JobDir,
    count_outbox,
    deployment_id,
    make_job_dir,
    remove_job_dir,
    sanitise,
)
from pidispatch.workspace.shape import check_shape

T = TypeVar("T")


@dataclass(frozen=True)
class Effective:
    """A job with everything it left open filled in from the settings."""

    provider: str
    model: str
    max_turns: int
    max_tokens: int | None
    image: str

    @classmethod
    def of(cls, job: Job, settings: Settings) -> "Effective":
        """What the job says, else what the settings say."""
        return cls(
            provider=job.provider or settings.provider,
            model=job.model or settings.model,
            max_turns=job.max_turns or settings.max_turns,
            max_tokens=settings.max_tokens,
            image=job.image or settings.job_image,
        )


@dataclass(frozen=True)
class Checked:
    """What the checks before the run established."""

    engine: Engine
    folder: Folder
    image: ImageFacts
    user: JobUser
    #: `None` for a job on an open network.
    neighbour: Neighbour | None


class _Refuse(Exception):
    """Carries a refusal out of the checks."""

    def __init__(self, refusal: Refused) -> None:
        super().__init__(refusal.reason.value)
        self.refusal = refusal


class Attempt:
    """Runs attempts; holds what they all need.

    `connect` is asked for the engine once what needs none is checked, and raises `InfraError` where none answers.
    """

    def __init__(
        self,
        settings: Settings,
        connect: Callable[[], Engine],
        limits: Limits,
        clock: Clock,
        environ: Mapping[str, str] | None = None,
    ) -> None:
        self._settings = settings
        self._connect = connect
        self._limits = limits
        self._clock = clock
        self._environ = os.environ if environ is None else environ

    def __call__(self, job: Job, progress: ProgressSink, abort: Abort) -> Result:
        """One attempt at `job`. Returns how it ended, whatever happens; only our own mistakes are raised."""
        progress = _never_failing(progress)
        effective = Effective.of(job, self._settings)
        result = Result.begin(self._clock.now(), effective.provider, effective.model)
        timer = threading.Timer(self._limits.job_timeout_s, abort.set, (AbortReason.JOB_TIMEOUT,))
        timer.daemon = True
        timer.start()
        try:
            checked = self._check(job, effective, progress)
            result = self._prepared(job, effective, checked, result, progress, abort)
        except _Refuse as refused:
            result = result.ending(refused.refusal)
        except DispatchError as error:
            result = result.ending(classify_error(error))
        finally:
            timer.cancel()
        return result.model_copy(update={"ended_at": self._clock.now()})

    def _check(self, job: Job, effective: Effective, progress: ProgressSink) -> Checked:
        """Every check that is free, in order; raises for the first that fails."""
        folder = open_folder(job.folder)
        check_shape(folder)
        progress(CheckPassed(name="folder"))
        if self._settings.global_pi_dir is not None:
            check_overlay(self._settings.global_pi_dir)
            progress(CheckPassed(name="overlay"))
        engine = self._connect()
        image = _admitted(engine.image(effective.image))
        progress(CheckPassed(name="image", detail=effective.image))
        user = _admitted(_user(engine.facts(), folder, image))
        progress(CheckPassed(name="user", detail=f"{user.uid}:{user.gid}"))
        self._check_credential(effective.provider)
        progress(CheckPassed(name="credential", detail=effective.provider))
        neighbour = None
        if self._settings.egress:
            alias = self._settings.egress_proxy
            neighbour = Neighbour(id=_admitted(engine.neighbour(alias)), alias=alias)
            progress(CheckPassed(name="egress", detail=alias))
        return Checked(engine, folder, image, user, neighbour)

    def _check_credential(self, provider: str) -> None:
        if credential(provider, self._environ):
            return
        variables = KEY_VARIABLES.get(provider)
        raise _Refuse(
            Refused(
                reason=Reason.PROVIDER_UNCONFIGURED,
                detail=f"there is no credential for the provider {provider!r}",
                remedy=f"export {variables[-1]}=..." if variables else f"use one of: {', '.join(KEY_VARIABLES)}",
            )
        )

    def _prepared(
        self,
        job: Job,
        effective: Effective,
        checked: Checked,
        result: Result,
        progress: ProgressSink,
        abort: Abort,
    ) -> Result:
        """Write the job's inputs, run its container, read what changed, clean up."""
        user = checked.user
        job_dir = make_job_dir(self._settings.jobs_dir, (user.uid, user.gid))
        try:
            git = open_host_git(checked.folder, job_dir.git_dir, self._limits)
            job_dir.write_inputs(local_prompt(job.task), local_event(job, git.sha))
            before = snapshot(git)
            progress(CheckPassed(name="workspace", detail=git.sha[:12]))
            spec = self._spec(job, effective, checked, job_dir)
            end = run_container(
                checked.engine, spec, checked.neighbour, abort=abort, progress=progress, clock=self._clock
            )
            return self._read(job, result, checked, end, git, before, job_dir)
        finally:
            remove_job_dir(job_dir)

    def _spec(self, job: Job, effective: Effective, checked: Checked, job_dir: JobDir) -> ContainerSpec:
        name = names.JOB_PREFIX + sanitise(job.id)
        mounts = [
            BoxMount(source=job_dir.inputs, target="/job"),
            BoxMount(source=checked.folder.path, target="/workspace"),
            BoxMount(source=job_dir.outbox, target="/outbox"),
        ]
        if self._settings.global_pi_dir is not None:
            mounts.append(BoxMount(source=self._settings.global_pi_dir, target="/opt/pi-global"))
        return ContainerSpec(
            isolated=True,
            name=name,
            image=checked.image.digest,
            user=checked.user,
            env=job_environment(
                container=name,
                provider=effective.provider,
                model=effective.model,
                max_turns=effective.max_turns,
                max_tokens=effective.max_tokens,
                user=checked.user,
                neighbour=checked.neighbour.alias if checked.neighbour else None,
                forward=self._settings.forward_env,
                environ=self._environ,
            ),
            mounts=tuple(mounts),
            network=f"{name}-net" if checked.neighbour else None,
            deployment=deployment_id(self._settings.state_dir),
            limits=self._limits,
        )

    def _read(
        self,
        job: Job,
        result: Result,
        checked: Checked,
        end: ContainerEnd,
        git: HostGit,
        before: Snapshot,
        job_dir: JobDir,
    ) -> Result:
        outcome, telemetry = classify(end)
        if end.seconds is None:
            return result.ending(outcome)
        change, diff, change_error = _read_change(job, git, before)
        return result.ending(outcome).model_copy(
            update={
                "exit_code": end.code,
                "telemetry": telemetry,
                "image_digest": checked.image.digest,
                "change": change,
                "diff": diff,
                "change_error": change_error,
                "outbox_files": count_outbox(job_dir),
                "container_s": end.seconds,
            }
        )


def _read_change(job: Job, git: HostGit, before: Snapshot) -> tuple[Change | None, str | None, str | None]:
    """What changed, its diff, or why it cannot be told. The run is over and paid for: nothing here may fail it."""
    try:
        change, diff = read_change(git, before)
        return change, diff, None
    except DispatchError as error:
        log().warning("change_unreadable", jobId=job.id, cause=error.cause)
        return None, None, error.message
    except Exception as error:
        log().error("change_unreadable", jobId=job.id, cause=type(error).__name__)
        return None, None, "an error of pi-dispatch's own; the log names it"


def _never_failing(sink: ProgressSink) -> ProgressSink:
    """`sink` for advice that nobody may hear: a run that is paid for does not end because its reader went away."""

    def tell(progress: Progress) -> None:
        # rich leaves by SystemExit where its terminal is gone.
        with contextlib.suppress(Exception, SystemExit):
            sink(progress)

    return tell


def _user(engine: EngineFacts, folder: Folder, image: ImageFacts) -> JobUser | Refused:
    facts = HostFacts(
        linux=sys.platform == "linux",
        wsl="microsoft" in os.uname().release.lower(),
        engine_is_here=engine.here,
        readable=engine.readable,
        desktop=engine.desktop,
        security_options=engine.security_options,
        socket_uid=engine.socket_uid,
        socket_gid=engine.socket_gid,
        euid=os.geteuid(),
        egid=os.getegid(),
        folder_uid=folder.uid,
        folder_gid=folder.gid,
    )
    return decide_user(facts, any_uid=names.CAPABILITY_ANY_UID in image.capabilities)


def _admitted(found: T | Refused) -> T:
    if isinstance(found, Refused):
        raise _Refuse(found)
    return found
