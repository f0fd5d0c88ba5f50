"""What an attempt tells while it runs. Advisory: nothing is decided on it."""

from collections.abc import Callable

from pidispatch.values.base import Value


class CheckPassed(Value):
    """One check before the run was passed."""

    name: str
    detail: str = ""


class ContainerStarted(Value):
    """The container runs; from here on tokens may be spent."""

    name: str


class TurnEnded(Value):
    """The agent ended a model turn; totals so far."""

    turns: int
    tokens: int


class ProviderRetry(Value):
    """The agent asks the model provider again after a fault."""

    attempt: int
    max_attempts: int


class Stopping(Value):
    """The container is being stopped."""

    reason: str


Progress = CheckPassed | ContainerStarted | TurnEnded | ProviderRetry | Stopping
ProgressSink = Callable[[Progress], None]
