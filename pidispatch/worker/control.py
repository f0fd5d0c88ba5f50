"""`revoke`, as Flower and `celery control` send it: the store hears it first, so that it outlives this process."""

from typing import Any

from celery.worker.control import Panel, control_command

from pidispatch.worker.station import station_of


def override_revoke() -> None:
    """Put ours in the place of Celery's own, which ours calls."""
    original = Panel.data["revoke"]
    if getattr(original, "of_pi_dispatch", False):
        return

    @control_command(name="revoke", variadic="task_id", signature="[id1 [id2 [... [idN]]]]")
    def revoke(state: Any, task_id: Any, terminate: bool = False, signal: Any = None, **kwargs: Any) -> Any:
        station = station_of(state.app)
        if station is not None:
            for job_id in [task_id] if isinstance(task_id, str) else list(task_id or ()):
                station.orders.cancel_waiting(job_id)
                if terminate:
                    # Celery forgets what runs when its connection breaks.
                    station.orders.end_running(job_id)
        return original(state, task_id, terminate, signal, **kwargs)

    revoke.of_pi_dispatch = True  # type: ignore[attr-defined]
