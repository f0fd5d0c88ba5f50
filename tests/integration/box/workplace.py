"""Everything an attempt needs besides its folder, with a small image whose program is a test's."""

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import docker

from pidispatch.box.engine import Engine
from pidispatch.config.clock import SystemClock
from pidispatch.config.settings import Settings
from pidispatch.runs.attempt import Attempt
from pidispatch.values.job import LocalJob
from pidispatch.values.limits import Limits
from pidispatch.values.record import Result
from tests.image.assemble import ensure_probe
from tests.support.box import program_image
from tests.support.repository import make_repository

#: Works until it is ended where the folder says so, and otherwise ends at once by itself.
STUB = """#!/bin/sh
echo at work
while [ -e /workspace/long ]; do sleep 0.1; done
echo '{"event":"exit","jobId":"x","code":0,"reason":"stop","turns":4}'
"""


class Workplace:
    """Folders, settings, an image and a neighbour; and what `finish` was told."""

    def __init__(self, client: docker.DockerClient, home: Path) -> None:
        self.client = client
        self.home = home
        self.image = program_image(client, home, STUB)
        self.name = f"gate-{secrets.token_hex(4)}"
        self.network = client.networks.create(self.name, internal=True)
        self.gate = client.containers.create(ensure_probe(client), ["sleep", "600"], name=self.name, network=self.name)
        self.gate.start()
        variables = {
            "PI_JOBS_DIR": str(home / "jobs"),
            "PI_STATE_DIR": str(home / "state"),
            "PI_LOGS_DIR": str(home / "logs"),
            "PI_JOB_IMAGE": self.image,
            "PI_EGRESS_PROXY": self.name,
        }
        self.settings = Settings.model_validate(variables)
        self.repository = make_repository(home / "site")
        self.finished: list[Result] = []

    def job(self) -> LocalJob:
        """A job of a fresh id in the one repository."""
        return LocalJob(id=f"local-{secrets.token_hex(8)}", folder=self.repository.path, task="x", allow_dirty=True)

    def attempt(self, **seams: Any) -> Attempt:
        """What runs attempts here."""
        return Attempt(
            self.settings,
            lambda: Engine(self.client),
            lambda _job, result: self.finished.append(result),
            Limits(stop_grace_s=1),
            SystemClock(),
            {"ANTHROPIC_API_KEY": "k"},
            **seams,
        )

    def job_dirs(self) -> list[Path]:
        """The directories of attempts that are left."""
        return sorted((self.home / "jobs").glob("job-*"))


@contextmanager
def workplace(client: docker.DockerClient, home: Path) -> Iterator[Workplace]:
    """One that is removed at the end."""
    place = Workplace(client, home)
    try:
        yield place
    finally:
        place.gate.remove(force=True)
        place.network.remove()
        client.images.remove(place.image, force=True)
