"""What a person sees: plain words, escaped, with nothing of a run's text read as markup."""

import contextlib
import io
import os
import pty
import sys
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import pytest
from rich.console import Console

from pidispatch.cli.view import (
    DIFF_LINES,
    FILE_LINES,
    STAT_MARKS,
    QuietConsole,
    error_console,
    live_view,
    money,
    note,
    show_result,
)
from pidispatch.values.change import Change, FileChange
from pidispatch.values.job import LocalJob
from pidispatch.values.outcome import Aborted, Completed, InfraFailed, Outcome, Refused
from pidispatch.values.reason import AbortReason, Reason
from pidispatch.values.record import Result
from pidispatch.values.usage import Telemetry

NOW = datetime(2026, 1, 1, tzinfo=UTC)
JOB = LocalJob(id="local-1", folder=Path("/srv/folder"), task="a private task")
RECORD = Path("/logs/local-1.json")
LAST = "record     /logs/local-1.json (pi-dispatch show local-1)"
#: Text that a terminal, or a library that writes to one, might take for more than text.
NASTY = "[red]x[/red] [/] [link=y] :bug: \x1b[31m\u202e\x07"
SHOWN = "[red]x[/red] [/] [link=y] :bug: \\u{001B}[31m\\u{202E}\\u{0007}"
TOKENS: dict[str, Decimal | bool] = {"total": Decimal(1234567), "cost": Decimal("0.00012345")}


def result(outcome: Outcome, **update: object) -> Result:
    ran = {"exit_code": 0, "container_s": 12.34, "telemetry": Telemetry(turns=2, tokens=TOKENS)}
    return Result.begin(NOW, "anthropic", "m").model_copy(update={"outcome": outcome, **ran, **update})


def change(*files: FileChange, **update: object) -> Change:
    same = Change(changed=True, commits=0, head="a" * 40, files=files, dirty_before=False)
    return same.model_copy(update=update)


def shown(result: Result, job: LocalJob = JOB, *, terminal: bool = False) -> str:
    stream = io.StringIO()
    show_result(
        Console(file=stream, force_terminal=terminal, color_system="standard" if terminal else None, width=40),
        job,
        result,
        RECORD,
    )
    return stream.getvalue()


OUTCOMES: list[tuple[Result, list[str]]] = [
    (result(Completed()), ["completed  local:folder"]),
    (
        result(Completed(truncated=True)),
        ["completed  local:folder (the model's last answer was cut at its output limit)"],
    ),
    (
        result(
            Refused(reason=Reason.CONFIG_REFUSED, cause="worktree", detail="why so", remedy="do it"), exit_code=None
        ),
        ["refused    config-refused (worktree)", "why        why so", "remedy     do it"],
    ),
    (
        result(Refused(reason=Reason.RUNNER_POLICY, cause="turn_budget"), exit_code=2),
        [
            "ended      runner-policy (turn_budget)",
            f"why        {Reason.RUNNER_POLICY.meaning}",
            f"remedy     {Reason.RUNNER_POLICY.remedy}",
        ],
    ),
    (
        result(InfraFailed(reason=Reason.INFRA, cause="oom-killed", detail="no memory"), exit_code=137),
        ["failed     infra (oom-killed)", "why        no memory", f"remedy     {Reason.INFRA.remedy}"],
    ),
    (
        result(Aborted(reason=Reason.WORKER_ABORT, cause=AbortReason.JOB_TIMEOUT), exit_code=137),
        ["stopped    worker-abort (job-timeout-30m)", f"remedy     {Reason.WORKER_ABORT.remedy}"],
    ),
]


@pytest.mark.parametrize(("ended", "lines"), OUTCOMES)
def test_the_headline_of_every_outcome(ended: Result, lines: list[str]) -> None:
    text = shown(ended)
    assert text.splitlines()[: len(lines)] == lines
    assert "\x1b" not in text
    assert "private" not in text


@pytest.mark.parametrize(("ended", "lines"), OUTCOMES)
def test_at_a_terminal_the_headline_has_a_colour(ended: Result, lines: list[str]) -> None:
    text = shown(ended, terminal=True)
    assert text.startswith("\x1b[3")
    assert lines[0] in text


@pytest.mark.parametrize(
    ("update", "lines"),
    [
        ({}, ["spent      2 turns, 1,234,567 tokens, $0.0001", "took       12.3 s, exit 0"]),
        ({"exit_code": None}, ["spent      nothing: no container was run"]),
        ({"telemetry": Telemetry()}, ["spent      unknown turns, an unknown number of tokens, cost unknown"]),
        (
            {"telemetry": Telemetry(turns=1, tokens={"total": Decimal(1), "cost": Decimal(0), "unpriced": Decimal(2)})},
            ["spent      1 turns, 1 tokens, $0.0000 (and 2 calls without a known price)"],
        ),
        ({"telemetry": Telemetry(tokens={"total": True, "cost": True})}, ["an unknown number of tokens, cost unknown"]),
        ({"provider": "p", "model": NASTY}, [f"model      p/{SHOWN}"]),
    ],
)
def test_what_a_run_cost(update: dict[str, object], lines: list[str]) -> None:
    text = shown(result(Completed(), **update))
    for line in lines:
        assert line in text


@pytest.mark.parametrize(
    ("cost", "text"),
    [
        (Decimal("0.00005"), "$0.0000"),
        (Decimal("0.00015"), "$0.0002"),
        (Decimal("12.5"), "$12.5000"),
        (Decimal(0), "$0.0000"),
        (None, "cost unknown"),
        (False, "cost unknown"),
    ],
)
def test_money_has_four_decimals(cost: Decimal | bool | None, text: str) -> None:
    assert money(cost) == text


def test_what_changed() -> None:
    files = (
        FileChange(path="a.txt", kind="modified", added=3, removed=1),
        FileChange(path="x.bin", kind="added"),
        FileChange(path="gone", kind="deleted", added=0, removed=9),
    )
    text = shown(result(Completed(), change=change(*files, commits=2, dirty_before=True), diff="+x\n"))
    assert text.splitlines()[4:] == [
        "changed    3 file(s), 3 insertion(s)(+), 10 deletion(s)(-), 2 commit(s); the folder had uncommitted changes "
        "before the run",
        "           a.txt | 4 +++-",
        "           x.bin | binary or uncounted (added)",
        "           gone  | 9 --------- (deleted)",
        "",
        "+x",
        LAST,
    ]


def test_long_counts_are_drawn_to_scale() -> None:
    files = (
        FileChange(path="much", kind="modified", added=30 * STAT_MARKS, removed=10 * STAT_MARKS),
        FileChange(path="few", kind="modified", added=0, removed=1),
    )
    text = shown(result(Completed(), change=change(*files)))
    assert f"much | {40 * STAT_MARKS} {'+' * (STAT_MARKS * 3 // 4)}{'-' * (STAT_MARKS // 4)}\n" in text
    assert "few  | 1 -\n" in text


def test_what_was_put_back_is_said_loudly() -> None:
    put_back = result(Completed(), restored=(".git/config", f".git/hooks/{NASTY}"), kept="/jobs/kept-1")
    text = shown(put_back)
    assert "PUT BACK   the run had changed 2 file(s) from which your own git could execute something" in text
    assert f"           .git/config\n           .git/hooks/{SHOWN}\n" in text
    assert "kept in /jobs/kept-1" in text
    assert "PUT BACK" not in shown(result(Completed()))


def test_what_could_not_be_put_back_is_said_louder() -> None:
    text = shown(result(Completed(), guard_error="it resists"))
    assert "CAUTION    the git directory could not be put back: it resists" in text
    assert "do not use git in the folder before" in text


def test_a_run_without_a_record_names_none() -> None:
    stream = io.StringIO()
    show_result(Console(file=stream), JOB, result(Completed()), None)
    assert "record" not in stream.getvalue()


def test_a_run_that_changed_nothing_says_so() -> None:
    text = shown(result(Completed(), change=change(changed=False)))
    assert "changed    nothing: the run left no change that git would show" in text


def test_a_change_that_could_not_be_read_is_unknown() -> None:
    text = shown(result(Completed(), change_error=NASTY))
    assert f"changed    unknown: {SHOWN}" in text


def test_long_lists_are_cut() -> None:
    files = [FileChange(path=f"f{number}", kind="added", added=1, removed=0) for number in range(FILE_LINES + 1)]
    text = shown(result(Completed(), change=change(*files)))
    assert f"f{FILE_LINES - 1} " in text
    assert f"f{FILE_LINES} " not in text
    assert "... and more; --json lists them all" in text
    assert "... and more" not in shown(result(Completed(), change=change(*files[:-1])))
    assert "... and more" in shown(result(Completed(), change=change(*files[:1], truncated=True)))


def test_a_long_diff_is_left_to_git() -> None:
    files = change(FileChange(path="f", kind="added"))
    whole = shown(result(Completed(), change=files, diff="+x\n" * DIFF_LINES))
    assert whole.count("+x\n") == DIFF_LINES
    cut = shown(result(Completed(), change=files, diff="+x\n" * (DIFF_LINES + 1)))
    assert f"diff       {DIFF_LINES + 1} lines, too many to show here; --json holds them" in cut
    assert "+x" not in cut


def test_nothing_of_a_runs_text_acts() -> None:
    name = FileChange(path=f"{NASTY}\nname", kind="added", added=1, removed=0)
    texts = (
        shown(result(Completed(), change=change(name), diff=f"+{NASTY}\n-\ttab\r"), JOB.model_copy()),
        shown(result(Completed()), LocalJob(id="j", folder=Path("/srv") / NASTY.replace("/", "-"), task="x")),
        shown(result(Refused(reason=Reason.CONFIG_REFUSED, detail=NASTY, remedy=NASTY))),
        shown(result(InfraFailed(reason=Reason.INFRA), telemetry=Telemetry(message=f"{NASTY}\nsaid"))),
    )
    for text in texts:
        assert all(line.isprintable() for line in text.split("\n"))
        assert ":bug:" in text
        assert "[red]x" in text
    assert f"{SHOWN}\\u{{000A}}name" in texts[0]
    assert f"+{SHOWN}\n-    tab\\u{{000D}}\n" in texts[0]
    assert f"why        {SHOWN}" in texts[2]
    assert f"box says   {SHOWN}\\u{{000A}}said" in texts[3]


def test_the_boxs_message_is_not_shown_for_a_run_that_completed() -> None:
    assert "box says" not in shown(result(Completed(), telemetry=Telemetry(message="said")))


def test_a_dropped_outbox_is_told() -> None:
    assert "outbox     2 file(s)" in shown(result(Completed(), outbox_files=2))
    assert "outbox" not in shown(result(Completed()))


def test_notes_go_to_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    error_console().print("note")
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", "note\n")


@pytest.mark.parametrize("way", ["full", "no reader", "closed"])
def test_a_stream_that_fails_takes_nothing_with_it(way: str) -> None:
    if way == "full":
        writer = os.open("/dev/full", os.O_WRONLY)
    else:
        reader, writer = os.pipe()
        os.close(reader)
    stream = os.fdopen(writer, "w")
    if way == "closed":
        stream.close()
    console = QuietConsole(file=stream)
    with live_view(console, "waiting") as live:
        live.happened("a step")
        live.counts("turn 1")
        live.goes_on("the agent works")
    note(console, "a note")
    show_result(console, JOB, result(Completed()), RECORD)

    assert console.quiet
    with contextlib.suppress(OSError):
        stream.close()


@pytest.mark.filterwarnings("error::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_terminal_that_is_closed_in_the_middle_takes_nothing_with_it() -> None:
    controller, terminal = pty.openpty()
    stream = os.fdopen(terminal, "w")
    console = QuietConsole(file=stream)
    assert console.is_terminal
    with live_view(console, "waiting") as live:
        live.happened("a step")
        os.close(controller)
        # What is under way goes on, and so does what comes after.
        live.counts("turn 3")
        live.happened("another step")
        during = sys.stdout
    note(console, "a note")
    show_result(console, JOB, result(Completed()), RECORD)

    assert console.quiet
    # The status had put itself in the place of standard output.
    assert sys.stdout is not during
    with contextlib.suppress(OSError):
        stream.close()
