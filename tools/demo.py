"""The main jobs, for real and offline: the pi agent edits a sample repository, and answers a labelled issue with a pull
request; a scripted model tells it what to do, and GitHub is a server of the tests'.

Everything between them is as a user would have it: the queue on pi-dispatch's own server, the receiver and its signed
webhooks, the worker and its checks, the box, the egress proxy, the record.

Needs an engine in DOCKER_HOST or at the default socket (tools/with-engine finds or starts one).
"""

import json
import os
import secrets
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import docker

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from pidispatch.box.egress import out_network  # noqa: E402 - the project's root must be on the path first
from pidispatch.config.allowlist import ALLOWLIST, PRIVATE  # noqa: E402
from pidispatch.config.settings import Settings  # noqa: E402
from pidispatch.config.text import printable  # noqa: E402
from pidispatch.jobs.producer import producer  # noqa: E402
from pidispatch.runs.records import RecordStore  # noqa: E402
from pidispatch.server.address import Address  # noqa: E402
from pidispatch.server.embedded import Embedded  # noqa: E402
from pidispatch.triggers.occurrences import Occurrence  # noqa: E402
from pidispatch.values.errors import DispatchError  # noqa: E402
from pidispatch.workspace.atomic import write_atomically  # noqa: E402
from tests.fakes.github import HOSTS  # noqa: E402
from tests.fakes.github.edge import Edge  # noqa: E402
from tests.fakes.github.payloads import SECRET  # noqa: E402
from tests.image.assemble import ensure_edge_job, ensure_egress_base, ensure_model  # noqa: E402
from tests.support.edge import EdgeContainer  # noqa: E402
from tests.support.flower import Flower, FlowerProgram  # noqa: E402
from tests.support.forge import receiving  # noqa: E402
from tests.support.model import MODEL_HOST, ModelContainer, write_overlay  # noqa: E402
from tests.support.program import PROGRAM, REAL, RUN_S, How, Program  # noqa: E402
from tests.support.repository import make_repository  # noqa: E402
from tests.support.server import free_port, until  # noqa: E402

FILES = {
    "README.md": "# Greeter\n\nSays hello.\n",
    "greet.py": 'def greet(name: str) -> str:\n    return "Helo, " + name + "!"\n\n\nprint(greet("world"))\n',
}
#: Requests of the scripted model's story, which is told to each job that runs.
REQUESTS = 4
TASK = "Fix the spelling mistake in greet.py and run it."
FLOW = "spelling"
SKILL = {
    f".pi/skills/{FLOW}/SKILL.md": "---\nname: spelling\ndescription: Mends spelling.\n---\n\nChange words only.\n"
}
SCHEDULE = "tidy"
#: Seconds until the schedule falls due: the worker has to see the edited file before.
SOON_S = 5
LISTS = dict.fromkeys((ALLOWLIST, PRIVATE), "".join(f"{host}\n" for host in (MODEL_HOST, *HOSTS)))
REPO = "acme/web"
#: What starts a job where an issue gets the label.
RULE: dict[str, object] = {
    "on": {"type": "label", "any": ["pi:fix"]},
    "run": {"kind": "github", "flow": "fix", "model": "pullrequest"},
}
SERVED = {
    "greet.py": FILES["greet.py"],
    ".pi/skills/fix/SKILL.md": "---\nname: fix\ndescription: Mends what an issue tells of.\n---\n\nMend it.\n",
}


def main() -> int:
    """Set the stage, run the job, check what it did; the exit code."""
    began = time.monotonic()
    try:
        client = docker.from_env(version="auto", timeout=60)
    except docker.errors.DockerException:
        print("demo: no container engine answers; set DOCKER_HOST, or run as root on Debian: make demo")
        return 1
    try:
        job_image, model_image, base = ensure_edge_job(client), ensure_model(client), ensure_egress_base(client)
    except DispatchError as error:
        print(f"demo: the images cannot be made: {error.message}")
        return 1
    print(f"set up in {time.monotonic() - began:.0f} s: engine {client.version()['Version']}, image {job_image}")
    try:
        with tempfile.TemporaryDirectory(prefix="pi-demo-") as folder, Edge(Path(folder, "github")) as edge:
            demo = Demo(client, Path(folder), job_image, edge)
            with demo.egress(base), demo.model(model_image) as model, demo.github(model_image):
                return demo.story(model)
    except (RuntimeError, TimeoutError) as error:
        print(f"demo: FAILED: {error}")
        return 1
    finally:
        client.close()


class Demo:
    """One run of the program in a folder and with a proxy of its own."""

    def __init__(self, client: docker.DockerClient, folder: Path, job_image: str, edge: Edge) -> None:
        self._client = client
        self._edge = edge
        self._port = free_port()
        self._folder = folder
        self._proxy = f"pi-demo-egress-{secrets.token_hex(4)}"
        home = folder / "home"
        home.mkdir()
        lists = home / "egress"
        lists.mkdir()
        for name, text in LISTS.items():
            (lists / name).write_text(text)
        overlay = write_overlay(home / "overlay")
        self._program = Program(
            home,
            {
                "DOCKER_HOST": os.environ.get("DOCKER_HOST", "unix:///var/run/docker.sock"),
                "PI_JOB_IMAGE": job_image,
                "PI_GLOBAL_PI_DIR": str(overlay),
                "PI_EGRESS_PROXY": self._proxy,
                "PI_CELERY_CONFIG": str(ROOT / "celeryconfig.py"),
                "PI_EGRESS_DIR": str(lists),
                "PI_LOGS_DIR": str(home / "logs"),
                # Three runs a day: the fourth job is refused.
                "PI_DAILY_CAP": "3",
                "PI_TRIGGERS_FILE": str(home / "triggers.json"),
                "PI_TZ": "UTC",
                "WEBHOOK_SECRET": SECRET,
                "RECEIVER_BIND": "127.0.0.1",
                "RECEIVER_PORT": str(self._port),
                **edge.app_variables(home),
            },
        )
        edge.repository(REPO, SERVED)
        edge.install(REPO)
        edge.hook(f"http://127.0.0.1:{self._port}/")
        self._triggers([RULE])

    @contextmanager
    def egress(self, base: str) -> Iterator[None]:
        """The real proxy, whose one allowed host is the model."""
        if self._call("egress", "up", "--base", base):
            raise SystemExit("demo: the egress proxy did not come up")
        try:
            yield
        finally:
            self._program.run("egress", "down")

    @contextmanager
    def model(self, image: str) -> Iterator[ModelContainer]:
        """The scripted model, behind the proxy."""
        model = ModelContainer(self._client, image, self._folder, behind=out_network(self._proxy))
        try:
            yield model
        finally:
            model.remove()

    @contextmanager
    def github(self, image: str) -> Iterator[None]:
        """The way of jobs to the edge, behind the proxy too."""
        way = EdgeContainer(self._client, image, self._edge, out_network(self._proxy))
        try:
            yield
        finally:
            way.remove()

    def story(self, model: ModelContainer) -> int:
        """A worker, its jobs, what is kept of them; whether all of it did what the demo shows is the exit code."""
        repository, nightly = (
            make_repository(self._folder / name, files)
            for name, files in (("greeter", FILES), ("nightly", FILES | SKILL))
        )
        print("\n$ pi-dispatch worker &", flush=True)
        with self._program.worker(How(REAL)) as worker, self._receiver():
            if worker.process.poll() is not None:
                print(f"demo: the worker did not begin:\n{worker.log.strip()}")
                return 1
            with self.flower() as flower:
                code = self._call("run", str(repository.path), "--task", TASK, "--model", "greeter", "--wait")
                listed = self._call("runs")
                shown = _said_by(flower)
                fired = self._fire(nightly.path)
                answered = self._label(model)
                bounds = self._call("limits")
            print("\n$ kill %1", flush=True)
        print(f"\nThe worker had logged:\n\n{worker.log.strip()}")
        mended = [one for one in (repository, nightly) if 'return "Hello, "' in one.read("greet.py")]
        left = Embedded(self._program.home / "state").look().lives
        calls = (code, listed, fired, bounds, worker.process.returncode)
        found = (calls, shown, mended, answered, left)
        if found == ((0, 0, 0, 0, 0), "SUCCESS", [repository, nightly], True, False):
            print(f"\nThe agent mended greet.py in its box, with {REQUESTS} requests to the model through the proxy.")
            print("The schedule's job did the same. The labelled issue was answered with a pull request. The next one")
            print("was refused before it cost anything, and says so.")
            return 0
        print(
            f"demo: FAILED: exit codes {calls}, in Flower: {shown}, mended: {[one.path.name for one in mended]}, "
            f"issues answered: {answered}, server left: {left}"
        )
        return 1

    @contextmanager
    def _receiver(self) -> Iterator[None]:
        """The receiver beside the worker."""
        print("\n$ pi-dispatch receiver &", flush=True)
        with receiving(self._program, {}):
            yield

    def _label(self, model: ModelContainer) -> bool:
        """Label two issues; whether the first became a pull request, and the second, past the cap, one comment."""
        requests = len(model.log.requests())
        print(f"\nSomebody labels an issue of {REPO}, and GitHub sends the webhook:\n")
        for title in ("Helo is misspelt", "So is wrold"):
            issue = self._edge.issue(REPO, title, "See greet.py.")
            self._edge.label(issue.number, "pi:fix", REPO)
            said = until(lambda: self._edge.comments(issue.number, REPO), f"an answer to {title!r}", RUN_S)  # noqa: B023
            print(f"  #{issue.number} {title}\n" + "".join(f"     > {line}\n" for line in said[0].splitlines() if line))
        asked = len(model.log.requests()) - requests
        self._call("deliveries")
        [pull] = self._edge.pulls(REPO)
        print(f"\nBranches: {', '.join(self._edge.branches(REPO))}. Pull request #{pull.number}: {pull.title}.")
        return (pull.head, asked, "PI_DAILY_CAP" in said[0]) == ("pi/issue-1", 2, True)

    def _fire(self, folder: Path) -> int:
        """Write a schedule that falls due in a moment, wait for its job, and show it; the exit code of the last."""
        at = datetime.now(UTC).replace(microsecond=0) + timedelta(seconds=SOON_S)
        entry: dict[str, object] = {
            "on": {"type": "cron", "id": SCHEDULE, "pattern": f"{at:%-S %-M %-H %-d %-m} *"},
            "run": {"kind": "local", "folder": str(folder), "flow": FLOW, "task": TASK, "model": "greeter"},
        }
        print(f"\nThe worker reads its schedules while it runs:\n\n$ cat triggers.json\n{json.dumps(entry, indent=2)}")
        self._triggers([RULE, entry])
        if code := self._call("triggers", "list"):
            return code
        job_id = Occurrence(SCHEDULE, at).job_id
        records = RecordStore(self._program.home / "logs")
        until(lambda: records.find(job_id), f"the record of {job_id}", RUN_S)
        return self._call("show", job_id)

    def _triggers(self, entries: list[dict[str, object]]) -> None:
        """Put the triggers file in its place whole, as an editor does."""
        write_atomically(self._program.home / "triggers.json", json.dumps({"triggers": entries}).encode(), 0o600)

    @contextmanager
    def flower(self) -> Iterator[Flower]:
        """Flower beside the worker, which it hears from now on."""
        folder = self._program.home / "flower"
        folder.mkdir()
        print("\n$ celery -A pidispatch flower &", flush=True)
        settings = Settings.model_validate({"PI_STATE_DIR": str(self._program.home / "state")})
        program = FlowerProgram(self._program.environment(), folder)
        with producer(settings, Address.of(settings)) as app, program.running() as flower:
            flower.await_worker(app.control.heartbeat)
            yield flower

    def _call(self, *arguments: str) -> int:
        """Show a call of the program, make it, and return its exit code."""
        shown = [argument.removeprefix(f"{self._folder}/") for argument in arguments]
        print(f"\n$ pi-dispatch {shlex.join(shown)}\n", flush=True)
        terminal = {name: os.environ.get(name) for name in ("TERM", "COLUMNS", "NO_COLOR")}
        environment = self._program.environment(**terminal)
        with subprocess.Popen([PROGRAM, *arguments], env=environment, cwd=self._program.home) as process:
            try:
                return process.wait(RUN_S)
            except subprocess.TimeoutExpired:
                process.kill()
                print(f"demo: ended after {RUN_S} s")
                return 1


def _said_by(flower: Flower) -> str:
    """Show what Flower knows of the one job, to whom it knows; the state it shows."""
    (job_id,) = flower.ask("/api/tasks").document
    task = flower.await_task(job_id, "SUCCESS", "FAILURE")
    stranger = flower.ask_as(None, "/api/tasks").status
    print(f"\n$ curl --user ... {flower.url}/api/tasks\n")
    print(printable(f"Flower shows {task['args']} as {task['state']}, result {task['result']},"))
    print(printable(f"after {task['runtime']:.1f} s on {task['worker']}; without its password: HTTP {stranger}."))
    return str(task["state"]) if stranger == 401 else f"open to anybody ({stranger})"


if __name__ == "__main__":
    sys.exit(main())
