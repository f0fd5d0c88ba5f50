"""The kill switch: queues of which no job is started, durable until somebody takes it back.

`JobStore.acquire` asks for it in the same step in which it would take the job. Workers look now and then, so that they
fetch nothing that they would only put to sleep (docs/explanation/queue.md).
"""

from collections.abc import Collection, Iterable
from datetime import datetime
from typing import Any, Final

from pidispatch.jobs.calls import Calls
from pidispatch.jobs.keys import PAUSED, QUEUES
from pidispatch.values.epoch import from_ms

#: In the place of a queue's name: all of them, also those that come later.
EVERY: Final = "*"
_LONG_AGO: Final = from_ms(0)


class Pausing(Calls):
    """Pausing and resuming."""

    def pause(self, queues: Iterable[str]) -> None:
        """Start no job of `queues` from now on. One that is paused already keeps its instant. Raises `InfraError`."""
        asked = list(queues)
        seconds, micros = self._ask(lambda: _time(self._client))
        now = seconds * 1000 + micros // 1000
        with self._client.pipeline(transaction=True) as all_of_it:
            for queue in asked:
                all_of_it.set(self._key(PAUSED, queue), now, nx=True)
                if queue != EVERY:
                    # So that it is looked for, and seen.
                    all_of_it.sadd(self._key(QUEUES), queue)
            self._ask(all_of_it.execute)

    def resume(self, queues: Iterable[str]) -> tuple[str, ...]:
        """Start jobs of `queues` again; those of them that were paused. Raises `InfraError`."""
        asked = list(queues)
        with self._client.pipeline(transaction=True) as all_of_it:
            for queue in asked:
                all_of_it.delete(self._key(PAUSED, queue))
            gone = self._ask(all_of_it.execute)
        return tuple(queue for queue, was in zip(asked, gone, strict=True) if was)

    def paused(self, queues: Iterable[str] = ()) -> dict[str, datetime]:
        """Since when which queues are paused, of `queues` and of all that ever had a job; `*` where all of them are.

        Raises `InfraError`.
        """
        known = self._ask(lambda: self._client.smembers(self._key(QUEUES)))
        names = sorted({EVERY, *queues, *(str(name) for name in known)})
        found = self._ask(lambda: self._client.mget([self._key(PAUSED, name) for name in names]))
        told = {name: since(text) for name, text in zip(names, found, strict=True)}
        return {name: instant for name, instant in told.items() if instant is not None}


def paused_state(queues: Collection[str], paused: Collection[str]) -> str:
    """`running`, `paused` or `part-paused`: `queues` in one word, those of `paused` being so, `*` all of them."""
    if EVERY in paused or (paused and set(queues) <= set(paused)):
        return "paused"
    return "part-paused" if paused else "running"


def instant(milliseconds: Any) -> datetime:
    """An instant of the server's clock. Raises `ValueError` for what is none."""
    try:
        return from_ms(int(milliseconds))
    except (TypeError, OverflowError) as error:
        raise ValueError(str(error)) from None


def since(text: Any) -> datetime | None:
    """Since when a queue is paused, by what its key holds. Whatever that is, a key that is there pauses."""
    try:
        return None if text is None else instant(text)
    except ValueError:
        return _LONG_AGO


def _time(client: Any) -> tuple[int, int]:
    seconds, micros = client.time()
    return int(seconds), int(micros)
