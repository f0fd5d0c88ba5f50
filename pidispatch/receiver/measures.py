"""What the receiver counts. Every label has a closed set of values, so that no stranger can make it grow."""

from typing import Final, Protocol

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST

_BUCKETS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
CONTENT_TYPE: Final = CONTENT_TYPE_LATEST


class Counted(Protocol):
    """What is told of every request of a forge."""

    def __call__(self, forge: str, event: str, verdict: str, reason: str, seconds: float) -> None:
        """`event`: the forge's word where it is a known one, else `other`. `reason`: a token, or empty."""
        ...


def uncounted(forge: str, event: str, verdict: str, reason: str, seconds: float) -> None:
    """Counts nothing, where nobody looks."""


class Measures:
    """The counters of one receiver."""

    def __init__(self) -> None:
        # Its own, so that nothing of this process is told that is not named here.
        self._registry = CollectorRegistry()
        self._requests = Counter(
            "pi_dispatch_receiver_requests",
            "Requests to a served forge, by its event, what became of it, and why.",
            ("forge", "event", "verdict", "reason"),
            registry=self._registry,
        )
        self._seconds = Histogram(
            "pi_dispatch_receiver_seconds",
            "Seconds from the head of a request to its answer.",
            ("forge",),
            buckets=_BUCKETS,
            registry=self._registry,
        )
        self._rules = Gauge("pi_dispatch_receiver_rules", "Armed rules in force.", registry=self._registry)
        self._fault = Gauge(
            "pi_dispatch_receiver_triggers_fault",
            "1 where the newest content of the triggers file is not in force.",
            registry=self._registry,
        )

    def count(self, forge: str, event: str, verdict: str, reason: str, seconds: float) -> None:
        """One request."""
        self._requests.labels(forge, event, verdict, reason).inc()
        self._seconds.labels(forge).observe(seconds)

    def shown(self, *, rules: int, faulty: bool) -> bytes:
        """All of it in Prometheus' own format."""
        self._rules.set(rules)
        self._fault.set(int(faulty))
        return generate_latest(self._registry)
