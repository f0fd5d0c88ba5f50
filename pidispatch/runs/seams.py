"""What an attempt asks of whoever runs it, before it spends money and afterwards."""

from collections.abc import Callable
from datetime import datetime

from pidispatch.box.run import Sink
from pidispatch.forges.protocol import Account
from pidispatch.triggers.disarm import Mark
from pidispatch.values.errors import ConfigError
from pidispatch.values.forge import FORGES, JobKind
from pidispatch.values.job import ForgeJob, Job
from pidispatch.values.outcome import Refused
from pidispatch.values.record import Result

#: Keeps the result of an attempt; raises `InfraError` where it cannot.
Finish = Callable[[Job, Result], None]
#: Asked for the mark that the store has of the rule which fired a job, where that fires once; `None` where it has none.
#: Raises `InfraError` where it does not answer.
Marked = Callable[[ForgeJob], Mark | None]
#: Asked by the last rung, from which on the job counts as paid for: what it is counted for, amounts by the key of a
#: counter, and the refusal where a cap stands against it. What it raises ends the attempt: `InfraError` where it could
#: not be noted, `LeaseLost` where the job is not this program's any more.
Spend = Callable[[Job, datetime], tuple[dict[str, int], Refused | None]]
#: Told what a container used, in tokens, with the instant at which the attempt was counted; returns what is to be added
#: to what the attempt is counted for. Raises `InfraError` where it cannot be booked.
Book = Callable[[Job, datetime, int], dict[str, int]]
#: Gives this deployment's account at a forge. Raises `ConfigError` where there is none.
Accounts = Callable[[JobKind], Account]
#: Gives, for the id of a job, what takes its output as it comes.
Output = Callable[[str], Sink]


class LeaseLost(Exception):
    """Another one has taken the job over, so that nothing may be started for it and nothing be written of it."""


def unmarked(_job: ForgeJob) -> Mark | None:
    """For a program without a store."""
    return None


def no_account(kind: JobKind) -> Account:
    """For a program that runs jobs on folders only."""
    raise ConfigError(f"this program has no account at {FORGES[kind].title}", "forge-unserved")


def uncounted(_job: Job, _now: datetime) -> tuple[dict[str, int], Refused | None]:
    """Likewise."""
    return {}, None


def unbooked(_job: Job, _now: datetime, _tokens: int) -> dict[str, int]:
    """Likewise."""
    return {}
