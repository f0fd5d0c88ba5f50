"""What is only looked at: how far a run is, how it ended, which workers are there. Nothing is decided on it."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from pidispatch.jobs.calls import Calls
from pidispatch.jobs.keys import PROGRESS, TOLD, WORKER, WORKERS
from pidispatch.jobs.rows import WorkerSeen


class Seen(Calls):
    """Progress, told ends, and workers."""

    def progress(self, job_id: str, turns: int, tokens: int) -> None:
        """Say how far a run is: its model turns and tokens. Raises `InfraError`."""
        key = self._key(PROGRESS, job_id)
        with self._client.pipeline(transaction=True) as both:
            both.hset(key, mapping={"turns": turns, "tokens": tokens})
            both.pexpire(key, self._progress_ms())
            self._ask(both.execute)

    def read_progress(self, job_id: str) -> tuple[int, int] | None:
        """Turns and tokens of a run so far; `None` where it has said nothing. Raises `InfraError`."""
        turns, tokens = self._ask(lambda: self._client.hmget(self._key(PROGRESS, job_id), ["turns", "tokens"]))
        return None if turns is None or tokens is None else (int(turns), int(tokens))

    def told(self, job_id: str) -> dict[str, Any] | None:
        """What was told with the end of an attempt; `None` where that is nothing. Raises `InfraError`."""
        text = self._ask(lambda: self._client.get(self._key(TOLD, job_id)))
        return None if text is None else dict(json.loads(str(text)))

    def counted(self, keys: Sequence[str]) -> dict[str, int]:
        """What these counters stand at, by their key without the prefix of all keys. Raises `InfraError`."""
        names = [f"{self._prefix}{key}" for key in keys]
        amounts = self._ask(lambda: self._client.mget(names))
        return {key: int(amount or 0) for key, amount in zip(keys, amounts, strict=True)}

    def beat(self, worker: str, fields: Mapping[str, str | int]) -> None:
        """Describe a worker anew; what it said before is gone. Raises `InfraError`."""
        key = self._key(WORKER, worker)
        described: dict[Any, Any] = {"name": worker, **fields}
        with self._client.pipeline(transaction=True) as all_of_it:
            all_of_it.delete(key)
            all_of_it.hset(key, mapping=described)
            all_of_it.pexpire(key, self._seen_ms())
            all_of_it.sadd(self._key(WORKERS), worker)
            self._ask(all_of_it.execute)

    def leave(self, worker: str) -> None:
        """Forget a worker that ends. Raises `InfraError`."""
        with self._client.pipeline(transaction=True) as both:
            both.delete(self._key(WORKER, worker))
            both.srem(self._key(WORKERS), worker)
            self._ask(both.execute)

    def workers(self) -> tuple[WorkerSeen, ...]:
        """Every worker that described itself within `Limits.worker_seen_s`, by name. Raises `InfraError`."""
        names = sorted(str(name) for name in self._ask(lambda: self._client.smembers(self._key(WORKERS))))
        with self._client.pipeline(transaction=False) as questions:
            for name in names:
                questions.hgetall(self._key(WORKER, name))
                questions.pttl(self._key(WORKER, name))
            answers = self._ask(questions.execute)
        found = zip(names, answers[::2], answers[1::2], strict=True)
        return tuple(
            WorkerSeen(name=name, fields=fields, age_ms=max(0, self._seen_ms() - left))
            for name, fields, left in found
            if fields
        )

    def _progress_ms(self) -> int:
        return round(self._limits.progress_s * 1000)

    def _seen_ms(self) -> int:
        return round(self._limits.worker_seen_s * 1000)
