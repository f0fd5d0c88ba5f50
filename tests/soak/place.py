"""Where a soak takes place: one server, two engines with a worker each, folders to work in, and who hands jobs in."""

import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any, Final, Self

from celery import Celery

from pidispatch.config.settings import Settings
from pidispatch.jobs.celery_defaults import SHARED_QUEUE
from pidispatch.jobs.producer import TASK, producer, publish
from pidispatch.jobs.store import JobStore
from pidispatch.server.address import Address
from pidispatch.server.client import connect
from pidispatch.values.errors import InfraError
from pidispatch.values.job import LocalJob
from pidispatch.values.limits import Limits
from tests.soak.engines import SoakEngine
from tests.soak.limits import tenth
from tests.soak.plan import FOLDERS, WORKERS, PlannedJob, Script
from tests.soak.stub import IGNORED
from tests.soak.supervisor import Supervised
from tests.support.program import PROGRAM
from tests.support.repository import make_repository
from tests.support.server import OwnServer
from tests.support.settings import settings_of

ROOT: Final = Path(__file__).resolve().parents[2]
PREFIX: Final = "soak:"
#: Jobs at a time of each worker.
SLOTS: Final = 4
#: Seconds between two tries to hand in a job whose server is away.
_AGAIN_S: Final = 0.2
#: Seconds `pi-dispatch cancel` may take.
_CANCEL_S: Final = 90


class Place:
    """Everything of a soak. What it started is ended with it; its folder stays where `keep` was called."""

    def __init__(self) -> None:
        # Short, because the path of a unix socket is bounded.
        self.folder = Path(tempfile.mkdtemp(prefix="pi-soak-", dir="/var/tmp"))
        self.limits = tenth(Limits())
        self.engines: list[SoakEngine] = []
        self.workers: list[Supervised] = []
        self.logs = self.folder / "worker-logs"
        self.records = self.folder / "records"
        self._open = ExitStack()
        self._keep = False

    def __enter__(self) -> Self:
        try:
            self._set_up()
        except BaseException:
            self.keep()
            self.__exit__()
            raise
        return self

    def _set_up(self) -> None:
        self.logs.mkdir()
        self.server = self._open.enter_context(OwnServer("valkey", self.folder / "server"))
        with ThreadPoolExecutor(len(WORKERS)) as pool:
            made = [SoakEngine(self.folder / f"engine-{name}", name) for name in WORKERS]
            list(pool.map(lambda engine: self._open.enter_context(engine), made))
        self.engines = made
        self._make_folders()
        self.address = Address.of(self._settings())
        self.store = JobStore(self._open.enter_context(closing(connect(self.address))), PREFIX, self.limits)
        self.producer: Celery = producer(self._settings(), self.address, self.limits)
        command = [sys.executable, "-m", "tests.soak.worker"]
        for engine in self.engines:
            worker = Supervised(engine.worker, command, self.environment(engine), ROOT, self.logs)
            self.workers.append(worker)
            self._open.callback(worker.kill)
            worker.start()

    def _make_folders(self) -> None:
        for number in range(FOLDERS):
            make_repository(self.repository(number), {"README.md": "# Sample\n", ".gitignore": IGNORED})
        make_repository(self.dirty).write("unsaved.txt", "not committed\n")

    def repository(self, number: int) -> Path:
        """A folder to work in."""
        return self.folder / "folders" / f"f{number}"

    @property
    def dirty(self) -> Path:
        """The folder in which no job may work."""
        return self.folder / "folders" / "dirty"

    def environment(self, engine: SoakEngine) -> dict[str, str]:
        """The closed environment of the worker of an engine, and of programs beside it."""
        home = self.folder / engine.worker
        home.mkdir(exist_ok=True)
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(home),
            "LANG": "C.UTF-8",
            "DOCKER_HOST": engine.host,
            "PI_JOBS_DIR": str(home / "jobs"),
            "PI_STATE_DIR": str(home / "state"),
            "PI_LOGS_DIR": str(self.records),
            "PI_JOB_IMAGE": engine.image,
            "PI_EGRESS_PROXY": engine.neighbour.name,
            "PI_KEY_PREFIX": PREFIX,
            "PI_WORKER_NAME": engine.worker,
            "PI_CONCURRENCY": str(SLOTS),
            "ANTHROPIC_API_KEY": "k",
            # All are counted, and none is refused.
            "PI_DAILY_CAP": "100000",
            "PI_WEEKLY_CAP": "100000",
            "VALKEY_URL": self.server.url,
            "PI_SOAK_ENGINE": f"{self.folder.name}-{engine.worker}",
        }

    def _settings(self) -> Settings:
        return settings_of(self.environment(self.engines[0]))

    def hand_in(self, planned: PlannedJob, pause: threading.Event) -> bool:
        """Hand in a job and publish its ticket, however long the server is away; whether it was accepted.

        False only where `pause` was set before an answer came: then nobody knows.
        """
        job, queue = self._job(planned), f"{SHARED_QUEUE}@{planned.worker}" if planned.worker else SHARED_QUEUE
        while True:
            try:
                submitted = self.store.submit(job, queue=queue)
                break
            except InfraError:
                # Under its id: an answer may have been lost, and then it is known already.
                if pause.wait(_AGAIN_S):
                    return False
        if submitted.ticket is not None:
            # What is not published, a sweep publishes.
            with contextlib.suppress(InfraError):
                publish(self.producer, submitted.ticket)
        return True

    def _job(self, planned: PlannedJob) -> LocalJob:
        refused = planned.script is Script.REFUSED
        return LocalJob(
            id=planned.id,
            folder=self.dirty if refused else self.repository(planned.folder),
            task="Do as scripted.",
            model=f"{planned.script}-{planned.works_s}",
            allow_dirty=not refused,
        )

    def cancel(self, job_id: str) -> bool:
        """Call the real `pi-dispatch cancel`; whether it said that the job is cancelled."""
        done = subprocess.run(
            [PROGRAM, "cancel", job_id, "--json"],
            env=self.environment(self.engines[0]),
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=_CANCEL_S,
            check=False,
        )
        return done.returncode == 0 and bool(json.loads(done.stdout)["cancelled"])

    def tickets(self, client: Any) -> list[str]:
        """The ids of the jobs whose tickets lie in a queue, or are held by a worker."""
        queues = [SHARED_QUEUE, *(f"{SHARED_QUEUE}@{name}" for name in WORKERS)]
        messages = [json.loads(raw) for queue in queues for raw in client.lrange(f"{PREFIX}{queue}", 0, -1)]
        messages += [json.loads(raw)[0] for raw in client.hvals(f"{PREFIX}unacked")]
        return [str(one["headers"]["id"]) for one in messages if one["headers"].get("task") == TASK]

    def keep(self) -> None:
        """Leave the folder for a look."""
        self._keep = True

    def __exit__(self, *_: object) -> None:
        self._open.close()
        # The locks of engines that there never were.
        for path in Path("/run/lock").glob(f"pi-dispatch-*{self.folder.name}-*.lock"):
            path.unlink(missing_ok=True)
        if self._keep:
            # Of the engines only their data is large, and it is gone with them.
            shutil.rmtree(self.folder / "folders", ignore_errors=True)
        else:
            shutil.rmtree(self.folder, ignore_errors=True)
