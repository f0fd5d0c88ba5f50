"""The queue at one moment, for a person."""

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Final

from rich.console import Console, Group, RenderableType
from rich.text import Text

from pidispatch.cli.snapshot import Snapshot, faulty_files, is_silent, quiet_s, tick_age_s
from pidispatch.cli.table import PIPE_COLUMNS, table_of
from pidispatch.config.text import printable
from pidispatch.jobs.overview import Overview
from pidispatch.jobs.pausing import paused_state
from pidispatch.jobs.rows import WorkerSeen
from pidispatch.jobs.triggered import TriggerPaused
from pidispatch.values.forge import FORGES
from pidispatch.values.limits import Limits

_STATES: Final = {"running": "open", "paused": "PAUSED", "part-paused": "PART PAUSED"}
_WARN: Final = "bold yellow"


def rendered(seen: Snapshot, console: Console) -> RenderableType:
    """What a person sees, made for `console`."""

    def table(header: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> RenderableType:
        cells = [[Text(printable(cell)) for cell in row] for row in rows]
        return table_of(console, header, cells, cut=("LABEL", "QUEUES", "WORKERS"))

    if not console.is_terminal:
        console.width = PIPE_COLUMNS
    parts: list[RenderableType] = [*_facts(seen), *_warnings(seen)]
    overview = seen.overview
    if overview.queues:
        parts += ["", table(("QUEUE", "WAITING", "STATE", "WORKERS"), _queue_rows(seen))]
    if seen.workers:
        parts += ["", table(("WORKER", "SLOTS", "LAST TICK", "LAST SEEN", "QUEUES"), _worker_rows(seen.workers))]
    if overview.running:
        parts += ["", table(("RUNNING", *_RUNNING), _running_rows(overview))]
        parts += _more(overview.active - len(overview.running))
    if overview.held:
        parts += ["", table(("HELD", *_HELD), _held_rows(overview))]
        parts += _more(overview.deferred - len(overview.held))
    return Group(*parts)


_RUNNING: Final = ("WORKER", "ATTEMPT", "SINCE", "TURNS", "TOKENS", "LABEL")
_HELD: Final = ("WHY", "ATTEMPT", "UNTIL", "QUEUE", "LABEL")


def _facts(seen: Snapshot) -> Iterator[Text]:
    facts, counts, overview = seen.server, seen.counts(), seen.overview
    taken, slots = seen.slots()
    jobs = ", ".join(f"{counts[name]:,} {word}" for name, word in _WORDS.items() if counts[name] or name in _ALWAYS)
    yield _fact("server", f"{seen.where}: {facts.product} {printable(facts.version)}, up {_span(facts.uptime_s)}")
    yield _fact("queues", _STATES[paused_state(overview.names, overview.paused)], _WARN if overview.paused else "")
    yield _fact("jobs", jobs)
    yield _fact("slots", f"{taken} of {slots} taken")
    if (oldest := overview.oldest) is not None:
        waits = _span((overview.at - oldest.created).total_seconds())
        yield _fact("oldest", f"{printable(oldest.job_id)} ({printable(oldest.label)}), handed in {waits} ago")
    if overview.unrecorded:
        yield _fact("records", f"{overview.unrecorded:,} still to be written by a worker")
    for source in seen.sources:
        last = f"last {_span(quiet_s(seen, source))} ago" if source.last is not None else "nothing as yet"
        yield _fact("events", f"{FORGES[source.forge].title}, {last}")


_WORDS: Final = {
    "active": "running",
    "waiting": "waiting",
    "paused": "in paused queues",
    "delayed": "held",
    "failed": "failed lately",
}
_ALWAYS: Final = ("active", "waiting", "delayed")


def _fact(name: str, value: str, style: str = "") -> Text:
    return Text.assemble(f"{name:<12}", (value, style))


def _warnings(seen: Snapshot) -> Iterator[Text]:
    """What somebody should do something about."""
    if seen.overview.paused:
        yield Text("no job starts in a paused queue: pi-dispatch resume takes it back", style=_WARN)
    if not seen.workers:
        yield Text("no worker is running: start one with: pi-dispatch worker", style=_WARN)
    for worker in seen.workers:
        if tick_age_s(worker) > Limits().deaf_s and not seen.overview.paused:
            text = f"worker {printable(worker.name)} has heard nothing for {_span(tick_age_s(worker))}; see its log"
            yield Text(text, style=_WARN)
        for name in faulty_files(worker):
            file = printable(name.replace("_", "-"))
            text = (
                f"worker {printable(worker.name)} refuses the last edit of its {file} file "
                "and goes on with what it had before; its log says why: mend the file, see pi-dispatch check FILE"
            )
            yield Text(text, style=_WARN)
    yield from _about_triggers(seen)
    if not seen.server.durable:
        text = "the server does not keep all it is told: set appendonly yes and maxmemory-policy noeviction"
        yield Text(text, style=_WARN)


def _about_triggers(seen: Snapshot) -> Iterator[Text]:
    """What keeps jobs from coming in."""
    for source in seen.sources:
        if is_silent(seen, source):
            title, since = FORGES[source.forge].title, source.last or source.since
            text = (
                f"{title} has sent nothing since {_clock(since)} ({_span(quiet_s(seen, source))}): look at its list of "
                "recent deliveries, in the settings of the webhook. It may have switched the webhook off; with 401 "
                "there the secret is another one than the receiver's. What came before: pi-dispatch deliveries"
            )
            yield Text(text, style=_WARN)
        if source.faulty:
            text = (
                f"the receiver that hears {FORGES[source.forge].title} refuses the last edit of its triggers file and "
                "goes on with what it had before; its log says why: mend the file, see pi-dispatch check FILE"
            )
            yield Text(text, style=_WARN)
    for name, paused in seen.paused.items():
        label = f" ({printable(paused.label)})" if paused.label else ""
        text = (
            f"trigger {printable(name)}{label} is PAUSED since {_clock(paused.at)}: {pause_words(paused)}; to go on: "
            f"pi-dispatch triggers resume {printable(name)}"
        )
        yield Text(text, style=_WARN)
    for forge, places in seen.unheard.items():
        title = next((row.title for row in FORGES.values() if row.kind == forge), printable(forge))
        text = f"this version does not hear {title}, so these triggers cannot fire: {', '.join(map(str, places))}"
        yield Text(text, style=_WARN)


def pause_words(paused: TriggerPaused) -> str:
    """Why a trigger is paused."""
    last = printable(paused.reason or "it changed nothing")
    return f"{paused.runs:,} runs in a row came to nothing, the last of them {printable(paused.job_id)} ({last})"


def _queue_rows(seen: Snapshot) -> Iterator[tuple[str, ...]]:
    for queue in seen.overview.queues:
        since = seen.overview.all_paused_since or queue.paused_since
        paused = "open" if since is None else f"PAUSED since {_clock(since)}"
        workers = [worker.name for worker in seen.workers if queue.name in worker.queues]
        yield queue.name, f"{queue.waiting:,}", paused, ", ".join(workers) or "none"


def _worker_rows(workers: Iterable[WorkerSeen]) -> Iterator[tuple[str, ...]]:
    for worker in workers:
        slots = f"{worker.fields.get('running', '0')}/{worker.fields.get('slots', '0')}"
        ages = f"{_span(tick_age_s(worker))} ago", f"{_span(worker.age_ms / 1000)} ago"
        yield worker.name, slots, *ages, ", ".join(worker.queues)


def _running_rows(overview: Overview) -> Iterator[tuple[str, ...]]:
    for job in overview.running:
        since = "-" if job.since is None else f"{_span((overview.at - job.since).total_seconds())}"
        yield (
            job.job_id,
            job.worker or "-",
            f"{job.attempt}/{job.max_attempts}",
            since,
            _number(job.turns),
            _number(job.tokens),
            job.label,
        )


def _held_rows(overview: Overview) -> Iterator[tuple[str, ...]]:
    for job in overview.held:
        until = "-" if job.until is None else f"{_clock(job.until)} (in {_span(_seconds(job.until - overview.at))})"
        yield job.job_id, job.why or "-", f"{job.attempt}/{job.max_attempts}", until, job.queue, job.label


def _more(count: int) -> list[RenderableType]:
    return [Text(f"and {count:,} more")] if count > 0 else []


def _number(value: int | None) -> str:
    return "-" if value is None else f"{value:,}"


def _clock(instant: datetime) -> str:
    return f"{instant.astimezone(UTC):%Y-%m-%d %H:%M:%SZ}"


def _seconds(span: timedelta) -> float:
    return max(0.0, span.total_seconds())


def _span(seconds: float) -> str:
    """A duration by its largest unit: `12 s`, `4 min`, `3 h`, `2 d`."""
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{int(seconds // size)} {unit}"
    return f"{max(0, int(seconds))} s"
