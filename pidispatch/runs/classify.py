"""From how a container ended to what that means: the exit status and the abort decide, never what the box says."""

from pidispatch.box.exitline import has_runner_line, last_exit, read_telemetry
from pidispatch.box.run import ContainerEnd
from pidispatch.config.log import log
from pidispatch.values.cause import remedy_of
from pidispatch.values.errors import ConfigError, DispatchError
from pidispatch.values.outcome import Aborted, Completed, InfraFailed, Outcome, Refused
from pidispatch.values.reason import KEPT_RUNNER_REASONS, AbortReason, Reason, RunnerReason
from pidispatch.values.usage import Telemetry

#: Statuses of an entry point that is not executable (126) or absent (127).
_NO_ENTRY = (126, 127)
#: Status of a first process that was killed. While it goes on, the engine's word on memory is not reliable.
_KILLED = 137
#: Causes of a `ConfigError` that have a reason of their own.
_OWN_REASONS = {"no-commit": Reason.LOCAL_FOLDER_NO_COMMIT}


def classify(end: ContainerEnd) -> tuple[Outcome, Telemetry]:
    """The outcome of a container that was to run, and what it claims about itself (docs/reference/reasons.md)."""
    try:
        telemetry = read_telemetry(end.tail)
    except Exception as error:
        # What the box prints must not be able to turn a run that is paid for into a failed one.
        log().error("telemetry_unreadable", cause=type(error).__name__)
        telemetry = Telemetry()
    return _outcome(end, telemetry), telemetry


def _outcome(end: ContainerEnd, telemetry: Telemetry) -> Outcome:
    if end.aborted is not None:
        return aborted(end.aborted)
    if end.detached:
        return InfraFailed(reason=Reason.CONTAINER_DETACHED)
    said = telemetry.reason
    if end.code == 0:
        return Completed(truncated=telemetry.truncated)
    if end.code == 2:
        return _policy(said)
    if end.code in _NO_ENTRY and not has_runner_line(end.tail):
        return InfraFailed(
            reason=Reason.CONTAINER_NEVER_STARTED,
            cause=f"exit-{end.code}",
            detail="the image has no entry point that can be executed",
            remedy="check the image with: pi-dispatch image verify",
        )
    return _failed(end, said)


def classify_left(end: ContainerEnd, *, cut_off: bool) -> tuple[Outcome, Telemetry]:
    """The outcome of a container that nobody watched to its end: its true one, or that it cannot be told.

    `cut_off`: it ran until whoever found it ended it. Who was killed by us, or whose last line is missing, may have
    been in the middle of anything; and the end of one whose lease was lost was another one's to tell.
    """
    outcome, telemetry = classify(end)
    silent = end.aborted is None and last_exit(end.tail) is None
    if cut_off or silent or end.aborted is AbortReason.LEASE_LOST:
        outcome = InfraFailed(reason=Reason.WORKER_LOST)
    return outcome, telemetry


def aborted(why: AbortReason) -> Aborted:
    """The outcome of an attempt that was ended for `why`."""
    cancelled = why is AbortReason.OPERATOR_CANCEL
    return Aborted(reason=Reason.OPERATOR_CANCEL if cancelled else Reason.WORKER_ABORT, cause=why)


def _policy(said: RunnerReason | None) -> Refused:
    if said is None:
        return Refused(reason=Reason.RUNNER_POLICY)
    kept = KEPT_RUNNER_REASONS.get(said)
    if kept is not None:
        return Refused(reason=kept)
    return Refused(reason=Reason.RUNNER_POLICY, cause=said.value, detail=said.meaning, remedy=said.remedy or None)


def _failed(end: ContainerEnd, said: RunnerReason | None) -> InfraFailed:
    if end.oom_killed and end.code == _KILLED:
        return InfraFailed(
            reason=Reason.INFRA,
            cause="oom-killed",
            detail="the run needed more memory than the box has",
            remedy=remedy_of("oom-killed"),
        )
    if said is not None:
        return InfraFailed(reason=Reason.INFRA, cause=said.value, detail=said.meaning, remedy=said.remedy or None)
    return InfraFailed(reason=Reason.INFRA, cause=f"exit-{end.code}")


def classify_error(error: DispatchError) -> Outcome:
    """The outcome of an attempt that an error ended before its container ran."""
    if isinstance(error, ConfigError):
        reason = _OWN_REASONS.get(error.cause or "", Reason.CONFIG_REFUSED)
        return Refused(
            reason=reason, cause=error.cause, detail=error.message, remedy=remedy_of(error.cause), said=error.said
        )
    reason = Reason.INFRA
    if error.cause == Reason.CONTAINER_NEVER_STARTED:
        reason = Reason.CONTAINER_NEVER_STARTED
    cause = None if error.cause == reason else error.cause
    return InfraFailed(reason=reason, cause=cause, detail=error.message, remedy=remedy_of(cause), said=error.said)


def exit_code(outcome: Outcome) -> int:
    """Exit status of a program whose job ended so: 0 completed, 2 by policy, 1 failed."""
    if isinstance(outcome, Completed):
        return 0
    return 1 if isinstance(outcome, InfraFailed) else 2
