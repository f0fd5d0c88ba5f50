"""`pidispatch.box.images`: the same inputs give the same bytes, and what is wrong is said before an engine is asked."""

import io
import os
import tarfile
from pathlib import Path
from typing import NoReturn, cast

import pytest
from docker import DockerClient

from pidispatch.box import images
from pidispatch.image import CONTEXTS, Context, context_path
from pidispatch.values.errors import ConfigError


def _entries(tar: bytes) -> dict[str, tarfile.TarInfo]:
    with tarfile.open(fileobj=io.BytesIO(tar)) as opened:
        return {entry.name: entry for entry in opened.getmembers()}


class _NoEngine:
    """A client that must not be used."""

    def __getattr__(self, name: str) -> NoReturn:
        raise AssertionError(f"the engine was asked for {name}")


_NO_ENGINE = cast(DockerClient, _NoEngine())


def test_tar_depends_on_names_and_contents_alone(tmp_path: Path) -> None:
    trees = []
    for number, mask in enumerate((0o022, 0o077)):
        tree = tmp_path / str(number)
        (tree / "b").mkdir(parents=True)
        for name in ("z.txt", "b/a.sh") if number else ("b/a.sh", "z.txt"):
            (tree / name).write_text("#!/bin/sh\n" if name.endswith(".sh") else "text")
            (tree / name).chmod(0o666 & ~mask)
            os.utime(tree / name, (number, number))
        trees.append(images.pack(images.context_files(tree)))
    assert trees[0] == trees[1]
    entries = _entries(trees[0])
    assert list(entries) == ["b/a.sh", "z.txt"]
    assert [(entry.mode, entry.uid, entry.gid, entry.mtime) for entry in entries.values()] == [
        (0o755, 0, 0, 0),
        (0o644, 0, 0, 0),
    ]


def test_what_python_and_editors_leave_behind_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "__pycache__").mkdir()
    for name in ("kept.py", ".npmrc", "__pycache__/kept.cpython-311.pyc", "kept.py~", ".kept.py.swp", "stray.pyc"):
        (tmp_path / name).write_text("x")
    assert list(images.context_files(tmp_path)) == [".npmrc", "kept.py"]


@pytest.mark.parametrize("context", CONTEXTS)
def test_context_holds_its_dockerfile_and_what_that_copies(context: Context) -> None:
    entries = _entries(images.build_context_tar(context))
    lines = (context_path(context) / "Dockerfile").read_text().splitlines()
    sources = [word for line in lines if line.startswith("COPY ") for word in line.split()[1:-1]]
    assert "Dockerfile" in entries
    assert sources
    for source in sources:
        assert any(name == source or name.startswith(f"{source}/") for name in entries)


@pytest.mark.parametrize("script", ["entrypoint.sh", "git-credential-job"])
def test_scripts_are_executable_in_the_context(script: str) -> None:
    assert _entries(images.build_context_tar("job"))[script].mode == 0o755


def test_digest_follows_the_contexts() -> None:
    assert images.inputs_digest() == images.inputs_digest(CONTEXTS)
    assert len({images.inputs_digest(), images.inputs_digest(["base"]), images.inputs_digest(["job"])}) == 3


def test_render_shows_every_dockerfile_and_file() -> None:
    text = images.render()
    for context in CONTEXTS:
        assert (context_path(context) / "Dockerfile").read_text().rstrip() in text
        assert ", ".join(images.context_files(context_path(context))) in text
    assert f"BASE=pi-job-base:{images.pi_version()}" in text


def test_render_on_a_given_base_shows_the_job_image_only() -> None:
    text = images.render("mine:1")
    assert "BASE=mine:1" in text
    assert "FROM node:" not in text


@pytest.mark.parametrize("reference", ["", " ", " pi-job:1", "pi-job:1 ", "--privileged"])
def test_malformed_reference_is_refused_before_the_engine_is_asked(reference: str) -> None:
    with pytest.raises(ConfigError, match="no image reference"):
        images.build(_NO_ENGINE, reference)
    with pytest.raises(ConfigError, match="no image reference"):
        images.build(_NO_ENGINE, "pi-job:1", base=reference)
