"""The program `pi-dispatch`: finds the verb, loads only what it needs, and turns errors into exit codes.

Exit codes: 0 done, 1 the surroundings failed or the call was wrong, 2 refused for good (docs/reference/reasons.md).
"""

import importlib
import sys
from typing import Final, NoReturn

import click

from pidispatch import __version__
from pidispatch.cli.streams import guard_streams, lost_output
from pidispatch.config.text import printable_block
from pidispatch.values.errors import DispatchError

#: Verb -> (module and name of its command, one line of help). Help is shown without loading any of them.
VERBS: Final[dict[str, tuple[str, str]]] = {
    "cancel": ("pidispatch.cli.cancel:cancel", "Cancel a job that waits or runs."),
    "egress": ("pidispatch.cli.egress:egress", "Run the proxy by which jobs reach the allowed hosts."),
    "image": ("pidispatch.cli.image:image", "Build and verify the image that jobs run in."),
    "logs": ("pidispatch.cli.logs:logs", "Print the kept output of a run."),
    "run": ("pidispatch.cli.run:run", "Hand in a job: the agent on a folder of yours."),
    "runs": ("pidispatch.cli.runs:runs", "List the runs there were."),
    "server": ("pidispatch.cli.server:server", "Show and stop pi-dispatch's own server."),
    "show": ("pidispatch.cli.show:show", "Show one run in full."),
    "worker": ("pidispatch.cli.worker:worker", "Take jobs from the queue and run them."),
}
#: Verbs that do nothing but print: output that could not be written is their failure.
PRINTING: Final = frozenset({"logs", "runs", "show"})


class _Verbs(click.Group):
    """A group whose verbs are loaded when they are called."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - the signature is given
        return sorted(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in VERBS:
            return None
        module, name = VERBS[cmd_name][0].split(":")
        command: click.Command = getattr(importlib.import_module(module), name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        with formatter.section("Commands"):
            formatter.write_dl([(name, VERBS[name][1]) for name in sorted(VERBS)])


@click.group(cls=_Verbs, context_settings={"help_option_names": ["-h", "--help"]}, invoke_without_command=True)
@click.version_option(__version__, prog_name="pi-dispatch")
@click.pass_context
def cli(ctx: click.Context) -> None:
    """Runs the pi coding agent on your repositories, inside one locked-down container per job."""
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


def main() -> NoReturn:
    """Entry point of the program. What a verb did counts, whatever becomes of the text; a verb of `PRINTING` fails."""
    guard_streams()
    arguments = sys.argv[1:]
    code = _run(arguments)
    if (lost := lost_output()) is not None:
        click.echo(f"pi-dispatch: standard output is incomplete: {lost.strerror}", err=True)
        if code == 0 and arguments[:1] and arguments[0] in PRINTING:
            code = 1
    sys.exit(code)


def _run(arguments: list[str]) -> int:
    try:
        code = cli.main(arguments, prog_name="pi-dispatch", standalone_mode=False)
    except click.exceptions.Abort:
        return 1
    except click.ClickException as error:
        # A wrong call is not a refusal: its own exit code would tell a supervisor never to try again.
        error.show()
        return 1
    except DispatchError as error:
        click.echo(f"pi-dispatch: {printable_block(error.message)}", err=True)
        return error.exit_code
    return code if isinstance(code, int) else 0
