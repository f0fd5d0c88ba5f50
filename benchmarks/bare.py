"""The baseline of the queue's figures: a bare Celery application whose task does nothing.

Celery's defaults, so acknowledged when it is fetched, four tasks fetched ahead for each thread and no events, but no
result backend; its worker has the pool `threads`. BENCH_BROKER is the broker's URL, BENCH_SOCKET the server's socket.
"""

import os
import time

import redis
from celery import Celery

app = Celery("bare", broker=os.environ["BENCH_BROKER"])


@app.task(ignore_result=True)
def noop() -> None:
    """Do nothing."""


@app.task(ignore_result=True)
def stamp(key: str) -> None:
    """Keep the instant at which it started."""
    now = time.time()
    with redis.Redis(unix_socket_path=os.environ["BENCH_SOCKET"]) as client:
        client.set(key, repr(now))
