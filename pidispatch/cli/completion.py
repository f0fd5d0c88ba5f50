"""`pi-dispatch completion`, and the ids that complete an argument: https://click.palletsprojects.com/shell-completion/

Whoever presses Tab waits at a prompt. So what is looked for is bounded, and where something is missing or broken,
nothing is offered and nothing is said.
"""

import json
import os
import re
from collections.abc import Callable, Iterable
from contextlib import closing
from typing import TYPE_CHECKING, Any, Final

import click

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from pidispatch.jobs.keys import Key

    Offer = list[CompletionItem[str]]

#: The variable by which the script asks this program, as click makes it from the program's name.
VARIABLE: Final = "_PI_DISPATCH_COMPLETE"
_SHELLS: Final = ("bash", "zsh", "fish")
#: Ids that are offered at most, and seconds in which the server must have named them.
MOST: Final = 100
ANSWER_S: Final = 0.3
#: An id that means nothing to any shell.
_PLAIN = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.@+-]*")


@click.command()
@click.argument("shell", type=click.Choice(_SHELLS))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print the script by which SHELL (bash, zsh or fish) completes verbs, options and ids.

    For bash: eval "$(pi-dispatch completion bash)". For the others see docs/how-to/shell-completion.md.
    """
    from click.shell_completion import get_completion_class

    kind = get_completion_class(shell)
    assert kind is not None, shell
    script = kind(context.find_root().command, {}, "pi-dispatch", VARIABLE)
    # Not `source()`, which asks the bash on the path for its version.
    click.echo(script.source_template % script.source_vars())


def complete_records(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> "Offer":
    """Ids of the runs on record, newest first; for `shell_complete` of an argument."""
    return _offer(lambda: _newest(".json", incomplete), incomplete)


def complete_outputs(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> "Offer":
    """Ids of the jobs whose output is kept, newest first, also of those that run."""
    return _offer(lambda: _newest(".log", incomplete), incomplete)


def complete_jobs(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> "Offer":
    """Ids of the jobs that run, wait or are held, from a server that answers at once."""
    return _offer(lambda: _from_server(_not_ended), incomplete)


def complete_failed_jobs(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> "Offer":
    """Ids of the jobs that failed, the last one first, from a server that answers at once."""
    return _offer(lambda: _from_server(_failed), incomplete)


def complete_schedules(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> "Offer":
    """Ids of the schedules of PI_TRIGGERS_FILE, in the order of the file."""
    return _offer(lambda: [name for name, on in _entries() if "id" in on], incomplete)


def complete_triggers(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> "Offer":
    """Ids of the schedules of the triggers file, and places of its rules."""
    return _offer(lambda: [name for name, _ in _entries()], incomplete)


def complete_one_shots(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> "Offer":
    """Places of the rules that fire once."""
    return _offer(lambda: [name for name, on in _entries() if on.get("once") is True], incomplete)


def _offer(find: Callable[[], Iterable[str]], incomplete: str) -> "Offer":
    from click.shell_completion import CompletionItem

    try:
        found = [one for one in find() if one.startswith(incomplete) and _PLAIN.fullmatch(one)]
    except Exception:
        # A prompt is no place to tell what is wrong; the verb itself does.
        return []
    return [CompletionItem(one) for one in found[:MOST]]


def _newest(suffix: str, incomplete: str) -> list[str]:
    """The files of the records' folder that are named so, by name without `suffix`."""
    from pidispatch.config.settings import load_only

    with os.scandir(load_only(("PI_LOGS_DIR",)).logs_dir) as entries:
        found = [
            (entry.stat(follow_symlinks=False).st_mtime_ns, entry.name.removesuffix(suffix))
            for entry in entries
            if entry.name.endswith(suffix) and entry.name.startswith(incomplete)
        ]
    return [name for _, name in sorted(found, reverse=True)]


def _entries() -> list[tuple[str, dict[str, Any]]]:
    """What the file holds, each by its id or its place; read with doubt: no model is loaded to check it."""
    from pidispatch.config.operator_file import read_bytes
    from pidispatch.config.settings import load_only

    path = load_only(("PI_TRIGGERS_FILE",)).triggers_file
    entries = json.loads(read_bytes(path))["triggers"] if path is not None else []
    return [(str(entry["on"].get("id", at)), entry["on"]) for at, entry in enumerate(entries)]


def _from_server(find: "Callable[[Any, Callable[..., str]], list[str]]") -> list[str]:
    """What `find` reads with a client and the maker of key names. The server is not joined, and none is started."""
    from pidispatch.config.asked import asked
    from pidispatch.jobs.keys import named
    from pidispatch.server.address import Address
    from pidispatch.server.client import connect
    from pidispatch.server.use import load_server_settings

    settings = load_server_settings()

    def ask() -> list[str]:
        with closing(connect(Address.of(settings), timeout_s=ANSWER_S)) as client:
            return find(client, named(settings.key_prefix))

    # Looking up a host's name has no bound of its own.
    return asked(ask).result(2 * ANSWER_S)


def _not_ended(client: Any, key: "Callable[[Key, str], str]") -> list[str]:
    from pidispatch.jobs.keys import ACTIVE, DUE, QUEUED, QUEUES

    waiting = [key(QUEUED, queue) for queue in sorted(client.smembers(key(QUEUES, "")))]
    with client.pipeline(transaction=False) as questions:
        for name in (key(ACTIVE, ""), *waiting, key(DUE, "")):
            questions.zrange(name, 0, MOST - 1)
        return [str(one) for told in questions.execute() for one in told]


def _failed(client: Any, key: "Callable[[Key, str], str]") -> list[str]:
    from pidispatch.jobs.keys import FAILED_JOBS

    return [str(one) for one in client.zrevrange(key(FAILED_JOBS, ""), 0, MOST - 1)]
