"""`pi-dispatch receiver`, and the program `pi-dispatch-receiver`: hears forges, or looks there, until told to stop."""

import sys
from typing import NoReturn

import click

from pidispatch import __version__
from pidispatch.cli.streams import guard_streams


@click.group(
    "receiver",
    short_help="Hear webhooks, and hand in the jobs they ask for.",
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(__version__, prog_name="pi-dispatch-receiver")
@click.pass_context
def receiver(context: click.Context) -> int:
    """Hear the webhooks of forges and hand in the jobs that the triggers file has for them.

    Without a word it is `serve`. What it needs: docs/how-to/receiver.md. Where no webhook can reach it: `poll`.
    """
    return 0 if context.invoked_subcommand is not None else _serve()


@receiver.command("serve")
def serve() -> int:
    """Hear webhooks until told to stop (Ctrl-C, SIGTERM).

    Exit code: 0 after a clean stop, 1 the surroundings failed, 2 refused.
    """
    return _serve()


@receiver.command("poll")
def poll() -> int:
    """Look for what is new on GitHub again and again, where no webhook can reach this machine, until told to stop.

    Of each repository it begins with what comes from now on. What it needs: docs/how-to/poll.md. Exit code: as of
    serve.
    """
    from pidispatch.receiver.poll_boot import run_poller

    return run_poller()


def _serve() -> int:
    # What it needs takes longer to load than all help may.
    from pidispatch.receiver.boot import run_receiver

    return run_receiver()


def main() -> NoReturn:
    """Entry point of the program `pi-dispatch-receiver`."""
    guard_streams()
    try:
        code = receiver.main(sys.argv[1:], prog_name="pi-dispatch-receiver", standalone_mode=False)
    except click.exceptions.Abort:
        code = 1
    except click.ClickException as error:
        # A wrong call is not a refusal: its own exit code would tell a supervisor never to try again.
        error.show()
        code = 1
    sys.exit(code if isinstance(code, int) else 0)
