"""The one way to the server: every script and command of the store passes here, and every fault is named here."""

import json
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeVar

import redis
from redis.exceptions import ConnectionError as Unreachable
from redis.exceptions import NoScriptError, ReadOnlyError, RedisError
from redis.exceptions import TimeoutError as Slow

from pidispatch.jobs.keys import named
from pidispatch.jobs.rows import RETENTION
from pidispatch.jobs.scripts import SCRIPTS, source
from pidispatch.values.errors import InfraError
from pidispatch.values.limits import Limits

T = TypeVar("T")
#: Faults of a server that is away, is starting, or was demoted: it may answer again.
_AWAY: Final = (Unreachable, Slow, ReadOnlyError)


class Calls:
    """A server, the prefix of all keys, and the scripts with their bounds.

    `client` decodes its answers. `breaker_runs`: how many runs of a trigger must come to nothing, one after the other,
    to pause it; 0: it is never paused by this one. `offset_ms` is added to the server's clock; it is for tests.
    """

    def __init__(
        self, client: redis.Redis, prefix: str, limits: Limits, offset_ms: int = 0, breaker_runs: int = 0
    ) -> None:
        self._client = client
        self._prefix = prefix
        self._key = named(prefix)
        self._limits = limits
        self._offset_ms = offset_ms
        self._bounds = json.dumps(_bounds(prefix, limits, offset_ms) | {"breaker": breaker_runs})
        self._registered = {name: client.register_script(source(name)) for name in SCRIPTS}

    def _script(self, name: str, *arguments: str | int) -> Any:
        """Run one script; what it answers. Raises `InfraError`."""
        return self._ask(lambda: self._registered[name](args=[self._bounds, *arguments]))

    def _script_each(self, name: str, calls: Sequence[Sequence[str | int]]) -> list[Any]:
        """Run one script several times, in one round trip; what each answers, or its `InfraError`. Raises `InfraError`.

        Each of them is atomic, all together are not.
        """
        answers = self._ask(lambda: self._evaluated(name, calls))
        missing = [at for at, one in enumerate(answers) if isinstance(one, NoScriptError)]
        if missing:
            # The server was started anew. Those that were carried out are not asked again.
            self._ask(lambda: self._client.script_load(source(name)))
            again = self._ask(lambda: self._evaluated(name, [calls[at] for at in missing]))
            for at, one in zip(missing, again, strict=True):
                answers[at] = one
        return [_refused(one) if isinstance(one, RedisError) else one for one in answers]

    def _evaluated(self, name: str, calls: Sequence[Sequence[str | int]]) -> list[Any]:
        with self._client.pipeline(transaction=False) as asked:
            for arguments in calls:
                asked.evalsha(self._registered[name].sha, 0, self._bounds, *arguments)
            return asked.execute(raise_on_error=False)

    def _now_ms(self) -> int:
        """The server's clock, in milliseconds since 1970. Raises `InfraError`."""
        seconds, micros = self._ask(self._client.time)
        return seconds * 1000 + micros // 1000 + self._offset_ms

    def _ask(self, call: Callable[[], T]) -> T:
        """Do one exchange with the server. Raises `InfraError`."""
        try:
            return call()
        except _AWAY as error:
            raise InfraError(
                f"the server of the queue does not answer ({type(error).__name__}): see that it runs and that "
                "VALKEY_URL names it",
                "store-unreachable",
            ) from None
        except RedisError as error:
            raise _refused(error) from None


def _refused(error: RedisError) -> InfraError:
    return InfraError(
        f"the server of the queue refused a command ({_word(error)}): its own log says more", "store-error"
    )


def _word(error: RedisError) -> str:
    # The first word of a server's fault is its code; what follows may repeat what was sent.
    code = str(error).split(" ", 1)[0]
    return code if code.isalnum() else type(error).__name__


def _bounds(prefix: str, limits: Limits, offset_ms: int) -> dict[str, Any]:
    return {
        "prefix": prefix,
        "offset": offset_ms,
        "lease": round(limits.lease_s * 1000),
        # The shortest time in which a lease can run out that was renewed when it was due.
        "silence": round((limits.lease_s - limits.renew_every_s) * 1000),
        "rest": round((limits.lease_s + limits.sweep_rest_s) * 1000),
        "batch": limits.sweep_batch,
        "unclaimed": round(limits.unclaimed_s * 1000),
        "overdue": round(limits.overdue_s * 1000),
        "unrecorded": round(limits.unrecorded_s * 1000),
        "requeues": limits.lost_requeues,
        "dedup": limits.dedup_ms,
        "retry": limits.retry_base_ms,
        "paused": limits.paused_recheck_ms,
        "request": round(limits.cancel_request_s * 1000),
        "told": round(limits.progress_s * 1000),
        "acknowledged": round(limits.cancel_ack_s * 1000),
        "deliveries": limits.deliveries,
        "runs": round(limits.trigger_runs_s * 1000),
        "keep": {kind.value: keep._asdict() for kind, keep in RETENTION.items()},
    }
