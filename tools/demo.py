"""The main job, for real and offline: the pi agent edits a sample repository, a scripted model tells it what to do.

Needs an engine in DOCKER_HOST or at the default socket (tools/with-engine finds or starts one).
"""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import docker

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from pidispatch.values.errors import DispatchError  # noqa: E402 - the project's root must be on the path first
from tests.image.assemble import ensure_job, ensure_model  # noqa: E402
from tests.support.model import ModelContainer  # noqa: E402
from tests.support.program import PROGRAM, Stage  # noqa: E402
from tests.support.repository import Repository, make_repository  # noqa: E402

FILES = {
    "README.md": "# Greeter\n\nSays hello.\n",
    "greet.py": 'def greet(name: str) -> str:\n    return "Helo, " + name + "!"\n\n\nprint(greet("world"))\n',
}
#: Requests of the scripted model's story.
REQUESTS = 4
TASK = "Fix the spelling mistake in greet.py and run it."


def main() -> int:
    """Set the stage, run the job, check what it did; the exit code."""
    began = time.monotonic()
    try:
        client = docker.from_env(version="auto", timeout=60)
    except docker.errors.DockerException:
        print("demo: no container engine answers; set DOCKER_HOST, or run as root on Debian: make demo")
        return 1
    try:
        job_image, model_image = ensure_job(client), ensure_model(client)
    except DispatchError as error:
        print(f"demo: the images cannot be made: {error.message}")
        return 1
    print(f"set up in {time.monotonic() - began:.0f} s: engine {client.version()['Version']}, image {job_image}")
    with tempfile.TemporaryDirectory(prefix="pi-demo-") as folder:
        model = ModelContainer(client, model_image, Path(folder))
        try:
            return _run(Path(folder), job_image, model)
        finally:
            model.remove()
            client.close()


def _run(folder: Path, job_image: str, model: ModelContainer) -> int:
    home = folder / "home"
    home.mkdir()
    stage = Stage(home, job_image, model, os.environ.get("DOCKER_HOST", "unix:///var/run/docker.sock"))
    repository = make_repository(folder / "greeter", FILES)
    print(f'\n$ pi-dispatch run {repository.path.name} --task "{TASK}"\n', flush=True)
    command = [PROGRAM, "run", str(repository.path), "--task", TASK, "--model", "greeter"]
    done = subprocess.run(command, env=stage.environment(TERM=os.environ.get("TERM")), cwd=home, check=False)
    return _judge(done.returncode, repository, stage)


def _judge(code: int, repository: Repository, stage: Stage) -> int:
    """Whether the demo did what it shows: the file was really mended, by as many requests as the story has."""
    mended = 'return "Hello, "' in repository.read("greet.py")
    requests = stage.requests()
    if code == 0 and mended and requests == REQUESTS:
        print(f"\nThe agent mended greet.py in its box, with {requests} requests to the model.")
        return 0
    print(f"demo: FAILED: exit {code}, mended: {mended}, requests at the model: {requests}")
    return 1


if __name__ == "__main__":
    sys.exit(main())
