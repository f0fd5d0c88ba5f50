"""What a person sees of a run: progress while it goes, and at the end how it went, why, what it cost and changed."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.status import Status
from rich.text import Text

from pidispatch.config.text import printable, printable_block
from pidispatch.values.change import Change, FileChange
from pidispatch.values.job import Job
from pidispatch.values.outcome import Aborted, Completed, InfraFailed, Refused
from pidispatch.values.record import Result

if TYPE_CHECKING:
    from pidispatch.server.use import Server

#: Lines of a diff that are shown; a longer one is left to `--json`.
DIFF_LINES = 80
#: Most `+` and `-` that stand behind one file.
STAT_MARKS = 40
#: Changed files that are listed.
FILE_LINES = 40


class Live:
    """What goes on: one changing line under the others where a person looks, plain lines elsewhere."""

    def __init__(self, console: Console, status: Status | None) -> None:
        self._out = _Lines(console)
        self._status = status

    def happened(self, text: str) -> None:
        """A step that is done."""
        self._out.line(text, "dim" if self._status else None)

    def counts(self, text: str) -> None:
        """Numbers so far, which newer ones take the place of."""
        if self._status is None:
            self._out.line(text)
        else:
            self.goes_on(text)

    def goes_on(self, text: str) -> None:
        """What the time passes with; not told where lines stay."""
        if self._status is not None:
            self._status.update(Text(text))


@contextmanager
def live_view(console: Console, first: str) -> Iterator[Live]:
    """A view that begins with `first` as what goes on."""
    if not console.is_terminal:
        yield Live(console, None)
        return
    with Status(Text(first), console=console) as status:
        yield Live(console, status)


def note(console: Console, text: str) -> None:
    """One line beside the result, as it stands."""
    console.print(text, style="yellow", markup=False, emoji=False, highlight=False, soft_wrap=True)


def say_server(server: "Server", state_dir: Path) -> str:
    """Which server it is, without its password."""
    if server.embedded:
        return f"pi-dispatch's own server in {printable(str(state_dir))}"
    return printable(server.address.shown)


def show_result(console: Console, job: Job, result: Result, record: Path | None) -> None:
    """How the run went, for a person; `record` is where the run is kept."""
    out = _Lines(console)
    _headline(out, job, result)
    _numbers(out, result)
    _changes(out, result)
    _guarded(out, result)
    if record is not None:
        out.line(f"record     {printable(str(record))} (pi-dispatch show {job.id})")
    if result.outbox_files:
        out.line(
            f"outbox     {result.outbox_files} file(s) that the agent left in its outbox were dropped: follow-up jobs "
            "are not served by this version"
        )


class _Lines:
    """Plain lines on a console, with no reading of markup or emoji codes in them."""

    def __init__(self, console: Console) -> None:
        self._console = console

    def line(self, text: str = "", style: str | None = None) -> None:
        self._console.print(text, style=style, markup=False, emoji=False, highlight=False, soft_wrap=True)


def _headline(out: _Lines, job: Job, result: Result) -> None:
    outcome = result.outcome
    match outcome:
        case Completed(truncated=truncated):
            cut = " (the model's last answer was cut at its output limit)" if truncated else ""
            out.line(f"completed  {printable(job.target_name)}{cut}", "green")
        case Refused() | InfraFailed():
            word = "refused" if isinstance(outcome, Refused) and result.exit_code is None else "ended"
            word = "failed" if isinstance(outcome, InfraFailed) else word
            cause = f" ({outcome.cause})" if outcome.cause else ""
            out.line(f"{word:<10} {outcome.reason.value}{cause}", "red" if word == "failed" else "yellow")
            out.line(f"why        {printable(outcome.detail or outcome.reason.meaning)}")
            out.line(f"remedy     {printable(outcome.remedy or outcome.reason.remedy)}")
        case Aborted():
            out.line(f"stopped    {outcome.reason.value} ({outcome.cause.value})", "yellow")
            out.line(f"remedy     {outcome.reason.remedy}")
    if result.telemetry.message and not isinstance(outcome, Completed):
        out.line(f"box says   {printable(result.telemetry.message)}")


def _numbers(out: _Lines, result: Result) -> None:
    if result.exit_code is None:
        out.line("spent      nothing: no container was run")
        return
    telemetry = result.telemetry
    tokens = telemetry.tokens or {}
    total, cost = tokens.get("total"), tokens.get("cost")
    turns = "unknown" if telemetry.turns is None else str(telemetry.turns)
    out.line(f"model      {printable(result.provider)}/{printable(result.model)}")
    out.line(f"spent      {turns} turns, {_count(total)} tokens, {money(cost)}{_unpriced(tokens)}")
    if result.container_s is not None:
        out.line(f"took       {result.container_s:.1f} s, exit {result.exit_code}")


def money(cost: Decimal | bool | None) -> str:
    """US dollars with four decimals; `unknown` where no price was reported."""
    return f"${cost:.4f}" if isinstance(cost, Decimal) else "cost unknown"


def _count(number: Decimal | bool | None) -> str:
    return f"{int(number):,}" if isinstance(number, Decimal) else "an unknown number of"


def _unpriced(tokens: dict[str, Decimal | bool]) -> str:
    unpriced = tokens.get("unpriced")
    return f" (and {int(unpriced)} calls without a known price)" if isinstance(unpriced, Decimal) and unpriced else ""


def _changes(out: _Lines, result: Result) -> None:
    if result.change_error is not None:
        out.line(f"changed    unknown: {printable(result.change_error)}", "yellow")
        return
    change = result.change
    if change is None:
        return
    if not change.changed and change.truncated:
        out.line("changed    nothing that git could list; parts of the folder are too deep or too many", "yellow")
        return
    if not change.changed:
        out.line("changed    nothing: the run left no change that git would show", "yellow")
        return
    note = "; the folder had uncommitted changes before the run" if change.dirty_before else ""
    commits = f", {change.commits} commit(s)" if change.commits else ""
    added, removed = sum(file.added or 0 for file in change.files), sum(file.removed or 0 for file in change.files)
    out.line(
        f"changed    {len(change.files)} file(s), {added} insertion(s)(+), {removed} deletion(s)(-){commits}{note}"
    )
    _file_list(out, change)
    if result.diff:
        _diff(out, result.diff)


def _guarded(out: _Lines, result: Result) -> None:
    """What the agent had planted in the git directory for the user's own git to execute."""
    if result.restored:
        out.line(
            f"PUT BACK   the run had changed {len(result.restored)} file(s) from which your own git could execute "
            "something; they are as before the run:",
            "bold yellow",
        )
        for name in result.restored:
            out.line(f"           {printable(name)}", "yellow")
        out.line(f"           the run's versions are kept in {printable(str(result.kept))}", "yellow")
    if result.guard_error is not None:
        out.line(f"CAUTION    the git directory could not be put back: {printable(result.guard_error)}", "bold red")
        out.line("           do not use git in the folder before you have looked at .git/config and .git/hooks", "red")


def _file_list(out: _Lines, change: Change) -> None:
    """The files as `git diff --stat` lists them."""
    files = change.files[:FILE_LINES]
    width = max((len(printable(file.path)) for file in files), default=0)
    most = max((_lines_of(file) for file in files), default=0)
    for file in files:
        out.line(f"           {printable(file.path):<{width}} | {_stat(file, most)}")
    if len(change.files) > FILE_LINES or change.truncated:
        out.line("           ... and more; --json lists them all")


def _lines_of(file: FileChange) -> int:
    return (file.added or 0) + (file.removed or 0)


def _stat(file: FileChange, most: int) -> str:
    kind = "" if file.kind == "modified" else f" ({file.kind})"
    if file.added is None or file.removed is None:
        return f"binary or uncounted{kind}"
    scale = min(1.0, STAT_MARKS / most) if most else 1.0
    marks = _marks("+", file.added, scale) + _marks("-", file.removed, scale)
    return f"{_lines_of(file)} {marks}".rstrip() + kind


def _marks(mark: str, lines: int, scale: float) -> str:
    # At least one for what is there at all.
    return mark * max(1, int(lines * scale)) if lines else ""


def _diff(out: _Lines, diff: str) -> None:
    lines = diff.rstrip("\n").split("\n")
    if len(lines) > DIFF_LINES:
        out.line(f"diff       {len(lines)} lines, too many to show here; --json holds them")
        return
    out.line()
    for line in lines:
        style = {"+": "green", "-": "red", "@": "cyan"}.get(line[:1])
        out.line(printable_block(line), style)


class QuietConsole(Console):
    """A console whose stream may fail: what is left to say is dropped, and nothing else ends."""

    def on_broken_pipe(self) -> None:
        """Say no more."""
        self.quiet = True

    def _check_buffer(self) -> None:
        # Rich asks about a reader that is gone and raises every other fault: a full disk, a terminal that was closed.
        # All that a console writes goes through here, also what a status takes back at its end.
        try:
            super()._check_buffer()
        except (OSError, ValueError):
            self.quiet = True


def error_console() -> Console:
    """Where progress and notes go: standard error, so that standard output holds the result alone."""
    return QuietConsole(file=sys.stderr)
