"""From the death of a worker to everything that it held being recorded or running elsewhere, with the real limits."""

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import docker

from benchmarks.measure import Quantity
from benchmarks.scratch import scratch
from pidispatch.values.limits import Limits
from tests.support.post import QUICK, Neighbour, Post, stub_image
from tests.support.server import OwnServer, until

#: Those that a test makes small, as a worker has them.
_REAL = {name: getattr(Limits(), name) for name in QUICK}
_QUEUE = "pi-jobs"
#: Seconds that the held job sleeps; long enough to set the stage.
_SLEEP_S = 20.0
BOUND_S = 150
_PATIENCE_S = 300.0


def recovery(client: docker.DockerClient) -> Iterator[Quantity]:
    """A worker is killed with a job whose container runs and one that sleeps; another worker is there."""
    with _post(client) as post:
        worker = post.worker("w1", limits=_REAL, PI_CONCURRENCY="1")
        deaf = post.folder / "deaf"
        deaf.touch()
        # At work on another engine, and fetching nothing until all is set.
        post.worker("w2", limits=_REAL, told={"deaf": str(deaf)})
        held = post.hold(post.job(), _SLEEP_S, queue=_QUEUE)
        until(lambda: post.fetched() == [held], "it to be held", _PATIENCE_S)
        running = post.submit(post.job("sleep-600"), queue=_QUEUE)
        post.await_starts(running)
        worker.kill()
        deaf.unlink()
        began = time.perf_counter()
        waiting: dict[str, Callable[[], bool]] = {
            "lost": lambda: running in post.records(),
            "held": lambda: post.starts.of(held) > 0,
        }
        took: dict[str, float] = {}

        def all_there() -> bool:
            now = time.perf_counter() - began
            took.update({name: now for name, there in waiting.items() if name not in took and there()})
            return len(took) == len(waiting)

        until(all_there, "everything to be recovered", _PATIENCE_S)
        record = post.record(running)
    if record["reason"] != "worker-lost":
        raise RuntimeError(f"the benchmark's own job was not lost with its worker: {record}")
    what = "kill -9 of its worker to"
    yield Quantity("recovery of a running job", f"{what} its record, worker-lost", "s", 1, took["lost"], bound=BOUND_S)
    yield Quantity("recovery of a held job", f"{what} its container", "s", 1, took["held"], bound=BOUND_S)


@contextmanager
def _post(client: docker.DockerClient) -> Iterator[Post]:
    with ExitStack() as open_:
        place = Path(open_.enter_context(scratch()))
        image = stub_image(client, place)
        open_.callback(lambda: client.images.remove(image, force=True))
        neighbour = Neighbour(client)
        open_.callback(neighbour.remove)
        server = open_.enter_context(OwnServer("valkey", place / "server"))
        yield open_.enter_context(Post(client, image, neighbour.name, server))
