"""Why a run did not start: the two ways a start-up check can end the job before anything was spent."""

from enum import StrEnum


class RefusalReason(StrEnum):
    """Determinate reasons: running the same job again cannot help (docs/reference/runner.md)."""

    CONFIG = "config"
    INPUTS_UNREADABLE = "job-inputs-unreadable"
    WORKSPACE_NOT_WRITABLE = "workspace-not-writable"
    FLOW_NOT_LOADED = "flow-not-loaded"


class Refusal(Exception):
    """The job cannot run as it was given: exit code 2."""

    def __init__(self, reason: RefusalReason, message: str) -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message


class InfraFailure(Exception):
    """The surroundings failed before the first token: exit code 1, worth another attempt."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


def config(message: str) -> Refusal:
    """A refusal for reason ``config``."""
    return Refusal(RefusalReason.CONFIG, message)
