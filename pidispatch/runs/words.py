"""What happens to a run, in words for the one at a terminal."""

from pathlib import Path

from pidispatch.config.text import printable
from pidispatch.values.progress import (
    CheckPassed,
    ContainerStarted,
    Progress,
    ProviderRetry,
    Stopping,
    TurnEnded,
)


def say(progress: Progress) -> str:
    """One step of a run in words."""
    match progress:
        case CheckPassed(name=name, detail=detail):
            return f"checked {name}" + (f": {printable(detail)}" if detail else "")
        case ContainerStarted(name=name):
            return f"container {name} started"
        case TurnEnded(turns=turns, tokens=tokens):
            return f"turn {turns}: {tokens:,} tokens so far"
        case ProviderRetry(attempt=attempt, max_attempts=most):
            return f"the model provider failed; retry {attempt} of {most}"
        case Stopping(reason=reason):
            return f"stopping ({reason})"


def say_settled(job_id: str, target: str, restored: tuple[str, ...], kept: Path, *, replaced: bool) -> str:
    """What was put in order after an earlier run whose program was killed; `replaced`: not in the folder it had."""
    what = ""
    if restored:
        names, where = ", ".join(map(printable, restored)), printable(str(kept))
        what = f"; put back in its git directory: {names}; what stood there until now is kept in {where}"
    if replaced:
        what = (
            ". Another folder stands where it worked, and nothing was put back: if you moved the old one away, look at "
            "its .git/config and .git/hooks before you use git in it"
        )
    return f"the earlier run {job_id} ({printable(target)}) was broken off; it is settled now{what}"
