"""Who holds a job, as its lease says it: the worker, its engine, and a nonce that is new for every delivery."""

import secrets

from pidispatch.worker.seat import Seat


class Owner:
    """Makes the owners of this worker's leases."""

    def __init__(self, worker: str, seat: Seat) -> None:
        self._worker = worker
        self._seat = seat

    def __call__(self) -> str:
        """`<worker>#<engine id>#<nonce>`; the engine's id is empty while it has not answered yet."""
        return f"{self._worker}#{self._seat.engine_id}#{secrets.token_hex(8)}"
