"""Which step answers a request: the only state is how often a bounded fault has been used."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Mapping

from .ask import Ask
from .script import Call, Calls, Echo, Fault, Hang, Say, Scenario, times_of
from .sse import Streamed

#: Answer to a request without tools where the script would call one: the agent asks for a summary of its own
#: work.
SUMMARY = "Summary of the work so far: the tools were used as asked."


class UnknownModel(LookupError):
    """No scenario has this name."""


class Director:
    """Answers depend on the request only, except that a fault with ``times`` counts per (key, model id)."""

    def __init__(self, scenarios: Mapping[str, Scenario]) -> None:
        """Take the scenarios by model id."""
        self.scenarios = dict(scenarios)
        self._used: Counter[tuple[str, str, int]] = Counter()
        self._lock = threading.Lock()

    def scenario(self, model: str) -> Scenario:
        """The scenario behind a model id. Raises UnknownModel."""
        if model not in self.scenarios:
            raise UnknownModel(model)
        return self.scenarios[model]

    def step(self, ask: Ask, key: str) -> Streamed | Fault | Hang:
        """The step for this request, with the request's own part filled in. Raises UnknownModel."""
        scenario = self.scenario(ask.model)
        with self._lock:
            index = self._index(scenario, ask, key)
            self._used[key, ask.model, index] += 1
        step = scenario.steps[index]
        if isinstance(step, Echo):
            return Say(step.prefix + ask.prompt)
        if isinstance(step, Call | Calls) and not ask.has_tools:
            return Say(SUMMARY)
        return step

    def _index(self, scenario: Scenario, ask: Ask, key: str) -> int:
        standing = [
            index
            for index, step in enumerate(scenario.steps)
            if (times := times_of(step)) is None or self._used[key, ask.model, index] < times
        ]
        return standing[min(ask.turn, len(standing) - 1)]
