"""`pi-dispatch image`: builds the image that jobs run in, and proves what an image claims."""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from pidispatch.box import images
from pidispatch.config.settings import load_settings
from pidispatch.values.errors import InfraError

if TYPE_CHECKING:
    from docker import DockerClient


@click.group("image", short_help="Build the image jobs run in, or verify one.")
def image() -> None:
    """Build the image jobs run in, or verify one (docs/reference/job-image.md)."""


@image.command("build")
@click.option("--base", metavar="REF", help="An image on the engine to build on; without it the shipped base is built.")
@click.option("--tag", metavar="REF", help="Name of the result; without it the value of PI_JOB_IMAGE.")
@click.option(
    "--print",
    "only_print",
    is_flag=True,
    help="Print the Dockerfiles and the files beside them; build nothing.",
)
def build(base: str | None, tag: str | None, only_print: bool) -> None:
    """Build the job image on the engine of DOCKER_HOST.

    The shipped base needs a network: a registry for Node, Debian's mirror and npm. On a machine without, give --base.
    """
    if only_print:
        click.echo(images.render(base))
        return
    tag = tag or load_settings().job_image
    with _engine() as client:
        built = images.build(client, tag, base, progress=lambda line: click.echo(line, err=True))
    click.echo(f"{tag} {built}")


@image.command("verify")
@click.argument("ref", required=False)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.pass_context
def verify(context: click.Context, ref: str | None, as_json: bool) -> None:
    """Prove every claim of the image REF (default: PI_JOB_IMAGE) on the engine of DOCKER_HOST.

    Exit code 2: a claim does not hold, or the image is not there.
    """
    ref = ref or load_settings().job_image
    with _engine() as client:
        checks = images.verify(client, ref)
    holds = all(check.ok for check in checks)
    if as_json:
        click.echo(json.dumps({"image": ref, "ok": holds, "checks": [asdict(check) for check in checks]}, indent=2))
    else:
        width = max(len(check.name) for check in checks)
        for check in checks:
            click.echo(f"{'ok  ' if check.ok else 'FAIL'}  {check.name:<{width}}  {check.detail}")
        failed = sum(not check.ok for check in checks)
        click.echo(f"{ref} {'holds what it claims' if holds else f'fails {failed} of {len(checks)} checks'}")
    if not holds:
        context.exit(2)


@contextmanager
def _engine() -> Iterator["DockerClient"]:
    import docker

    from pidispatch.box.engine import ENGINE_FAULTS, describe

    try:
        client = docker.from_env()
    except ENGINE_FAULTS as error:
        raise InfraError(
            f"no container engine answers at {os.environ.get('DOCKER_HOST') or 'the default socket'} "
            f"({describe(error)}). Start it and check that this account may use it (docker info), or name another "
            "one: DOCKER_HOST=unix:///path/to/docker.sock",
            cause="engine-silent",
        ) from error
    try:
        yield client
    finally:
        client.close()
