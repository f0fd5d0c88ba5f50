"""What each stub agent does. A scenario gets one argument, usually a path to leave a note at."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from tests.fakes.agent.protocol import Wire, assistant

#: A child that reports its id on the descriptor it was given, then stays, deaf to SIGTERM.
_DEAF = """
import os, signal, sys
signal.signal(signal.SIGTERM, signal.SIG_IGN)
os.write(int(sys.argv[1]), b"%d\\n" % os.getpid())
os.close(int(sys.argv[1]))
signal.pause()
"""
#: A parent that starts such a child and ends at once.
_LEAVES_ONE = """
import subprocess, sys
subprocess.Popen([sys.executable, "-c", sys.argv[2], sys.argv[1]], start_new_session=True, pass_fds=[int(sys.argv[1])])
"""


def _stay() -> None:
    """Never return, whatever signals come."""
    while True:
        signal.pause()


def completes(_argument: str) -> None:
    """One tool turn, one answer, an orderly end."""
    wire = Wire()
    wire.take_prompt()
    wire.turn(assistant("toolUse", 100), results=1)
    wire.answer(assistant("stop", 150))
    wire.until_stdin_ends()


def settles_and_stays(_argument: str) -> None:
    """Reports its end, then neither heeds the end of stdin nor SIGTERM."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    wire = Wire()
    wire.take_prompt()
    wire.answer(assistant("stop"))
    _stay()


def ends_without_a_word(_argument: str) -> None:
    """Its last event is ``agent_end``; it never says that it settled."""
    wire = Wire()
    wire.take_prompt()
    message = assistant("stop")
    wire.turn(message)
    wire.emit("agent_end", messages=[message], willRetry=False)
    wire.until_stdin_ends()


def dies_at_start(argument: str) -> None:
    """Ends before it answers anything; `argument` is its complaint."""
    sys.stderr.write(argument)
    raise SystemExit(1)


def dies_midway(_argument: str) -> None:
    """Ends in the middle of its second turn."""
    wire = Wire()
    wire.take_prompt()
    wire.turn(assistant("toolUse", 100), results=1)
    wire.emit("turn_start")
    wire.emit("message_start", message=assistant("pending", 0))
    sys.stderr.write("heap out of memory")
    sys.stderr.flush()
    os._exit(7)


def dies_but_its_output_stays_open(argument: str) -> None:
    """Ends while a child that inherited its output lives on; the child's id is left in the file `argument`."""
    wire = Wire()
    wire.take_prompt()
    child = subprocess.Popen([sys.executable, "-c", "import signal; signal.pause()"], start_new_session=True)
    Path(argument).write_text(str(child.pid))
    os._exit(7)


def garbage(_argument: str) -> None:
    """Everything that is no protocol between its events, and a line of three megabytes."""
    wire = Wire()
    wire.raw(b'\xff\xfe not json\n\n[1,2]\n{"type":\n' + b"9" * 5000 + b"\nNaN\n" + b"[" * 100_000 + b"\n")
    wire.take_prompt()
    message = {**assistant("stop"), "content": [{"type": "text", "text": "\u2028\x85" + "x" * 3_000_000}]}
    wire.raw(b'{"type":"message_end","message":{"role":"assistant","usage":{"input":1e999999,"output":-3}\n')
    wire.answer(message)
    wire.until_stdin_ends()


def handles_the_prompt(_argument: str) -> None:
    """An extension took the prompt; no run follows."""
    wire = Wire()
    command = wire.command()
    if command is not None:
        wire.respond(command, {"disposition": "handled"})
    wire.until_stdin_ends()


def handles_the_prompt_and_runs(_argument: str) -> None:
    """An extension took the prompt and started a run of its own, which ends with the process."""
    wire = Wire()
    command = wire.command()
    if command is not None:
        wire.streaming = True
        wire.emit("agent_start")
        wire.respond(command, {"disposition": "handled"})
    # The question whether it works is answered by this call, whose patience is the run's length.
    wire.command(patience_seconds=0.2)
    wire.answer(assistant("stop"))


def fails_once(_argument: str) -> None:
    """Its first turn fails at the provider and is restarted."""
    wire = Wire()
    wire.take_prompt()
    failed = assistant("error", 0, error="503 overloaded")
    wire.turn(failed)
    wire.emit("agent_end", messages=[failed], willRetry=True)
    wire.emit("auto_retry_start", attempt=1, maxAttempts=2, delayMs=1, errorMessage="503 overloaded")
    wire.emit("auto_retry_end", success=True, attempt=1)
    wire.answer(assistant("stop"))
    wire.until_stdin_ends()


def rejects_the_prompt(argument: str) -> None:
    """Does not take the prompt; `argument` is its reason."""
    wire = Wire()
    command = wire.command()
    if command is not None:
        wire.respond(command, error=argument)
    wire.until_stdin_ends()


def asks_the_user(_argument: str) -> None:
    """Blocks on a dialog and answers well only when it was cancelled."""
    wire = Wire()
    wire.take_prompt()
    wire.emit("extension_ui_request", id="d1", method="notify", message="no answer expected")
    wire.emit("extension_ui_request", id="d2", method="confirm", title="Sure?", message="?")
    reply = wire.command() or {}
    cancelled = reply.get("id") == "d2" and reply.get("cancelled") is True
    wire.answer(assistant("stop" if cancelled else "error"))
    wire.until_stdin_ends()


def never_answers(_argument: str) -> None:
    """Takes no command at all."""
    sys.stdin.read()


def never_takes_the_prompt(_argument: str) -> None:
    """Answers the start-up questions, then ignores the prompt."""
    wire = Wire()
    while wire.command() is not None:
        continue


def works_until_aborted(argument: str) -> None:
    """Runs turns without end, as if the extension in its process were broken. Ends its run when aborted."""
    wire = Wire()
    wire.take_prompt()
    abort = None
    while abort is None:
        wire.turn(assistant("toolUse", 100), results=1)
        abort = wire.command(patience_seconds=0.05)
    Path(argument).write_text(str(abort["type"]))
    message = assistant("aborted", 0, error="This operation was aborted")
    wire.turn(message)
    wire.rest(message, aborted=True)
    wire.respond(abort)
    wire.until_stdin_ends()


def ignores_everything(_argument: str) -> None:
    """Works on one turn for ever, whatever it is told."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    wire = Wire()
    wire.take_prompt()
    wire.turn(assistant("toolUse", 100), results=1)
    wire.emit("turn_start")
    wire.emit("message_start", message=assistant("pending", 0))
    _stay()


def exceeds_and_ignores_the_abort(_argument: str) -> None:
    """Opens one turn after another past every budget without heeding an abort."""
    wire = Wire()
    wire.take_prompt()
    for _ in range(5):
        wire.turn(assistant("toolUse", 100), results=1)
    _stay()


def leaves_children(argument: str) -> None:
    """Starts a child in its own session and one whose parent is gone, both deaf to SIGTERM; notes their ids."""
    wire = Wire()
    wire.take_prompt()
    reading, writing = os.pipe()
    fd = str(writing)
    subprocess.Popen([sys.executable, "-c", _DEAF, fd], start_new_session=True, pass_fds=[writing])
    subprocess.run([sys.executable, "-c", _LEAVES_ONE, fd, _DEAF], pass_fds=[writing], check=True)
    os.close(writing)
    with os.fdopen(reading) as ids:
        Path(argument).write_text(ids.read())
    wire.answer(assistant("stop"))
    wire.until_stdin_ends()


def refused(argument: str) -> None:
    """The provider answers with an error; `argument` is its text."""
    wire = Wire()
    wire.take_prompt()
    wire.answer(assistant("error", 0, error=argument))
    wire.until_stdin_ends()


def has_a_skill(argument: str) -> None:
    """Knows the skill ``fix``; notes the prompt it got."""
    wire = Wire(skills=("fix",))
    prompt = wire.take_prompt()
    Path(argument).write_text(str(prompt["message"]))
    wire.answer(assistant("stop"))
    wire.until_stdin_ends()


def shows_its_start(argument: str) -> None:
    """Notes its arguments, folder and environment."""
    lines = [*sys.argv, f"cwd={os.getcwd()}", *(f"{name}={value}" for name, value in os.environ.items())]
    Path(argument).write_text("\n".join(lines))
    wire = Wire()
    wire.take_prompt()
    wire.answer(assistant("stop"))
    wire.until_stdin_ends()


SCENARIOS: Mapping[str, Callable[[str], None]] = {
    scenario.__name__: scenario
    for scenario in (
        asks_the_user,
        completes,
        dies_at_start,
        dies_but_its_output_stays_open,
        dies_midway,
        ends_without_a_word,
        exceeds_and_ignores_the_abort,
        fails_once,
        garbage,
        handles_the_prompt,
        handles_the_prompt_and_runs,
        has_a_skill,
        ignores_everything,
        leaves_children,
        never_answers,
        never_takes_the_prompt,
        refused,
        rejects_the_prompt,
        settles_and_stays,
        shows_its_start,
        works_until_aborted,
    )
}
