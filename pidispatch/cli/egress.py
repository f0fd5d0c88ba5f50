"""`pi-dispatch egress`: the allowlist proxy that is every job's one neighbour, brought up, looked at, taken down."""

import json
from contextlib import closing
from typing import TYPE_CHECKING

import click

from pidispatch.cli.options import IMAGE_REFERENCE
from pidispatch.config.allowlist import ALLOWLIST, PRIVATE
from pidispatch.config.clock import SystemClock
from pidispatch.config.settings import Settings, load_settings
from pidispatch.config.text import printable

if TYPE_CHECKING:
    from pidispatch.box.egress import EgressStatus

_DONE = {
    "kept": "runs already and is current",
    "started": "is started again",
    "created": "is up",
    "replaced": "is replaced: its image, its folder or the engine's networks are others than before",
}


@click.group("egress", short_help="Run the proxy by which jobs reach the allowed hosts.")
def egress() -> None:
    """Run the proxy by which jobs reach the allowed hosts, and no others (docs/explanation/egress.md)."""


@egress.command("up")
@click.option(
    "--base",
    type=IMAGE_REFERENCE,
    metavar="REF",
    help="An image on the engine to build the proxy's image on; one that has squid and python3 needs no network.",
)
def up(base: str | None) -> None:
    """Bring the proxy up on the engine of DOCKER_HOST, or say that it runs.

    Makes the lists in PI_EGRESS_DIR where they are missing and overwrites none. The image is built once, on
    debian:12-slim, which needs a network; on a machine without, give --base.
    """
    from pidispatch.box.egress import EgressProxy
    from pidispatch.box.egress_lists import prepare
    from pidispatch.box.engine import Engine

    settings = load_settings()
    prepare(settings.egress_dir)
    with closing(Engine.connect()) as engine:
        proxy = EgressProxy(engine.client, settings.egress_proxy, SystemClock())
        did = proxy.up(settings.egress_dir, base, lambda line: click.echo(line, err=True))
        status = proxy.status()
    click.echo(f"{settings.egress_proxy} {_DONE[did]}")
    _show_lists(settings, status)


@egress.command("status")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.pass_context
def status(context: click.Context, as_json: bool) -> None:
    """Say whether the proxy runs and accepts, which lists are in force, and which edit was refused.

    Exit code 1: it does not run, does not accept, or was not made by `egress up`.
    """
    from pidispatch.box.egress import EgressProxy
    from pidispatch.box.engine import Engine

    settings = load_settings()
    with closing(Engine.connect()) as engine:
        found = EgressProxy(engine.client, settings.egress_proxy, SystemClock()).status()
    if as_json:
        click.echo(json.dumps(status_document(settings, found), indent=2))
    else:
        click.echo(f"{settings.egress_proxy} {_words(found)}")
        _show_lists(settings, found)
    if not found.accepting:
        context.exit(1)


def status_document(settings: Settings, found: "EgressStatus") -> dict[str, object]:
    """What `egress status --json` prints (docs/reference/json.md)."""
    return {"proxy": settings.egress_proxy, "armed": settings.egress, **found.model_dump(mode="json")}


@egress.command("down")
def down() -> None:
    """Remove the proxy and its network; the lists stay. Refused while jobs are connected to it."""
    from pidispatch.box.egress import EgressProxy
    from pidispatch.box.engine import Engine

    settings = load_settings()
    with closing(Engine.connect()) as engine:
        was_there = EgressProxy(engine.client, settings.egress_proxy, SystemClock()).down()
    click.echo(f"{settings.egress_proxy} {'is removed' if was_there else 'is not there, and neither is its network'}")


def _words(found: "EgressStatus") -> str:
    if not found.present:
        return "does not exist. Bring it up with: pi-dispatch egress up"
    if not found.ours:
        state = "runs" if found.running else "does not run"
        return f"{state}; pi-dispatch did not make it, so its lists are not known"
    if not found.running:
        return "does not run. Start it with: pi-dispatch egress up"
    return "runs and accepts" if found.accepting else "runs, but does not accept connections"


def _show_lists(settings: Settings, found: "EgressStatus") -> None:
    if found.since is not None:
        click.echo(f"allowed ({settings.egress_dir / ALLOWLIST}), in force since {printable(found.since)}:")
        _show(found.allowed)
        click.echo(f"of these, private addresses too ({settings.egress_dir / PRIVATE}):")
        _show(found.private)
    if found.refused is not None:
        click.echo(f"the last edit, seen {printable(found.refused.at)}, is refused and changed nothing:")
        _show(found.refused.faults)
    if not settings.egress:
        click.echo("PI_EGRESS=0 is set: jobs do not use the proxy")


def _show(lines: tuple[str, ...]) -> None:
    for line in lines or ("none",):
        click.echo(f"  {printable(line)}")
