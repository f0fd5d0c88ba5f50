"""`pi-dispatch server`: which server the queue is on, how it stands, and the end of one that was left behind."""

import json
from contextlib import closing
from typing import Any

import click
from rich.console import Console

from pidispatch.cli.view import QuietConsole, error_console, note
from pidispatch.config.text import printable
from pidispatch.server.address import Address
from pidispatch.server.client import ServerFacts, check_server, connect
from pidispatch.server.embedded import Embedded, Look
from pidispatch.server.use import load_server_settings
from pidispatch.values.errors import InfraError

_NOT_DURABLE = (
    "it does not keep all it is told: a job or a budget can be lost. On your server set: appendonly yes, "
    "maxmemory-policy noeviction"
)


@click.group("server", short_help="Show and stop pi-dispatch's own server.")
def server() -> None:
    """Show which server the queue is on, and stop pi-dispatch's own (docs/how-to/server.md).

    These verbs work while variables other than VALKEY_URL, VALKEY_PASSWORD, PI_STATE_DIR and PI_KEY_PREFIX are broken.
    """


@server.command("status")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.pass_context
def status(context: click.Context, as_json: bool) -> None:
    """Say which server is used, whether it runs, and whether it keeps what it is told. Starts none.

    Exit code 1: it does not run, or does not answer. Exit code 2: it cannot serve the queue.
    """
    settings = load_server_settings()
    address = Address.of(settings)
    look = Embedded(settings.state_dir).look() if settings.valkey_url is None else None
    facts, fault = _ask(address, look)
    if as_json:
        click.echo(json.dumps(document(address, look, facts, fault), indent=2))
    else:
        _show(QuietConsole(), address, look, facts)
        if fault is not None:
            note(error_console(), printable(fault))
        if facts is not None and not facts.durable:
            note(error_console(), _NOT_DURABLE)
    if facts is None:
        context.exit(1)


@server.command("stop")
def stop() -> None:
    """Stop pi-dispatch's own server, which a killed program left behind. Refused while somebody uses it.

    What it holds stays on the disk, and is there again when the next program starts it.
    """
    settings = load_server_settings()
    if settings.valkey_url is not None:
        raise click.ClickException(
            f"VALKEY_URL names {printable(Address.of(settings).shown)}, which is not pi-dispatch's to stop. "
            "Stop it as it was started"
        )
    was_there = Embedded(settings.state_dir).stop()
    click.echo(f"pi-dispatch's own server {'is stopped' if was_there else 'does not run'}")


def _ask(address: Address, look: Look | None) -> tuple[ServerFacts | None, str | None]:
    """What the server says, or why it says nothing; `look` is at our own."""
    if look is not None and not look.lives:
        return None, None
    with closing(connect(address)) as client:
        try:
            return check_server(client, address), None
        except InfraError as error:
            return None, error.message


def document(address: Address, look: Look | None, facts: ServerFacts | None, fault: str | None) -> dict[str, Any]:
    """What `server status --json` prints (docs/reference/json.md)."""
    return {
        "server": "named" if look is None else "embedded",
        "address": address.shown,
        "running": facts is not None or bool(look and look.lives),
        "used": look.used if look is not None else None,
        "fault": fault,
        "durable": facts.durable if facts is not None else None,
        "facts": facts.model_dump(mode="json") if facts is not None else None,
    }


def _show(console: Console, address: Address, look: Look | None, facts: ServerFacts | None) -> None:
    """One line a fact; what is not known is left out."""
    whose = "named by VALKEY_URL" if look is None else "pi-dispatch's own"
    lines = {"server": f"{whose}: {printable(address.shown)}", "state": _state(look, facts)}
    if facts is not None:
        lines |= {
            "version": f"{facts.product} {printable(facts.version)}",
            "pid": str(facts.pid),
            "up": f"{facts.uptime_s:,} s",
            "memory": f"{facts.memory_bytes / 1024**2:.1f} MiB",
            "appendonly": "yes" if facts.appendonly else "no",
            "when full": printable(facts.maxmemory_policy),
        }
    for name, value in lines.items():
        console.print(f"{name:<12}{value}", markup=False, emoji=False, highlight=False, soft_wrap=True)


def _state(look: Look | None, facts: ServerFacts | None) -> str:
    if look is None:
        return "answers" if facts is not None else "does not answer"
    if not look.lives:
        return "does not run; the next program that needs it starts it"
    used = "in use" if look.used else "nobody uses it; pi-dispatch server stop ends it"
    return f"{'answers' if facts is not None else 'runs, but does not answer'}; {used}"
