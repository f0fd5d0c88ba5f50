"""Builds the job image from the shipped build contexts, and says what would be built.

The same contexts give the same bytes on every machine: that makes `inputs_digest` a name for an image. What a built
image must hold is proven by `verify` (docs/reference/job-image.md).
"""

import hashlib
import io
import json
import tarfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pidispatch.box.image_checks import Check, verify
from pidispatch.config import allowlist
from pidispatch.config.text import printable
from pidispatch.image import CONTEXTS, Context, context_path
from pidispatch.values.errors import ConfigError, InfraError
from pidispatch.values.reference import image_reference

if TYPE_CHECKING:
    from docker import DockerClient

__all__ = [
    "Check",
    "build",
    "build_context_tar",
    "build_image",
    "context_files",
    "egress_context_tar",
    "engine_faults",
    "inputs_digest",
    "pack",
    "pi_version",
    "render",
    "require_present",
    "verify",
]

#: Gets one line of text for each step of a build.
Progress = Callable[[str], None]


def _quiet(_: str) -> None:
    """The `Progress` of a caller who does not watch."""


#: What lies in a folder without belonging to it: left there by Python and by editors.
_LEFTOVERS: Final = ("__pycache__", "*.pyc", "*~", ".*.swp", ".DS_Store", ".*_cache")
_AGENT: Final = "@earendil-works/pi-coding-agent"


def context_files(folder: Path) -> dict[str, Path]:
    """The files of a build context by their path inside it, in one fixed order."""
    found = {
        path.relative_to(folder).as_posix(): path
        for path in folder.rglob("*")
        if path.is_file() and not any(map(_is_leftover, path.relative_to(folder).parts))
    }
    return dict(sorted(found.items()))


def _is_leftover(name: str) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in _LEFTOVERS)


def pack(files: Mapping[str, Path]) -> bytes:
    """A tar of `files` that depends on their names and contents alone: root's, 0644 (scripts 0755), time zero.

    The classic builder of the engine takes over owner and mode as they are in the tar, so the image's files come out
    root's and unwritable whatever the umask of the account that installed this package.
    """
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.GNU_FORMAT) as tar:
        for name, path in sorted(files.items()):
            content = path.read_bytes()
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            entry.mode = 0o755 if content.startswith(b"#!") else 0o644
            tar.addfile(entry, io.BytesIO(content))
    return packed.getvalue()


def build_context_tar(context: Context) -> bytes:
    """The build context as the engine gets it."""
    return pack(context_files(context_path(context)))


def egress_context_tar() -> bytes:
    """The build context of the egress proxy, with the grammar of its lists beside its own files."""
    grammar = Path(allowlist.__file__)
    return pack({**context_files(context_path("egress")), grammar.name: grammar})


def inputs_digest(contexts: Iterable[Context] = CONTEXTS) -> str:
    """SHA-256, in hex, over everything of ours that goes into the image."""
    digest = hashlib.sha256()
    for context in contexts:
        digest.update(hashlib.sha256(build_context_tar(context)).digest())
    return digest.hexdigest()


def pi_version() -> str:
    """The exact version of the pi agent that `base/` installs."""
    manifest = json.loads((context_path("base") / "package.json").read_text())
    return str(manifest["dependencies"][_AGENT])


def render(base: str | None = None) -> str:
    """What `build` would do, to read: each Dockerfile and the files beside it. Needs no engine."""
    shown: tuple[Context, ...] = CONTEXTS if base is None else ("job",)
    text = []
    for context in shown:
        folder = context_path(context)
        text += [f"# ---- {folder}/Dockerfile", (folder / "Dockerfile").read_text().rstrip(), ""]
        if context == "job":
            text.append(f"# ---- built with --build-arg BASE={base or _base_tag()}")
        text += [f"# ---- files of this context: {', '.join(context_files(folder))}", ""]
    return "\n".join(text)


def build(client: "DockerClient", tag: str, base: str | None = None, progress: Progress = _quiet) -> str:
    """Builds the job image as `tag` and returns its id.

    Without `base` the shipped base is built first (as `pi-job-base:<version of pi>`), which needs a network. With it,
    that image must be on the engine already.
    """
    for reference in (tag, base):
        _refuse_malformed(reference)
    if base is None:
        base = _base_tag()
        progress(f"building {base} (needs a network)")
        build_image(client, build_context_tar("base"), base, progress=progress)
    else:
        require_present(client, base)
    progress(f"building {tag}")
    return build_image(client, build_context_tar("job"), tag, {"BASE": base}, network="none", progress=progress)


def build_image(
    client: "DockerClient",
    context: bytes,
    tag: str,
    arguments: Mapping[str, str] | None = None,
    *,
    network: str | None = None,
    progress: Progress = _quiet,
) -> str:
    """Builds one context (a tar with a `Dockerfile` at its top) and returns the id of the image.

    Raises `InfraError` with the end of the builder's own output. See the engine's API, "Build an image":
    https://docs.docker.com/reference/api/engine/
    """
    output: list[str] = []
    with engine_faults(f"build {tag}"):
        for message in client.api.build(
            fileobj=io.BytesIO(context),
            custom_context=True,
            tag=tag,
            buildargs=dict(arguments or {}),
            network_mode=network,
            rm=True,
            forcerm=True,
            decode=True,
        ):
            _follow(message, output, tag, progress)
        return str(client.images.get(tag).id)


def _follow(message: dict[str, Any], output: list[str], tag: str, progress: Progress) -> None:
    for line in str(message.get("stream", "")).splitlines():
        if line.strip():
            output.append(line)
            progress(line)
    if "error" in message:
        tail = "\n".join(f"  {line}" for line in output[-8:])
        raise InfraError(f"Building {tag} failed: {message['error']}\n{tail}", cause="image-build")


@contextmanager
def engine_faults(doing: str) -> Iterator[None]:
    """What docker-py raises when the engine is silent or refuses becomes `InfraError`."""
    # Imported here: docker-py costs every start of the program a quarter of a second, and `render` needs none of it.
    from pidispatch.box import faults

    try:
        yield
    except faults.ENGINE_FAULTS as error:
        raise faults.fault(f"the container engine could not {doing}", error) from error


def _base_tag() -> str:
    return f"pi-job-base:{pi_version()}"


def require_present(client: "DockerClient", reference: str) -> None:
    """Refuse (`ConfigError`) a base that is not on the engine: a build would try to pull it."""
    from docker.errors import ImageNotFound

    with engine_faults(f"look up {reference}"):
        try:
            client.images.get(reference)
        except ImageNotFound:
            raise ConfigError(
                f"There is no image {reference} on this engine, and none is pulled for you. "
                f"Fetch it (docker pull {reference}) or leave out --base.",
                cause="base-image-missing",
            ) from None


def _refuse_malformed(reference: str | None) -> None:
    if reference is None:
        return
    try:
        image_reference(reference)
    except ValueError as error:
        raise ConfigError(f"{printable(reference)!r} {error}", cause="image-reference") from None
