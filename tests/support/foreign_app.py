"""Another Celery application, of somebody else: the same server, queue and task name, and no prefix of its own.

Its task notes each start in the file FOREIGN_STARTS, then waits for as many seconds as it is told.
"""

import os
import threading
from pathlib import Path

from celery import Celery

from pidispatch.jobs.producer import TASK

app = Celery("foreign", broker=os.environ["FOREIGN_BROKER"], set_as_current=False)
app.conf.update(task_default_queue="pi-jobs", task_acks_late=True, task_ignore_result=True)


@app.task(name=TASK)
def start(name: str, seconds: float = 0.0) -> None:
    """Note the start, and run on."""
    with Path(os.environ["FOREIGN_STARTS"]).open("a") as file:
        file.write(f"{name}\n")
    threading.Event().wait(seconds)
