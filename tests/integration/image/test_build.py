"""Building on a real engine: the product's contexts on the offline base, and the neighbour that plays the model."""

import json
import os
import shutil
import sys
from pathlib import Path

import pytest
from docker import DockerClient

from pidispatch.box import images
from pidispatch.cli.main import main
from pidispatch.image import context_path
from pidispatch.values import names
from pidispatch.values.errors import ConfigError, InfraError
from tests.image import assemble


def test_same_inputs_give_the_same_image(engine: DockerClient, job_image: str) -> None:
    lines: list[str] = []
    tag = f"pi-job:built-twice-{os.getpid()}"
    built = images.build(engine, tag, base=assemble.ensure_base(engine), progress=lines.append)
    image = engine.images.get(tag)
    engine.images.remove(tag)
    assert built == image.id == engine.images.get(job_image).id
    assert image.labels[names.LABEL_PI_VERSION] == images.pi_version()
    assert any(line.startswith("Step 1/") for line in lines)


def test_new_runner_costs_the_last_layers_only(engine: DockerClient, job_image: str, tmp_path: Path) -> None:
    context = tmp_path / "job"
    shutil.copytree(context_path("job"), context)
    (context / "runner" / "pirunner" / "__init__.py").write_text('"""Another runner."""\n')
    tag = f"pi-job:other-runner-{os.getpid()}"
    arguments = {"BASE": assemble.ensure_base(engine)}
    images.build_image(engine, images.pack(images.context_files(context)), tag, arguments)
    other = engine.images.get(tag).attrs["RootFS"]["Layers"]
    engine.images.remove(tag)
    layers = engine.images.get(job_image).attrs["RootFS"]["Layers"]
    assert len(other) == len(layers)
    assert [index for index, layer in enumerate(layers) if layer != other[index]] == [len(layers) - 2, len(layers) - 1]


def test_base_that_is_not_there_is_a_refusal(engine: DockerClient) -> None:
    with pytest.raises(ConfigError, match="docker pull there-is:none"):
        images.build(engine, "pi-job:never", base="there-is:none")


def test_failed_build_shows_what_the_builder_said(engine: DockerClient, probe_image: str) -> None:
    with pytest.raises(InfraError, match=r"(?s)Building pi-job:never failed.*groupadd: not found"):
        images.build(engine, "pi-job:never", base=probe_image)


def test_verify_verb_prints_json_and_ends_with_2_on_a_broken_image(
    probe_image: str, job_image: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for ref, code in ((job_image, 0), (probe_image, 2)):
        monkeypatch.setattr(sys, "argv", ["pi-dispatch", "image", "verify", ref, "--json"])
        with pytest.raises(SystemExit) as ended:
            main()
        told = json.loads(capsys.readouterr().out)
        assert ended.value.code == code
        assert (told["image"], told["ok"]) == (ref, code == 0)
        assert {"name", "ok", "detail"} == set(told["checks"][0])


def test_model_image_serves_as_any_user_on_a_read_only_root(engine: DockerClient, model_image: str) -> None:
    container = engine.containers.create(
        model_image,
        user="4242:4242",
        read_only=True,
        tmpfs={"/tmp": "size=16m,mode=1777"},
        network_mode="none",
        cap_drop=["ALL"],
    )
    try:
        container.start()
        output = container.logs(stream=True, follow=True)
        first = next(output)
        container.stop(timeout=5)
        rest = list(output)
        code = container.wait(timeout=30)["StatusCode"]
    finally:
        container.remove(force=True)
    assert first.decode().startswith("listening on 0.0.0.0:3128")
    assert rest == []
    assert code == 0
