"""The worker as `pi-dispatch worker` runs it, by the clock of the soak."""

import os
import sys

from pidispatch.box.engine import Engine, EngineFacts
from pidispatch.values.limits import Limits
from pidispatch.worker.program import run_worker
from tests.soak.limits import tenth


def tell_engines_apart() -> None:
    """Give the engine an id of this worker's own: engines of one machine can share theirs, and with it their lock."""
    facts, name = Engine.facts, os.environ["PI_SOAK_ENGINE"]

    def told_apart(engine: Engine) -> EngineFacts:
        found = facts(engine)
        return found.model_copy(update={"id": f"{found.id}-{name}"})

    Engine.facts = told_apart  # type: ignore[method-assign,assignment]


if __name__ == "__main__":
    tell_engines_apart()
    sys.exit(run_worker(tenth(Limits())))
