"""The program `pi-dispatch`: finds the verb, loads only what it needs, and turns errors into exit codes.

Exit codes: 0 done, 1 the surroundings failed or the call was wrong, 2 refused for good (docs/reference/reasons.md).
"""

import gc
import importlib
import sys
from typing import TYPE_CHECKING, Final, NoReturn

import click

from pidispatch import __version__
from pidispatch.cli.streams import guard_streams, lost_output
from pidispatch.config.text import printable_block
from pidispatch.values.errors import DispatchError

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

#: Verb -> (module and name of its command, one line of help). Help is shown without loading any of them.
VERBS: Final[dict[str, tuple[str, str]]] = {
    "cancel": ("pidispatch.cli.cancel:cancel", "Cancel a job that waits or runs."),
    "check": ("pidispatch.cli.check:check", "Check everything a worker needs, and say what to mend."),
    "completion": ("pidispatch.cli.completion:completion", "Print the script that completes verbs and ids in a shell."),
    "deliveries": ("pidispatch.cli.deliveries:deliveries", "List what became of the last events of forges."),
    "egress": ("pidispatch.cli.egress:egress", "Run the proxy by which jobs reach the allowed hosts."),
    "explain": ("pidispatch.cli.explain:explain", "Say where a job stands, why, and what to do about it."),
    "explain-event": ("pidispatch.cli.explain_event:explain_event", "Say which trigger an event would fire, and why."),
    "image": ("pidispatch.cli.image:image", "Build and verify the image that jobs run in."),
    "limits": ("pidispatch.cli.limits:limits", "Show every bound on runs: how full, and when it frees."),
    "logs": ("pidispatch.cli.logs:logs", "Print the kept output of a run, or follow it."),
    "pause": ("pidispatch.cli.pause:pause", "Start no new jobs."),
    "receiver": ("pidispatch.cli.receiver:receiver", "Hear webhooks, and hand in the jobs they ask for."),
    "resume": ("pidispatch.cli.pause:resume", "Start jobs again after a pause."),
    "retry": ("pidispatch.cli.retry:retry", "Hand in an ended job again."),
    "run": ("pidispatch.cli.run:run", "Hand in a job: the agent on a folder of yours."),
    "runs": ("pidispatch.cli.runs:runs", "List the runs there were."),
    "server": ("pidispatch.cli.server:server", "Show and stop pi-dispatch's own server."),
    "show": ("pidispatch.cli.show:show", "Show one run in full."),
    "status": ("pidispatch.cli.status:status", "Show the queue: what runs, waits and is held."),
    "triggers": ("pidispatch.cli.triggers:triggers", "Show what starts jobs; let it go on."),
    "worker": ("pidispatch.cli.worker:worker", "Take jobs from the queue and run them."),
}
#: Verbs that do nothing but print: output that could not be written is their failure.
PRINTING: Final = frozenset(
    {"check", "completion", "deliveries", "explain", "explain-event", "limits", "logs", "runs", "show", "status"}
)

_BRIEF: Final = ("runs", "show")


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

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        # The group's own suggestions are looked for among the verbs that are loaded, and none is.
        if args[0] not in VERBS and not ctx.resilient_parsing:
            ctx.fail(f"No such command {args[0]!r}.{_meant(args[0])}")
        return super().resolve_command(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> "list[CompletionItem[str]]":
        # From the table: whoever completes a verb waits at a prompt.
        from click.shell_completion import CompletionItem

        verbs = [CompletionItem(name, help=VERBS[name][1]) for name in sorted(VERBS) if name.startswith(incomplete)]
        return [*verbs, *super(click.Group, self).shell_complete(ctx, incomplete)]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        with formatter.section("Commands"):
            formatter.write_dl([(name, VERBS[name][1]) for name in sorted(VERBS)])


def _meant(name: str) -> str:
    """The verb that was meant, as a sentence; empty where none is near."""
    # Imported here, as nearly no call needs it.
    import difflib

    near = difflib.get_close_matches(name, VERBS, n=1)
    return f" Did you mean {near[0]!r}?" if near else ""


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
    if arguments[:1] and arguments[0] in _BRIEF:
        # They end in a moment: to look for garbage costs them a tenth of their time.
        gc.disable()
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
