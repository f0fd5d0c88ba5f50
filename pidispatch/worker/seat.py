"""This worker's place at a container engine: one worker per engine, and nothing left there by the one before it.

A second worker at the same engine would remove the first one's running containers, so the place is a lock by the
engine's own id. What a killed worker left is settled before anything new is started (docs/explanation/queue.md).
"""

import threading
from collections.abc import Callable

from filelock import FileLock

from pidispatch.box.engine import Engine
from pidispatch.config.log import log
from pidispatch.values.errors import ConfigError, InfraError
from pidispatch.workspace.locks import engine_lock


class Seat:
    """The engine, once it answers and is ours. `reap` is called until it says that nothing is left.

    `taken` is told, once consuming has begun, why this worker can never have the engine.
    """

    def __init__(
        self,
        connect: Callable[[], Engine],
        reap: Callable[[Engine], bool],
        taken: Callable[[ConfigError], None],
    ) -> None:
        self._connect = connect
        self._reap = reap
        self._taken = taken
        self._lock = threading.Lock()
        self._engine: Engine | None = None
        self._held: FileLock | None = None
        # How often it was to be cleared, and up to which of these it is.
        self._wanted = 1
        self._cleared = 0
        self.engine_id = ""

    def engine(self) -> Engine:
        """The engine, ours and clean. Raises `InfraError` where it does not answer or another worker has it.

        In the latter case this worker is of no use, which `taken` is told.
        """
        with self._lock:
            try:
                return self._ours()
            except ConfigError as error:
                self._taken(error)
                raise InfraError(error.message, error.cause) from None

    def sit_down(self) -> None:
        """Take the place while nothing is consumed yet. Raises `ConfigError` where another worker has it.

        An engine that does not answer is asked again when a job needs it.
        """
        with self._lock:
            try:
                self._ours()
            except InfraError as error:
                log().warning("reaper_skipped", cause=error.cause)

    def _ours(self) -> Engine:
        engine = self._engine or self._connect()
        self._engine = engine
        if self._held is None:
            engine_id = engine.facts().id
            self._held = engine_lock(engine_id)
            self.engine_id = engine_id
        wanted = self._wanted
        if self._cleared < wanted and self._reap(engine):
            # One that was asked for meanwhile is still to come.
            self._cleared = wanted
        return engine

    def look_again(self) -> None:
        """Clear up once more before the next job: one that failed may have left something behind."""
        self._wanted += 1

    def leave(self) -> None:
        """Close the connection and give up the place."""
        with self._lock:
            if self._engine is not None:
                self._engine.close()
            if self._held is not None:
                self._held.release()
            self._engine = self._held = None
