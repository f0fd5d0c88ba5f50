"""The queue's clock, run ten times as fast, so that 20 minutes hold what else happens in more than three hours."""

from typing import Final

from pidispatch.values.limits import Limits

#: Durations that stay: how long an engine, git or a process of this machine may take does not shrink with the clock.
UNCHANGED: Final = frozenset(
    {
        "job_timeout_s",
        "stop_grace_s",
        "stop_take_s",
        "detached_s",
        "drain_s",
        "git_timeout_s",
        "reading_s",
        "look_every_s",
        "leave_s",
    }
)


def tenth(limits: Limits) -> Limits:
    """`limits` with a tenth of every duration but `UNCHANGED`. Sizes and counts stay."""
    return Limits.model_validate({**limits.model_dump(by_alias=False), **_shortened(limits)})


def _shortened(limits: Limits) -> dict[str, float]:
    found = limits.model_dump(by_alias=False).items()
    durations = {name: value for name, value in found if name.endswith(("_s", "_ms")) and name not in UNCHANGED}
    # What is counted in whole milliseconds stays whole.
    return {name: value // 10 if isinstance(value, int) else value / 10 for name, value in durations.items()}
