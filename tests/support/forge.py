"""From an event on the edge to what the agent did there: a deployment with a receiver, a worker and a GitHub App."""

import json
import secrets
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from pidispatch.runs.records import RecordStore
from pidispatch.values.record import RunRecord
from tests.fakes.github.edge import Edge
from tests.fakes.github.payloads import SECRET
from tests.support.model import ModelContainer
from tests.support.program import PROGRAM, RUN_S, How, Program, Stage, WorkerRun, make_stage
from tests.support.server import free_port, until

#: Id of the App's installation.
INSTALLATION: Final = 88
#: Files of a repository that is served: a flow that does what the name of its model says.
FILES = {
    "README.md": "# Sample\n",
    "greet.py": 'print("Helo")\n',
    ".pi/skills/fix/SKILL.md": "---\nname: fix\ndescription: Mends things.\n---\n\nMend it.\n",
    ".pi/skills/triage/SKILL.md": "---\nname: triage\ndescription: Sorts things.\n---\n\nSort it.\n",
}


def label_rule(label: str, model: str, **run: Any) -> dict[str, Any]:
    """A rule that starts a job of this scripted model where an issue has the label."""
    return {"on": {"type": "label", "any": [label]}, "run": {"kind": "github", "flow": "fix", "model": model, **run}}


@dataclass
class Forge:
    """A deployment that hears an edge of its own. One for all tests of a file: each has a repository of its own."""

    stage: Stage
    edge: Edge
    folder: Path
    rules: list[dict[str, Any]]
    #: Settings beside those of the App.
    variables: Mapping[str, str] = field(default_factory=dict)
    port: int = field(default_factory=free_port)
    #: Worker and receiver, where both run for all tests of a file.
    at_work: tuple[WorkerRun, WorkerRun] = field(init=False)

    @property
    def environment(self) -> dict[str, str]:
        """What both programs get."""
        file = self.folder / "triggers.json"
        return {
            **self.edge.app_variables(self.folder),
            "PI_TRIGGERS_FILE": str(file),
            "PI_LOGS_DIR": str(self.stage.home / "logs"),
            "WEBHOOK_SECRET": SECRET,
            "RECEIVER_BIND": "127.0.0.1",
            "RECEIVER_PORT": str(self.port),
            **self.variables,
        }

    def write(self) -> None:
        """Put the rules in force for programs that start."""
        (self.folder / "triggers.json").write_text(json.dumps({"triggers": self.rules}))

    @contextmanager
    def worker(self, how: How | None = None, /, **changes: str | None) -> Iterator[WorkerRun]:
        """A worker of it."""
        # Workers of other tests may be at the same engine.
        how = replace(how or How(), engine="forge")
        with self.stage.worker(how, **{**self.environment, **changes}) as worker:
            yield worker

    @contextmanager
    def receiver(self, *verb: str, **changes: str | None) -> Iterator[WorkerRun]:
        """Its receiver, which hears every webhook; `verb`: `poll`."""
        with receiving(
            self.stage, self.environment | {k: v for k, v in changes.items() if v is not None}, *verb
        ) as run:
            hook = None if verb else self.edge.hook(f"http://127.0.0.1:{self.port}/")
            try:
                yield run
            finally:
                if hook is not None:
                    self.edge.hooks.hooks.remove(hook)

    def repository(self, **more: Any) -> str:
        """A fresh repository on which the App is installed; its name."""
        name = f"acme/{more.pop('name', None) or f'web-{secrets.token_hex(3)}'}"
        self.edge.repository(name, more.pop("files", FILES), **more)
        self.edge.state.installations[INSTALLATION].repositories.add(name)
        return name

    def record(self, target: str, count: int = 1) -> RunRecord:
        """The one record of a target, once it is final."""
        return self.records(target, count)[0]

    def records(self, target: str, count: int) -> list[RunRecord]:
        """So many records of a target, each final, oldest first."""
        store = RecordStore(self.stage.home / "logs")

        def found() -> list[RunRecord] | None:
            ids = [path.stem for path in (self.stage.home / "logs").glob("gh-*.json")]
            all_ = [one for one in map(store.find, ids) if one is not None and one.target == target and one.final]
            return sorted(all_, key=lambda one: one.job_id) if len(all_) >= count else None

        return until(found, f"{count} records of {target}", RUN_S)

    def comments(self, repo: str, number: int, count: int = 1) -> list[str]:
        """So many comments, once they are there."""
        return until(
            lambda: said if len(said := self.edge.comments(number, repo)) >= count else None,
            f"{count} comments on {repo}#{number}",
            RUN_S,
        )


@contextmanager
def deployed(folder: Path, image: str, model: ModelContainer, rules: Sequence[Mapping[str, Any]]) -> Iterator[Forge]:
    """A deployment in `folder` at which nothing runs yet, and its edge, on which the App is installed."""
    stage = make_stage(folder / "stage", image, model)
    with Edge(folder / "edge", model.edge_socket) as edge:
        edge.repository("acme/first")
        edge.install("acme/first")
        forge = Forge(stage, edge, folder, [dict(rule) for rule in rules])
        forge.write()
        yield forge
    stage.close()


@contextmanager
def receiving(program: Program, environment: Mapping[str, str], *verb: str) -> Iterator[WorkerRun]:
    """A real receiver or poller beside a program, until the block ends."""
    path = program.home / f"receiver-{secrets.token_hex(4)}.log"
    with path.open("wb") as log:
        process = subprocess.Popen(
            [PROGRAM, "receiver", *verb],
            env=program.environment(**environment),
            cwd=program.home,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
    run = WorkerRun(process, path)
    try:
        started = "poller_started" if verb else "receiver_started"
        until(lambda: run.events(started) or process.poll() is not None, "the receiver", 30)
        assert process.poll() is None, run.log
        yield run
    finally:
        if process.poll() is None:
            run.stop()
