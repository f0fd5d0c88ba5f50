"""`images.verify` on a real engine: the shipped image passes, and each broken promise is found and named."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from docker import DockerClient

from pidispatch.box import images
from pidispatch.values.errors import ConfigError

Derive = Callable[[str], str]


@pytest.fixture
def derive(engine: DockerClient, job_image: str, tmp_path: Path) -> Iterator[Derive]:
    """Builds an image from the job image and further Dockerfile lines, and removes it afterwards."""
    made: list[str] = []

    def build(lines: str) -> str:
        dockerfile = tmp_path / "Dockerfile"
        dockerfile.write_text(f"ARG BASE\nFROM ${{BASE}}\n{lines}\n")
        tag = f"pi-verify-derived:{os.getpid()}-{len(made)}"
        images.build_image(engine, images.pack({"Dockerfile": dockerfile}), tag, {"BASE": job_image}, network="none")
        made.append(tag)
        return tag

    yield build
    for tag in made:
        engine.images.remove(tag, force=True)


def _failed(engine: DockerClient, ref: str) -> dict[str, str]:
    return {check.name: check.detail for check in images.verify(engine, ref) if not check.ok}


def test_shipped_image_holds_every_claim(engine: DockerClient, job_image: str) -> None:
    checks = images.verify(engine, job_image)
    assert {check.name: check.detail for check in checks if not check.ok} == {}
    names = [check.name for check in checks]
    assert len(names) == len(set(names))
    assert {"user", "tools", "program files", "guardrails", "pi", "runner"} <= set(names)
    assert {"anyUid: pi as user 4242", "anyUid: runner as user 4242", "replicas: guardrails"} <= set(names)
    assert {"forge github", "forge github: credential of git"} <= set(names)


def test_image_without_anything_of_it_fails_by_name(engine: DockerClient, probe_image: str) -> None:
    failed = _failed(engine, probe_image)
    assert {"entrypoint", "user", "tools", "home folders", "program files", "guardrails", "pi", "runner"} <= set(failed)
    assert failed["tools"] == "missing: bash, fd, git, jq, rg"
    assert failed["user"] == "uid 0 where uid 1001 is due"


def test_false_labels_are_found(engine: DockerClient, derive: Derive) -> None:
    ref = derive(
        'LABEL dev.pi-dispatch.pi-version="9.9.9" dev.pi-dispatch.forges="github, nowhere" '
        'dev.pi-dispatch.capabilities="anyUid,commands"\nENV HOME=/root\nUSER 0\nRUN rm /usr/bin/gh\nUSER 1001:1001'
    )
    failed = _failed(engine, ref)
    assert failed["pi"] == "claimed 9.9.9, found 1.6.0"
    assert failed["forge github"] == "gh is missing"
    assert failed["forge nowhere"].startswith("unknown")
    assert failed["capability commands"] == "claimed, but this version cannot prove it"
    assert failed["no ENV HOME"] == "take HOME=/root out"


def test_opened_program_files_and_closed_homes_are_found(engine: DockerClient, derive: Derive) -> None:
    ref = derive(
        "USER 0\n"
        "RUN chmod o+w /app/runner/budget.js && chmod 0755 /home/pi && echo nice > /opt/pi-dispatch/HARD_RULES.md\n"
        "USER 1001:1001"
    )
    failed = _failed(engine, ref)
    assert set(failed) == {"program files", "home folders", "guardrails", "replicas: guardrails"}
    assert "/app/runner/budget.js" in failed["program files"]
    assert failed["home folders"] == "not open to every user: /home/pi 755"


def test_a_gh_that_does_not_run_and_a_credential_for_everyone_are_found(engine: DockerClient, derive: Derive) -> None:
    ref = derive(
        "USER 0\n"
        "RUN git config --system credential.helper '!printf \"username=u\\npassword=baked\\n\";:'"
        " && printf '#!/bin/sh\\nexit 3' > /usr/bin/gh\n"
        "USER 1001:1001"
    )
    assert _failed(engine, ref) == {
        "forge github": "gh says nothing",
        "forge github: credential of git": "git hands github.com no token, answers github.com without a token, "
        "hands the token to another host",
    }


def test_any_uid_is_tried_as_a_stranger(engine: DockerClient, derive: Derive) -> None:
    ref = derive("USER 0\nRUN chgrp -R 1001 /app/runner && chmod -R o= /app/runner\nUSER 1001:1001")
    assert set(_failed(engine, ref)) == {"anyUid: runner as user 4242"}


def test_any_uid_is_not_asked_of_an_image_that_does_not_claim_it(engine: DockerClient, derive: Derive) -> None:
    ref = derive('USER 0\nRUN chmod -R o= /app/runner\nUSER 1001:0\nLABEL dev.pi-dispatch.capabilities=""')
    checks = images.verify(engine, ref)
    assert [check.name for check in checks if "anyUid" in check.name] == []


def test_image_without_a_shell_fails_instead_of_raising(engine: DockerClient, derive: Derive) -> None:
    failed = _failed(engine, derive("USER 0\nRUN rm /bin/sh\nUSER 1001:1001"))
    assert "look inside" in failed
    assert "/bin/sh" in failed["look inside"]


def test_nothing_is_left_on_the_engine(engine: DockerClient, derive: Derive) -> None:
    ref = derive('LABEL only.here="1"')
    assert _failed(engine, ref) == {}
    assert engine.containers.list(all=True, filters={"ancestor": ref}) == []


def test_absent_image_is_a_refusal_with_a_remedy(engine: DockerClient) -> None:
    with pytest.raises(ConfigError, match="pi-dispatch image build"):
        images.verify(engine, "pi-job:there-is-none")
