"""Takes the pictures of docs/how-to/flower.md: Flower's list of tasks, and its page of a job that runs.

    tools/with-engine .venv/bin/python tools/flower_shot.py

A server, a worker and Flower are started for it, with jobs whose containers only answer as the runner does. Needs root,
for a host name of its own that may be seen, and Chromium.
"""

import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import docker

ROOT: Final = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from tests.support.flower import Flower, FlowerProgram  # noqa: E402 - the project's root must be on the path first
from tests.support.post import Neighbour, Post, stub_image  # noqa: E402
from tests.support.repository import make_repository  # noqa: E402
from tests.support.server import OwnServer  # noqa: E402

IMAGES: Final = ROOT / "docs" / "images"
#: Name of the worker, and of the host that is seen.
NAME: Final = "build-1"
#: Given to the same program once it has a host name of its own.
INSIDE: Final = "--inside"
COLUMNS: Final = "received,uuid,args,state,eta,result,worker"
#: Folder, flow, what the stub does, and the state that Flower shows then. The second web-shop waits for the first.
JOBS: Final = (
    ("billing", "fix", "sleep-3", "SUCCESS"),
    ("docs-site", "tidy", "sleep-2", "SUCCESS"),
    ("mobile-app", "fix", "policy", "SUCCESS"),
    ("search", "tidy", "fail", "FAILURE"),
    ("web-shop", "fix", "sleep-600", "STARTED"),
    ("web-shop", "tidy", "ok", "RETRY"),
)
LIMITS: Final = {"scope_busy_recheck_ms": 600_000, "retry_base_ms": 500}
CHROMIUM: Final = (
    *("chromium", "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync", "--hide-scrollbars", "--force-device-scale-factor=1"),
)
#: Bytes that a picture may have.
MOST: Final = 200_000


def main(arguments: list[str]) -> int:
    """Take both pictures; the exit code."""
    if shutil.which(CHROMIUM[0]) is None:
        print("flower_shot: Chromium is missing. On Debian: apt-get install -y --no-install-recommends chromium")
        return 1
    if os.geteuid() != 0:
        print("flower_shot: run it as root: the pictures would show the name of this host")
        return 1
    if arguments != [INSIDE]:
        os.execvp("unshare", ["unshare", "--uts", sys.executable, str(Path(__file__).resolve()), INSIDE])
    socket.sethostname(NAME)
    with tempfile.TemporaryDirectory(prefix="pi-shot-", dir="/tmp") as folder, scene(Path(folder)) as (post, flower):
        ids = [hand_in(post, flower, *job) for job in JOBS]
        IMAGES.mkdir(exist_ok=True)
        (running,) = (job_id for job_id, job in zip(ids, JOBS, strict=True) if job[-1] == "STARTED")
        shoot(flower, "/tasks", IMAGES / "flower-tasks.png", (1680, 720))
        shoot(flower, f"/task/{running}", IMAGES / "flower-task.png", (1300, 830))
    return 0


@contextmanager
def scene(folder: Path) -> Iterator[tuple[Post, Flower]]:
    """A deployment whose worker is heard by Flower. Everything of it is gone at the end."""
    client = docker.from_env(version="auto", timeout=60)
    (folder / "stub").mkdir()
    image, neighbour = stub_image(client, folder / "stub"), Neighbour(client)
    try:
        with OwnServer("valkey", folder / "server") as server, Post(client, image, neighbour.name, server) as post:
            worker = post.worker(NAME, limits=LIMITS)
            program = FlowerProgram(post.environment(NAME), folder, {"FLOWER_TASKS_COLUMNS": COLUMNS})
            with post.producer() as app, program.running() as flower:
                flower.await_worker(app.control.heartbeat)
                yield post, flower
            # Ends the job that still runs.
            worker.stop()
    finally:
        neighbour.remove()
        client.images.remove(image, force=True)
        client.close()


def hand_in(post: Post, flower: Flower, name: str, flow: str, model: str, state: str) -> str:
    """Hand in a job and wait until Flower shows it in its state; its id."""
    folder = post.folder / "repos" / name
    if not folder.exists():
        skill = "---\nname: {0}\ndescription: A sample.\n---\nA sample.\n"
        make_repository(folder, {f".pi/skills/{one}/SKILL.md": skill.format(one) for one in ("fix", "tidy")})
    job = post.job(model, folder)
    post.submit(job.model_copy(update={"flow": flow}), NAME)
    flower.await_task(job.id, state)
    return job.id


def shoot(flower: Flower, path: str, picture: Path, size: tuple[int, int]) -> None:
    """Take a picture of one of Flower's pages. Raises `RuntimeError` where there is none, or a large one."""
    place = urlsplit(flower.url + path)
    url = place._replace(netloc=f"{flower.account}@{place.netloc}").geturl()
    picture.unlink(missing_ok=True)
    with tempfile.TemporaryDirectory(prefix="pi-chromium-") as own:
        # Its own clock runs ahead, so that what the page asks for is there when the picture is taken.
        options = ["--window-size={},{}".format(*size), "--virtual-time-budget=5000", f"--user-data-dir={own}"]
        command = [*CHROMIUM, *options, f"--screenshot={picture}", url]
        environ = {"PATH": os.environ["PATH"], "HOME": own, "LANG": "C.UTF-8", "TZ": "UTC"}
        done = subprocess.run(command, env=environ, cwd=own, capture_output=True, text=True, timeout=120, check=False)
    if not picture.is_file():
        raise RuntimeError(f"Chromium took no picture (exit code {done.returncode}): {done.stderr[-2000:]}")
    if picture.stat().st_size > MOST:
        raise RuntimeError(f"{picture} has {picture.stat().st_size} bytes; {MOST} are allowed: make its window smaller")
    print(f"{picture.relative_to(ROOT)}: {picture.stat().st_size} bytes")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
