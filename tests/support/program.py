"""Runs of the real program, as a user would start it, against the scripted model."""

import json
import os
import secrets
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import docker

from pidispatch.box.engine import Engine
from pidispatch.config.clock import SystemClock
from pidispatch.config.settings import Settings
from pidispatch.runs.attempt import Attempt
from pidispatch.values.limits import Limits
from tests.support.model import ModelContainer, write_overlay

#: Seconds a run of the program may take before a test gives it up.
RUN_S = 120
PROGRAM = str(Path(sys.executable).parent / "pi-dispatch")


def await_line(process: "subprocess.Popen[str]", words: str) -> None:
    """Read the program's progress up to the line with `words`."""
    assert process.stderr is not None
    seen = []
    for line in process.stderr:
        seen.append(line)
        if words in line:
            return
    raise AssertionError(f"{words!r} never came: {seen}")


@dataclass(frozen=True)
class Ran:
    """A run of the program that ended."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> dict[str, Any]:
        """What `--json` printed."""
        document: dict[str, Any] = json.loads(self.out)
        return document


@dataclass
class Program:
    """The program with a home of its own; `variables` are its environment beside what every program has."""

    home: Path
    variables: dict[str, str] = field(default_factory=dict)

    def environment(self, **changes: str | None) -> dict[str, str]:
        """The closed environment of the program; `None` takes a variable away."""
        given: dict[str, str | None] = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.home),
            "LANG": "C.UTF-8",
            "PI_JOBS_DIR": str(self.home / "jobs"),
            "PI_STATE_DIR": str(self.home / "state"),
            "ANTHROPIC_API_KEY": "k",
            **self.variables,
        }
        # Measuring coverage of the program started here is asked for by variables.
        given |= {name: value for name, value in os.environ.items() if name.startswith("COVERAGE_")}
        return {name: value for name, value in (given | changes).items() if value is not None}

    def start(self, *arguments: str, **changes: str | None) -> "subprocess.Popen[str]":
        """Start the program and return at once."""
        return subprocess.Popen(
            [PROGRAM, *arguments],
            env=self.environment(**changes),
            cwd=self.home,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def start_job(
        self, folder: Path, model: str = "m", *arguments: str, **changes: str | None
    ) -> "subprocess.Popen[str]":
        """Like `run_job`, without waiting for its end."""
        task = ("--task", "Do as scripted.", "--model", model, "--json")
        return self.start("run", str(folder), *task, *arguments, **changes)

    def run(self, *arguments: str, **changes: str | None) -> Ran:
        """Start the program and wait for its end."""
        with self.start(*arguments, **changes) as process:
            out, err = process.communicate(timeout=RUN_S)
        return Ran(process.returncode, out, err)

    def run_job(self, folder: Path, model: str = "m", *arguments: str, **changes: str | None) -> Ran:
        """`pi-dispatch run FOLDER --json` with the scripted model `model`."""
        return self.run(
            "run", str(folder), "--task", "Do as scripted.", "--model", model, "--json", *arguments, **changes
        )


@dataclass
class Stage(Program):
    """Everything a run needs besides its folder: engine, image, model and folders of its own."""

    image: str = field(kw_only=True)
    model: ModelContainer = field(kw_only=True)
    docker_host: str = field(kw_only=True)
    #: A key of this stage's own, so that its requests can be told from others' in the model's log.
    key: str = field(default_factory=lambda: f"key-{secrets.token_hex(6)}")

    def __post_init__(self) -> None:
        self.overlay = write_overlay(self.home / "overlay")
        self.variables = {
            "DOCKER_HOST": self.docker_host,
            "PI_JOB_IMAGE": self.image,
            "PI_GLOBAL_PI_DIR": str(self.overlay),
            "PI_EGRESS_PROXY": self.model.name,
            "ANTHROPIC_API_KEY": self.key,
            "OPENAI_API_KEY": self.key,
            "PI_FORWARD_ENV": "PI_RETRY_BASE_MS",
            # The agent's own retries, without their usual seconds of patience.
            "PI_RETRY_BASE_MS": "20",
        }

    def attempt(self, client: docker.DockerClient, limits: Limits) -> Attempt:
        """What the program runs a job with, inside of this process and with other limits."""
        environ = self.environment()
        settings = Settings.model_validate({name: value for name, value in environ.items() if name.startswith("PI_")})
        return Attempt(settings, lambda: Engine(client), lambda *_: None, limits, SystemClock(), environ)

    def requests(self) -> int:
        """How many requests of this stage reached the model: the proof of what was spent."""
        return len(self.model.log.requests(key=self.key))
