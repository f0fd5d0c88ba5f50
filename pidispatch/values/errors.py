"""The two kinds of exception the house raises, and what each of them means to a supervisor."""


class DispatchError(Exception):
    """Base of the two error kinds.

    `message` says what was refused or failed, where, why and what to do instead. `cause` is a short fixed token
    for records and logs; it never carries text that came from a job.
    """

    #: Exit code of a program that ends with this error; see docs/reference/reasons.md.
    exit_code: int = 1

    def __init__(self, message: str, cause: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.cause = cause


class ConfigError(DispatchError):
    """Configuration or input that cannot work. Determinate: trying again cannot help (exit code 2)."""

    exit_code = 2


class InfraError(DispatchError):
    """The surroundings broke (engine, disk, network). Indeterminate: trying again may help (exit code 1)."""

    exit_code = 1
