"""The two kinds of exception the house raises, and what each of them means to a supervisor."""

from datetime import datetime


class DispatchError(Exception):
    """Base of the two error kinds.

    `message` says what was refused or failed, where, why and what to do instead. `cause` is a short fixed token
    for records and logs; it never carries text that came from a job. `said` is what a forge answered where its own
    words explain the error: one line, bounded, fit for a record.
    """

    #: Exit code of a program that ends with this error; see docs/reference/reasons.md.
    exit_code: int = 1

    def __init__(self, message: str, cause: str | None = None, said: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.cause = cause
        self.said = said


class ConfigError(DispatchError):
    """Configuration or input that cannot work. Determinate: trying again cannot help (exit code 2)."""

    exit_code = 2


class InfraError(DispatchError):
    """The surroundings broke (engine, disk, network). Indeterminate: trying again may help (exit code 1)."""

    exit_code = 1


class RateLimited(InfraError):
    """Somebody will not be asked more for now; `resets` says until when."""

    def __init__(self, message: str, resets: datetime, cause: str = "forge-rate-limited") -> None:
        super().__init__(message, cause)
        self.resets = resets
