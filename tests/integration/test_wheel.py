"""The package as a user gets it: built, installed into an empty environment, and used away from the checkout."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import docker
import pytest

from pidispatch.box.egress import out_network
from tests.image.assemble import ensure_base, ensure_egress_base
from tests.support.engine import left_of

ROOT = Path(__file__).resolve().parents[2]


def call(*command: str | Path, cwd: Path, **variables: str) -> str:
    done = subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the programs of an environment that holds the wheel alone."""
    home = tmp_path_factory.mktemp("wheel")
    # Away from the checkout, where an earlier build could have left files that are no more.
    source = home / "source"
    shutil.copytree(ROOT / "pidispatch", source / "pidispatch")
    for name in ("setup.cfg", "pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source / name)
    call(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", home, source, cwd=home)
    [wheel] = home.glob("*.whl")
    call(sys.executable, "-m", "venv", home / "venv", cwd=home)
    call(home / "venv/bin/python", "-m", "pip", "install", "--quiet", wheel, cwd=home)
    return home / "venv/bin"


def test_the_programs_and_the_build_contexts_are_in_it(installed: Path, tmp_path: Path) -> None:
    assert call(installed / "pi-dispatch", "--version", cwd=tmp_path).startswith("pi-dispatch, version ")
    printed = call(installed / "pi-dispatch", "image", "build", "--print", cwd=tmp_path)
    for name in ("FROM", "HARD_RULES.md", "entrypoint.sh", "runner/pirunner/main.py", "package-lock.json", ".npmrc"):
        assert name in printed
    shipped = call(
        installed / "python", "-c", "import pidispatch.image; print(pidispatch.image.__file__)", cwd=tmp_path
    )
    assert Path(shipped.strip()).is_relative_to(installed.parent)


def test_it_builds_an_image_that_holds_what_it_claims(
    installed: Path, tmp_path: Path, engine: docker.DockerClient
) -> None:
    tag = "pi-job:test-wheel"
    try:
        call(installed / "pi-dispatch", "image", "build", "--base", ensure_base(engine), "--tag", tag, cwd=tmp_path)
        assert "holds what it claims" in call(installed / "pi-dispatch", "image", "verify", tag, cwd=tmp_path)
    finally:
        engine.images.remove(tag, force=True)


def test_it_brings_the_egress_proxy_up_and_down(installed: Path, tmp_path: Path, engine: docker.DockerClient) -> None:
    name = f"pi-test-egress-wheel-{os.getpid()}"
    program: list[str | Path] = [installed / "pi-dispatch", "egress"]
    variables = {"PI_EGRESS_PROXY": name, "PI_EGRESS_DIR": str(tmp_path / "egress")}
    try:
        up = call(*program, "up", "--base", ensure_egress_base(engine), cwd=tmp_path, **variables)
        assert up.startswith(f"{name} is up\n")
        assert "  api.anthropic.com\n" in up
        assert "runs and accepts" in call(*program, "status", cwd=tmp_path, **variables)
        assert left_of(engine, out_network(name)) == [out_network(name)]
    finally:
        call(*program, "down", cwd=tmp_path, **variables)
    assert left_of(engine, name) == []
