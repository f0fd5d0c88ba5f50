"""Standard output and error that are closed, full or gone: the exit code is the verb's, and nobody sees a traceback."""

import os
import pty
import subprocess
import sys

import pytest

#: The program with a verb that prints what it is told, as text or as one of the libraries does, and ends as told.
PROGRAM = """
import sys, click
from pidispatch.cli import main
from pidispatch.cli.view import QuietConsole, error_console, note, live_view

@click.command()
@click.argument("code", type=int)
@click.argument("amount", type=int)
def probe(code, amount):
    note(error_console(), "a note")
    with live_view(error_console(), "waiting"):
        print("printed")
    QuietConsole().print("shown")
    click.echo("x" * amount)
    return code

for name in ("probe", "runs"):
    main.VERBS[name] = ("__main__:probe", "Prints.")
main.main()
"""


def ended(redirection: str, *arguments: str) -> tuple[int, str]:
    """Exit code and what came out of the streams that are left, of the program in a shell."""
    line = f'exec "$0" -c "$1" {" ".join(arguments)} {redirection}'
    done = subprocess.run(
        ["sh", "-c", line, sys.executable, PROGRAM],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=60,
    )
    return done.returncode, done.stdout


@pytest.mark.parametrize("code", [0, 1, 2])
@pytest.mark.parametrize("amount", [0, 100_000])
@pytest.mark.parametrize(
    "redirection",
    [
        ">&-",
        "2>&-",
        ">&- 2>&-",
        "<&- >&- 2>&-",
        ">/dev/full",
        "2>/dev/full",
        ">/dev/full 2>/dev/full",
        ">/dev/full 2>&-",
        "1</dev/null",
    ],
)
def test_the_exit_code_is_the_verbs(redirection: str, amount: int, code: int) -> None:
    got, out = ended(redirection, "probe", str(code), str(amount))
    assert got == code, out
    assert "Traceback" not in out
    assert "Exception ignored" not in out


def test_output_that_is_lost_is_told_and_fails_a_verb_that_only_prints() -> None:
    told = "pi-dispatch: standard output is incomplete: No space left on device\n"
    code, out = ended(">/dev/full", "probe", "0", "9")
    assert (code, out.endswith(told)) == (0, True), out
    code, out = ended(">/dev/full", "runs", "0", "9")
    assert (code, out.endswith(told)) == (1, True), out
    # The open control, and a stream that nobody wants.
    assert ended("", "runs", "0", "9") == (0, "a note\nprinted\nshown\nxxxxxxxxx\n")
    assert ended(">&-", "runs", "0", "9") == (0, "a note\n")


@pytest.mark.parametrize("code", [0, 2])
def test_a_reader_that_wants_no_more_is_no_fault(code: int) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, "runs", str(code), "1000000"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None
    assert process.stdout.read(7) == b"printed"
    process.stdout.close()
    assert process.stderr is not None
    assert process.stderr.read() == b"a note\n"
    assert process.wait(60) == code
    process.stderr.close()


def test_a_terminal_that_is_gone_is_no_fault() -> None:
    controller, terminal = pty.openpty()
    go_on, begin = os.pipe()
    process = subprocess.Popen(
        ["sh", "-c", 'read line; exec "$0" -c "$1" probe 2 100000', sys.executable, PROGRAM],
        stdin=go_on,
        stdout=terminal,
        stderr=terminal,
        start_new_session=True,
    )
    os.close(terminal)
    os.close(controller)
    os.write(begin, b"\n")
    assert process.wait(60) == 2
    os.close(begin)
    os.close(go_on)


@pytest.mark.parametrize(
    ("variables", "shown"),
    [({}, "caf\u00e9"), ({"PYTHONUNBUFFERED": "1"}, "caf\u00e9"), ({"PYTHONIOENCODING": "ascii"}, "caf\\xe9")],
)
def test_text_is_printed_whole_and_escaped_where_it_must_be(variables: dict[str, str], shown: str) -> None:
    code = (
        "import sys\nfrom pidispatch.cli.streams import guard_streams, lost_output\nguard_streams()\n"
        "print('caf\\u00e9')\nprint('y' * 200_000)\nprint('caf\\u00e9', file=sys.stderr)\nassert lost_output() is None"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={"PATH": os.environ["PATH"], "LANG": "C.UTF-8", **variables},
        capture_output=True,
        check=True,
    )
    assert done.stdout.decode() == f"{shown}\n{'y' * 200_000}\n"
    assert done.stderr.decode() == f"{shown}\n"
