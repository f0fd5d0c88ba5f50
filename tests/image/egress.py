"""What the egress proxy of the tests stands on, with no registry: Debian with squid and Python, and nothing of ours.

The product's own build puts its files on top and finds nothing left to install.
"""

import hashlib
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Final

import docker

from tests.image import debian

#: Names of the packages as the shipped Dockerfile installs them.
PACKAGES: Final = ("squid", "python3")

Progress = Callable[[str], None]


def inputs_digest(release: str, architecture: str) -> str:
    """A name for the result: SHA-256, in hex, of everything it is made from."""
    digest = hashlib.sha256(f"{release} {architecture} {' '.join(PACKAGES)}".encode())
    for path in (Path(__file__), Path(debian.__file__)):
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


def assemble(client: docker.DockerClient, repository: str, tag: str, progress: Progress) -> None:
    """Make the image `repository:tag` on the engine. Raises `debian.CannotMakeError` at once where that cannot be."""
    release = debian.codename()
    debian.require_mmdebstrap(root=os.geteuid() == 0)
    with tempfile.TemporaryDirectory(prefix="pi-test-egress-", dir="/var/tmp") as folder:
        work = Path(folder)
        work.chmod(0o755)
        tar = work / "base.tar"
        progress("a Debian system with squid (mmdebstrap)")
        debian.make_tar(tar, release, PACKAGES, work)
        progress("importing it")
        client.api.import_image_from_file(str(tar), repository=repository, tag=tag, changes=['CMD ["bash"]'])
