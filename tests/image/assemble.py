"""Makes the images of the tests and the demo, each once: `python tests/image/assemble.py [NAME]`, all without a name.

Names are job, edge-job, model, probe and egress. Every reference is named by the hash of what goes into the image, so
nothing is made twice and nothing stale is used. Prints `JOB_IMAGE=...`, `EDGE_JOB_IMAGE=...` (it trusts the authority
of the tests), `MODEL_IMAGE=...`, `PROBE_IMAGE=...`, `EGRESS_IMAGE=...` (the base of the proxy's image); progress goes
to the standard error.
"""

import fcntl
import hashlib
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import docker
from docker.errors import ImageNotFound

if __package__ in {None, ""}:
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from pidispatch.box import images
from pidispatch.image import context_path
from pidispatch.values.errors import DispatchError
from tests.fakes.github import HOSTS
from tests.image import authority, debian, egress, probe
from tests.image import base as offline

_HERE: Final = Path(__file__).resolve().parent
_MODEL: Final = _HERE.parent / "fakes" / "model"


def _release() -> str:
    """What the bases are made of: this machine's Debian, or published images where it is none."""
    try:
        return debian.codename()
    except debian.CannotMakeError:
        return "published"


def ensure_base(client: docker.DockerClient) -> str:
    """Debian, Node and pi: `pi-test-base:<hash>`. About 40 s the first time."""
    ref = f"pi-test-base:{offline.inputs_digest(_release(), client.version()['Arch'])[:16]}"
    return _ensure(client, ref, lambda: _make_base(client, ref))


def ensure_job(client: docker.DockerClient) -> str:
    """The product's own job image on that base: `pi-job:test-<hash>`. About 3 s when the base is there."""
    base = ensure_base(client)
    ref = f"pi-job:test-{_hash(base, images.inputs_digest(['job']))}"
    return _ensure(client, ref, lambda: images.build(client, ref, base=base))


def ensure_authority(client: docker.DockerClient) -> str:
    """The authority of the tests on this engine, made once and used as long as it is there: its image's id."""
    made_by = hashlib.sha256(Path(authority.__file__).read_bytes()).hexdigest()
    ref = f"pi-test-authority:{_hash(made_by, *HOSTS)}"

    def make() -> None:
        repository, tag = ref.split(":")
        client.api.import_image_from_data(authority.root_file_system(), repository=repository, tag=tag)

    return str(client.images.get(_ensure(client, ref, make)).id)


def ensure_edge_job(client: docker.DockerClient) -> str:
    """The job image, which trusts that authority besides: `pi-job:edge-<hash>`."""
    job, trusted = ensure_job(client), ensure_authority(client)
    context = images.pack({"Dockerfile": _HERE / "edge.Dockerfile"})
    ref = f"pi-job:edge-{_hash(job, trusted, hashlib.sha256(context).hexdigest())}"
    arguments = {"BASE": job, "AUTHORITY": trusted}
    return _ensure(client, ref, lambda: images.build_image(client, context, ref, arguments, network="none"))


def ensure_model(client: docker.DockerClient) -> str:
    """The scripted model, a neighbour of jobs that listens on 3128: `pi-test-model:<hash>`."""
    base, trusted = ensure_base(client), ensure_authority(client)
    files = {f"model/{name}": path for name, path in images.context_files(_MODEL).items()}
    context = images.pack({"Dockerfile": _HERE / "model.Dockerfile", **files})
    ref = f"pi-test-model:{_hash(base, trusted, hashlib.sha256(context).hexdigest())}"
    arguments = {"BASE": base, "AUTHORITY": trusted}
    return _ensure(client, ref, lambda: images.build_image(client, context, ref, arguments))


def ensure_probe(client: docker.DockerClient) -> str:
    """Busybox alone, for tests of the engine itself: `pi-test-probe:<hash>`."""
    busybox = probe.static_busybox()
    content = probe.PUBLISHED.encode() if busybox is None else probe.root_file_system(busybox)
    ref = f"pi-test-probe:{hashlib.sha256(content).hexdigest()[:16]}"

    def make() -> None:
        repository, tag = ref.split(":")
        if busybox is None:
            client.images.pull(probe.PUBLISHED).tag(repository, tag)
        else:
            changes = ["ENV PATH=/bin", 'CMD ["/bin/sh"]']
            client.api.import_image_from_data(content, repository=repository, tag=tag, changes=changes)

    return _ensure(client, ref, make)


def ensure_egress_base(client: docker.DockerClient) -> str:
    """Debian with squid and Python, for `pi-dispatch egress up --base`: `pi-test-egress-base:<hash>`."""
    ref = f"pi-test-egress-base:{egress.inputs_digest(_release(), client.version()['Arch'])[:16]}"
    return _ensure(client, ref, lambda: _make_egress_base(client, ref))


def _make_egress_base(client: docker.DockerClient, ref: str) -> None:
    repository, tag = ref.split(":")
    try:
        egress.assemble(client, repository, tag, _say)
    except debian.CannotMakeError as missing:
        _say(f"{missing}; building on the published base instead, which needs a registry")
        images.build_image(client, images.egress_context_tar(), ref, progress=_say)


def _make_base(client: docker.DockerClient, ref: str) -> None:
    repository, tag = ref.split(":")
    try:
        offline.assemble(client, repository, tag, _say)
    except debian.CannotMakeError as missing:
        _say(f"{missing}; building the published base instead, which needs a registry")
        try:
            images.build_image(client, images.build_context_tar("base"), ref, progress=_say)
        except DispatchError as error:
            raise RuntimeError(
                f"the base of the test images can be made in neither way.\nWithout a registry: {missing}; run this as "
                f"root on Debian.\nFrom {context_path('base')}/Dockerfile: {error}"
            ) from error


def _ensure(client: docker.DockerClient, ref: str, make: Callable[[], object]) -> str:
    if not _present(client, ref):
        with _one_at_a_time():
            if not _present(client, ref):
                _say(f"making {ref}")
                make()
    return ref


def _present(client: docker.DockerClient, ref: str) -> bool:
    try:
        client.images.get(ref)
    except ImageNotFound:
        return False
    return True


@contextmanager
def _one_at_a_time() -> Iterator[None]:
    """Test processes side by side would otherwise make the same image at the same time."""
    path = Path(tempfile.gettempdir()) / f"pi-test-images-{os.geteuid()}.lock"
    with path.open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _hash(*parts: str) -> str:
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]


def _say(line: str) -> None:
    print(f"image: {line}", file=sys.stderr, flush=True)


def main(arguments: list[str]) -> int:
    makers = {
        "job": ensure_job,
        "edge-job": ensure_edge_job,
        "model": ensure_model,
        "probe": ensure_probe,
        "egress": ensure_egress_base,
    }
    wanted = arguments or ["all"]
    if len(wanted) != 1 or wanted[0] not in {*makers, "all"}:
        _say("usage: assemble.py [job|edge-job|model|probe|egress|all]")
        return 1
    try:
        client = docker.from_env(timeout=600)
        for name, ensure in makers.items():
            if wanted[0] in {name, "all"}:
                print(f"{name.upper().replace('-', '_')}_IMAGE={ensure(client)}", flush=True)
    except docker.errors.DockerException as error:
        _say(f"{error}\nNo engine, or one that refuses; to start one: export $(tests/engine/up)")
        return 1
    except (DispatchError, RuntimeError) as error:
        _say(f"{error}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
