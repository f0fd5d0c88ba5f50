"""The engines of a soak, each with a neighbour for its jobs; what both saw is what the judge counts by."""

import contextlib
import secrets
import subprocess
import threading
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any, Self

import docker

from pidispatch.values.names import JOB_PREFIX, LABEL_ATTEMPT, LABEL_DEPLOYMENT, LABEL_JOB
from tests.soak.judge import Ask, Start
from tests.soak.stub import ASKED, soak_image
from tests.support.box import ENGINE_SCRIPTS
from tests.support.server import until

#: Seconds an engine may take to start, and its last event to come.
_UP_S, _LAST_EVENT_S = 180, 20
_NANO = 1e9


class Starts:
    """What an engine tells of job containers while it is followed: which were started, and how they ended."""

    def __init__(self, client: docker.DockerClient, engine: str) -> None:
        self._engine = engine
        self._events = client.events(decode=True, filters={"type": "container", "event": ["start", "die"]})
        self._lock = threading.Lock()
        self._seen: dict[str, tuple[str, Start]] = {}
        self._closing = threading.Event()
        #: Why the engine could not be followed to the end: then nothing that was counted is proof.
        self.broken: str | None = None
        self._thread = threading.Thread(target=self._follow, daemon=True)
        self._thread.start()

    def _follow(self) -> None:
        try:
            for event in self._events:
                self._take(event)
            ended = "the engine's events ended"
        except Exception as error:
            ended = f"{type(error).__name__}: {error}"
        if not self._closing.is_set():
            self.broken = ended

    def _take(self, event: dict[str, Any]) -> None:
        container, told, at = event["Actor"]["ID"], event["Actor"]["Attributes"], event["timeNano"] / _NANO
        with self._lock:
            if event["Action"] == "start" and LABEL_JOB in told:
                start = Start(container, int(told[LABEL_ATTEMPT]), self._engine, at)
                self._seen[container] = (told[LABEL_JOB], start)
            elif event["Action"] == "die" and container in self._seen:
                job_id, start = self._seen[container]
                self._seen[container] = (job_id, replace(start, ended_at=at, code=int(told["exitCode"])))

    def by_job(self) -> dict[str, list[Start]]:
        """Every start so far, by the job's id, in their order."""
        found: dict[str, list[Start]] = {}
        with self._lock:
            for job_id, start in self._seen.values():
                found.setdefault(job_id, []).append(start)
        return found

    def await_last(self) -> None:
        """Wait until every started container has ended; one that has not is judged as it is."""
        with contextlib.suppress(TimeoutError):
            until(self._all_ended, "the last containers to end", _LAST_EVENT_S)

    def _all_ended(self) -> bool:
        with self._lock:
            return all(start.ended_at is not None for _, start in self._seen.values())

    def close(self) -> None:
        """Stop following."""
        self._closing.set()
        self._events.close()
        self._thread.join(5)


class CountingNeighbour:
    """The one container that jobs of an engine can reach; its log is the account of what was asked."""

    def __init__(self, client: docker.DockerClient, image: str) -> None:
        self.name = f"pi-soak-neighbour-{secrets.token_hex(4)}"
        client.networks.create(f"{self.name}-net", internal=True)
        self._client = client
        container = client.containers.create(
            image, ["listen"], name=self.name, network=f"{self.name}-net", init=True, read_only=True
        )
        container.start()
        self._id = str(container.id)

    def by_job(self) -> dict[str, list[Ask]]:
        """Every question so far, by the id of the job whose container asked."""
        found: dict[str, list[Ask]] = {}
        text: bytes = self._client.api.logs(self._id, timestamps=True)
        for line in text.decode().splitlines():
            instant, _, said = line.partition(" ")
            if said.startswith(ASKED):
                name, _, container = said.removeprefix(f"{ASKED}/").partition("/")
                found.setdefault(name.removeprefix(JOB_PREFIX), []).append(Ask(container, _seconds(instant)))
        return found


def _seconds(instant: str) -> float:
    """Seconds since 1970 of an instant as the engine writes it, to the nanosecond."""
    whole, _, part = instant.removesuffix("Z").partition(".")
    return datetime.fromisoformat(f"{whole}+00:00").timestamp() + float(f"0.{part or 0}")


class SoakEngine:
    """An engine of the soak's own in `folder`, for one worker; everything of it is gone at its end."""

    def __init__(self, folder: Path, worker: str) -> None:
        self.folder = folder
        self.worker = worker

    def __enter__(self) -> Self:
        done = subprocess.run(
            [ENGINE_SCRIPTS / "up", str(self.folder)], stdout=subprocess.PIPE, text=True, check=True, timeout=_UP_S
        )
        try:
            self.host = done.stdout.strip().splitlines()[-1].removeprefix("DOCKER_HOST=")
            self.client = docker.DockerClient(base_url=self.host, version="auto", timeout=60)
            context = self.folder / "image"
            context.mkdir()
            self.image = soak_image(self.client, context)
            self.neighbour = CountingNeighbour(self.client, self.image)
            # Events come by a client of their own, as each of them is read for as long as the soak goes on.
            self._followed = docker.DockerClient(base_url=self.host, version="auto", timeout=60)
            self.starts = Starts(self._followed, self.worker)
        except BaseException:
            self._down()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.starts.close()
        self._followed.close()
        self.client.close()
        self._down()

    def _down(self) -> None:
        subprocess.run([ENGINE_SCRIPTS / "down", "--purge", str(self.folder)], check=False, capture_output=True)

    def left(self) -> Iterator[str]:
        """Job containers and job networks that are there, and what the neighbour is still connected to."""
        found = self.client.api.containers(all=True, filters={"label": LABEL_DEPLOYMENT})
        yield from (f"container {one['Names'][0].removeprefix('/')} ({one['State']})" for one in found)
        yield from (f"network {one['Name']}" for one in self.client.api.networks(filters={"label": LABEL_DEPLOYMENT}))
        connected = self.client.api.inspect_container(self.neighbour.name)["NetworkSettings"]["Networks"]
        yield from (f"connection to {one}" for one in connected if one != f"{self.neighbour.name}-net")
