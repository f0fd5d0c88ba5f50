"""`pi-dispatch worker`: takes jobs from the queue and runs them, until it is told to stop."""

import click


@click.command()
def worker() -> int:
    """Take jobs from the queue and run them on this machine, until told to stop (Ctrl-C, SIGTERM).

    Without VALKEY_URL it starts pi-dispatch's own server. Being told to stop, it ends the jobs that run, writes their
    records and leaves within seconds; what waits goes on waiting. One worker serves one container engine.

    Exit code: 0 after a clean stop, 1 the surroundings failed, 2 refused.
    """
    # Celery takes a third of a second to load, which no other verb should pay.
    from pidispatch.worker.program import run_worker

    return run_worker()
