"""`pi-dispatch image`: builds the image that jobs run in, and proves what an image claims."""

import json
from collections.abc import Sequence
from contextlib import closing
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from pidispatch.box import images
from pidispatch.cli.options import IMAGE_REFERENCE
from pidispatch.config.settings import load_settings

if TYPE_CHECKING:
    from pidispatch.box.image_checks import Check


@click.group("image", short_help="Build the image jobs run in, or verify one.")
def image() -> None:
    """Build the image jobs run in, or verify one (docs/reference/job-image.md)."""


@image.command("build")
@click.option(
    "--base",
    type=IMAGE_REFERENCE,
    metavar="REF",
    help="An image on the engine to build on; without it the shipped base is built.",
)
@click.option(
    "--tag", type=IMAGE_REFERENCE, metavar="REF", help="Name of the result; without it the value of PI_JOB_IMAGE."
)
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
    # Imported late: the engine's SDK takes a quarter of a second to load, which --print and --help need not wait for.
    from pidispatch.box.engine import Engine

    tag = tag or load_settings().job_image
    with closing(Engine.connect()) as engine:
        built = images.build(engine.client, tag, base, progress=lambda line: click.echo(line, err=True))
    click.echo(f"{tag} {built}")


@image.command("verify")
@click.argument("ref", required=False, type=IMAGE_REFERENCE)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.pass_context
def verify(context: click.Context, ref: str | None, as_json: bool) -> None:
    """Prove every claim of the image REF (default: PI_JOB_IMAGE) on the engine of DOCKER_HOST.

    Exit code 2: a claim does not hold, or the image is not there.
    """
    from pidispatch.box.engine import Engine

    ref = ref or load_settings().job_image
    with closing(Engine.connect()) as engine:
        checks = images.verify(engine.client, ref)
    holds = all(check.ok for check in checks)
    if as_json:
        click.echo(json.dumps(verify_document(ref, checks), indent=2))
    else:
        width = max(len(check.name) for check in checks)
        for check in checks:
            click.echo(f"{'ok  ' if check.ok else 'FAIL'}  {check.name:<{width}}  {check.detail}")
        failed = sum(not check.ok for check in checks)
        click.echo(f"{ref} {'holds what it claims' if holds else f'fails {failed} of {len(checks)} checks'}")
    if not holds:
        context.exit(2)


def verify_document(ref: str, checks: "Sequence[Check]") -> dict[str, object]:
    """What `image verify --json` prints (docs/reference/json.md)."""
    return {"image": ref, "ok": all(check.ok for check in checks), "checks": [asdict(check) for check in checks]}
