"""A Flower of a deployment's own, behind a password: the real program on a free port of the loopback interface."""

import base64
import json
import re
import secrets
import subprocess
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.support.program import CELERY
from tests.support.server import until

USER = "operator"
#: Seconds until it answers, hears or shows what it is waited for.
FLOWER_S = 60.0
#: Where it says which port it was given.
_VISIT = re.compile(r"Visit me at (http://\S+)")


@dataclass(frozen=True)
class Answer:
    """What it answered."""

    status: int
    text: str

    @property
    def document(self) -> Any:
        """The answer as JSON."""
        return json.loads(self.text)


@dataclass
class Flower:
    """One that runs. `account` is what lets in: user and password, with a colon between them."""

    url: str
    account: str
    log_path: Path

    @property
    def log(self) -> str:
        """What it has logged so far."""
        return self.log_path.read_text(errors="replace")

    def ask(self, path: str, *, method: str = "GET") -> Answer:
        """Its answer to one who has the password."""
        return self.ask_as(self.account, path, method=method)

    def ask_as(self, account: str | None, path: str, *, method: str = "GET") -> Answer:
        """Its answer to this account, or to nobody's."""
        request = urllib.request.Request(self.url + path, method=method)
        if account is not None:
            request.add_header("Authorization", f"Basic {base64.b64encode(account.encode()).decode()}")
        try:
            with urllib.request.urlopen(request, timeout=FLOWER_S) as answer:
                return Answer(answer.status, answer.read().decode())
        except urllib.error.HTTPError as error:
            with error:
                return Answer(error.code, error.read().decode())

    def task(self, job_id: str) -> dict[str, Any]:
        """What it shows of a job; nothing of one that it has not heard of."""
        answer = self.ask(f"/api/task/info/{job_id}")
        return dict(answer.document) if answer.status == 200 else {}

    def await_task(self, job_id: str, *states: str, seconds: float = FLOWER_S) -> dict[str, Any]:
        """Wait until it shows the job in one of these states; what it shows then."""

        def found() -> dict[str, Any] | None:
            task = self.task(job_id)
            return task if task.get("state") in states else None

        try:
            return until(found, f"Flower to show {job_id} as {states}", seconds)
        except TimeoutError as error:
            error.add_note(f"it shows {self.task(job_id)}")
            raise

    def await_worker(self, beat: Callable[[], object]) -> dict[str, Any]:
        """Wait until it hears a worker, which it does only some time after it answers: from then on it misses nothing.

        `beat` has workers send a heartbeat at once, as `celery control heartbeat` does.
        """

        def heard() -> list[dict[str, Any]]:
            beat()
            return list(self.ask("/workers?json=1").document["data"])

        return until(heard, f"Flower to hear a worker; it says {self.log[-1500:]}", FLOWER_S)[0]


@dataclass
class FlowerProgram:
    """How it is started: with the environment of its deployment, in a folder of its own."""

    environment: Mapping[str, str]
    folder: Path
    options: Mapping[str, str] = field(default_factory=dict)
    account: str = field(default_factory=lambda: f"{USER}:{secrets.token_urlsafe(16)}")

    @contextmanager
    def running(self) -> Iterator[Flower]:
        """It answers for as long as the block goes on."""
        log_path = self.folder / "flower.log"
        with log_path.open("wb") as log:
            process = self.start(log)
        try:
            yield Flower(until(lambda: _url(process, log_path), "Flower to begin", FLOWER_S), self.account, log_path)
        finally:
            process.terminate()
            try:
                process.wait(FLOWER_S)
            finally:
                process.kill()

    def start(self, log: Any) -> "subprocess.Popen[bytes]":
        """Start the program; all that it says goes to the open file `log`."""
        return subprocess.Popen(
            # Port 0 is one that is free.
            [CELERY, "-A", "pidispatch", "flower", "--address=127.0.0.1", "--port=0"],
            # The password stands in the environment, and in no list of processes.
            env={**self.environment, **self.options, "FLOWER_BASIC_AUTH": self.account},
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )


def _url(process: "subprocess.Popen[bytes]", log_path: Path) -> str | None:
    """Where it answers, once it says so."""
    said = log_path.read_text(errors="replace")
    if process.poll() is not None:
        raise RuntimeError(f"Flower ended with exit code {process.returncode}: {said[-3000:]}")
    found = _VISIT.search(said)
    return found[1].rstrip("/") if found else None
