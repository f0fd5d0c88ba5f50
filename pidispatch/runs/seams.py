"""What an attempt asks of whoever runs it: to be told before money is spent, to keep its result, to take its output."""

from collections.abc import Callable

from pidispatch.box.run import Sink
from pidispatch.values.job import Job
from pidispatch.values.record import Result

#: Keeps the result of an attempt; raises `InfraError` where it cannot.
Finish = Callable[[Job, Result], None]
#: Told right before the container is made, from which on the job counts as paid for. What it raises ends the attempt
#: before that: `InfraError` where it could not be noted, `LeaseLost` where the job is not this program's any more.
Spend = Callable[[Job], None]
#: Gives, for the id of a job, what takes its output as it comes.
Output = Callable[[str], Sink]


class LeaseLost(Exception):
    """Another one has taken the job over, so that nothing may be started for it and nothing be written of it."""


def no_one(_: Job) -> None:
    """For a program that has nobody to tell."""
