"""The generated pages that show values of the code: settings, limits, keys, reasons, states, fields of triggers."""

import re
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from pidispatch.box.providers import KEY_VARIABLES
from pidispatch.config.settings import EMPTY_IS_A_VALUE, Settings
from pidispatch.forges.registry import MODULES
from pidispatch.jobs.keys import KEYS
from pidispatch.jobs.rows import JobState
from pidispatch.runs.classify import exit_code
from pidispatch.triggers.spelling import SPELLINGS
from pidispatch.values import names
from pidispatch.values.cause import CAUSES
from pidispatch.values.event import Drop
from pidispatch.values.forge import FORGES
from pidispatch.values.limits import Limits
from pidispatch.values.outcome import Aborted, InfraFailed, Outcome, Refused, recorded_outcome
from pidispatch.values.reason import FAILURES, KEPT_RUNNER_REASONS, AbortReason, Reason, RunnerReason
from pidispatch.values.verdict import Why
from tools.docs_page import code, page, table
from tools.docs_source import PACKAGE, RUNNER, constant_default, field_notes, member_notes
from tools.docs_triggers import PARTS, field_rows, refused_rows, word_rows

_ABORTS: Final[Mapping[AbortReason, tuple[Reason, str]]] = {
    AbortReason.JOB_TIMEOUT: (Reason.WORKER_ABORT, "The time of the attempt was up."),
    AbortReason.SHUTDOWN: (Reason.WORKER_ABORT, "The worker was told to stop (SIGTERM, SIGINT, SIGHUP)."),
    AbortReason.OPERATOR_CANCEL: (
        Reason.OPERATOR_CANCEL,
        "The operator asked for it: `pi-dispatch cancel`, or terminate in Flower.",
    ),
    AbortReason.LEASE_LOST: (
        Reason.WORKER_ABORT,
        "Another worker has the job ([lease](../explanation/queue.md#the-lease)). Nothing is recorded of it.",
    ),
}


def settings_page() -> str:
    """Every variable, the keys of the providers, and what may not be forwarded."""
    rows = []
    for field in Settings.model_fields.values():
        extra = field.json_schema_extra
        assert isinstance(extra, dict)
        default = in_words(field.get_default(call_default_factory=True))
        bound, example = str(extra["bound"]), code(str(extra["remedy"]))
        rows.append([code(str(field.alias)), default, str(extra["unit"]), bound, str(field.description), example])
    keys = [[code(name), ", ".join(map(code, variables))] for name, variables in KEY_VARIABLES.items()]
    return page(
        "Settings",
        "Settings are variables of the environment, read once at the start; no file is read for them. An empty value "
        f"counts as unset, except for {' and '.join(map(code, EMPTY_IS_A_VALUE))}, where it is refused.",
        "A malformed value ends the program with exit code 2 and names the variable, the value and an example. Numbers "
        "are whole numbers in plain decimal digits, with or without blanks around them: `03`, `+3`, `1_000`, `3.0` and "
        "`1e2` are refused.",
        "`DOCKER_HOST` and the other variables of the Docker client choose the engine, as everywhere. `PATH` is where "
        "git is looked for; only its absolute parts count. `NO_COLOR` takes the colours away. `TZ` is the zone "
        "of schedules where `PI_TZ` names none, as the machine's own is where that names none either.",
        table(["variable", "default", "unit", "bound", "what it does", "example"], rows),
        "## Keys of the model providers",
        "A job gets every one of its provider's variables that is set and not empty, and those of no other provider. "
        "They are pi's own names, in pi's order: the first that is set wins. "
        "Where none is set, the plain API key that pi itself keeps on this machine is taken, unless "
        "`PI_AUTH_FROM_PI=0` ([ladder](../explanation/ladder.md#where-the-key-comes-from)).",
        table(["provider", "variables"], keys),
        "## What `PI_FORWARD_ENV` refuses",
        table(["names", "why"], _not_forwarded()),
        "## Bounds that are refused",
        "Nothing of this version enforces these. A run with one of them set is refused (exit code 2), because whoever "
        "sets it relies on it: " + ", ".join(map(code, names.UNSERVED_BOUNDS)) + ".",
    )


def in_words(value: object) -> str:
    """A default value, the same on every machine and for every account."""
    if value is None or value == ():
        return "none"
    if isinstance(value, bool):
        return code(str(int(value)))
    if not isinstance(value, Path):
        return code(str(value))
    places = {Path.home(): "~", Path(tempfile.gettempdir()): "<tmp>"}
    inside = max((place for place in places if value.is_relative_to(place)), key=lambda place: len(place.parts))
    text = f"{places[inside]}/{value.relative_to(inside).as_posix()}"
    return code(re.sub(r"pi-dispatch-\d+", "pi-dispatch-<uid>", text))


def _not_forwarded() -> Iterator[tuple[str, str]]:
    written = [name for name in (*names.ALWAYS_WRITTEN, *names.SOMETIMES_WRITTEN) if name != "HOME"]
    for group, why in (
        (written, "the box writes them"),
        (names.PROXY_WRITTEN, "the box writes them, unless `PI_EGRESS=0`"),
        (names.RUNNER_INTERNAL, "the runner's own, inside the box"),
        (names.RESERVED, "kept for later; nothing serves them"),
        (names.NEVER_FORWARDED, "minted per job, or the host's alone"),
    ):
        yield ", ".join(map(code, group)), why


def outcome_of(reason: Reason) -> Outcome:
    """The kind of outcome that carries `reason`."""
    if reason in FAILURES:
        return InfraFailed(reason=reason)
    for abort, (carried, _) in _ABORTS.items():
        if carried is reason:
            return Aborted(reason=reason, cause=abort)
    return Refused(reason=reason)


def reasons_page() -> str:
    """Reasons of a run, of the runner, of an abort, and the causes that narrow a reason down."""
    rows = []
    for reason in Reason:
        outcome = outcome_of(reason)
        kind = [recorded_outcome(outcome), str(exit_code(outcome))]
        rows.append([code(reason.value), *kind, reason.meaning, reason.remedy])
    runner = [[code(reason.value), reason.meaning, reason.remedy or "-"] for reason in RunnerReason]
    aborts = [[code(abort.value), code(reason.value), why] for abort, (reason, why) in _ABORTS.items()]
    causes = [[code(token), *explained] for token, explained in sorted(CAUSES.items())]
    return page(
        "Reasons",
        "A run ends in one of three ways. `completed`: the agent ran to its own end (exit code 0). `policy`: refused "
        "before anything was spent, or ended by a rule (exit code 2); trying again alone does not help. `failed`: the "
        "surroundings failed (exit code 1); trying again may help. A wrong call of the program is exit code 1 too.",
        "## Reasons of a run",
        table(["reason", "outcome", "exit code", "meaning", "remedy"], rows),
        "## Reasons of the runner",
        "What the runner in the box says about its end. It is shown as the cause, and never decides whether a run "
        f"failed. When the run ended by policy, these become its reason: {', '.join(map(code, KEPT_RUNNER_REASONS))}.",
        table(["runner's reason", "meaning", "remedy"], runner),
        "## Reasons of an abort",
        table(["cause", "reason of the run", "meaning"], aborts),
        "## Causes",
        "A fixed word that narrows a reason down. The message beside it says what, where and what to do. Where nothing "
        "but an exit status is known, the cause is `exit-` and its number.",
        table(["cause", "meaning", "remedy"], causes),
    )


def limits_page() -> str:
    """Bounds of a run on the host, and the times the runner waits."""
    notes = field_notes(PACKAGE / "values" / "limits.py", "Limits")
    bounds = [[code(name), number(value), notes[name]] for name, value in Limits().model_dump(by_alias=False).items()]
    waits = [
        [code(name), number(value), note]
        for name, note in field_notes(RUNNER / "layout.py", "Layout").items()
        if (value := constant_default(RUNNER / "layout.py", "Layout", name)) is not None
    ]
    return page(
        "Limits",
        "Fixed bounds. They are not settings: nothing in a deployment widens them. Those of the guard stand with "
        "[it](../explanation/host-git.md#the-guard), those of a record with [it](record.md). `_s` and `_seconds` mean "
        "seconds, `_mib` means MiB.",
        "## Of an attempt, its container and the queue",
        table(["limit", "value", "meaning"], bounds),
        "## Of the runner in the box",
        table(["limit", "value", "meaning"], waits),
    )


def keys_page() -> str:
    """Every key on the server."""
    rows = [[code(key.name), key.type, key.holds, key.expires] for key in KEYS]
    return page(
        "Keys on the server",
        "All of them begin with `PI_KEY_PREFIX`, as do those of Celery's transport: the queues `pi-jobs` and "
        "`pi-jobs@<name>` (lists), `unacked`, `unacked_index`, `unacked_mutex` (what workers have fetched), and its "
        "bindings and control channels. The task of a job stands in `job:*` and nowhere else.",
        table(["key", "type", "holds", "expires"], rows),
    )


def forges_page() -> str:
    """What is different about each forge, and why an event starts no job."""
    rows = [
        [
            row.title,
            code(row.kind.value),
            code(row.route),
            code(row.prefix),
            ", ".join(map(code, row.pull_actions)),
            code(row.close_word) if row.close_word else "-",
            "in the event" if row.says_association else "asked of the forge",
            "those that the event added" if row.added_labels else "all of the item",
            "yes" if row.kind in MODULES else "not yet",
        ]
        for row in FORGES.values()
    ]
    head = ["forge", "`run.kind`", "path", "ids of jobs", "words for pull requests", "closing", "whose word counts"]
    return page(
        "Forges",
        "Events come to the [receiver](../how-to/receiver.md) at the path of their forge. A job is known by the id of "
        "the delivery behind the prefix.",
        table([*head, "labels", "served"], rows),
        "## Why an event starts no job",
        "An authentic event that no rule takes is answered with 204, so that the forge does not count it as a failure. "
        "The log (`dropped`), `pi-dispatch deliveries` and `pi-dispatch explain-event` say why.",
        table(["reason", "meaning"], [[code(drop.value), drop.meaning] for drop in Drop]),
    )


def states_page() -> str:
    """States of a job, and why one sleeps."""
    states = member_notes(PACKAGE / "jobs" / "rows.py", "JobState")
    whys = member_notes(PACKAGE / "values" / "verdict.py", "Why")
    return page(
        "States of a job",
        table(["state", "meaning"], [[code(JobState[name].value), note] for name, note in states.items()]),
        "## Why a job sleeps",
        "A deferral uses up no attempt, writes no record and holds nothing.",
        table(["why", "meaning"], [[code(Why[name].value), note] for name, note in whys.items()]),
    )


def triggers_page() -> str:
    """The fields of the triggers file, and what refuses it."""
    head = ["field", "holds", "meaning", "example"]
    fields = [part for name in PARTS for part in (f"## {name}", table(head, field_rows(name)))]
    return page(
        "The triggers file",
        "JSON (RFC 8259, in UTF-8): an object with the list `triggers`, whose entries are objects with the two parts "
        "`on` and `run`. Its JSON Schema, for editors, is `triggers/triggers.schema.json`; `triggers/examples/` holds "
        "files to begin with. When schedules fall due: [schedules](../how-to/schedules.md). What rules for events are "
        "for: [triggers](../how-to/triggers.md).",
        "The file is taken as a whole or refused as a whole. A refusal names every broken entry, by its place counted "
        "from 0 or by its id, the field, the reason and what to write. A key that stands twice in one object refuses "
        "it, at any depth.",
        "An entry is known by its place: where one is taken out or put in between, the numbers of those behind it "
        "change, in the log and in the commands. What is kept of an entry beyond its job (that it is paused, that it "
        "fires once and has) is kept under the id of a schedule, and for a rule under what it says, so that it moves "
        "with it.",
        *fields,
        "`null` stands for a field that was left out where the table says so; elsewhere it refuses the file. Fields "
        "that this page does not name are dropped, and so are those of another type of entry.",
        "## The words of each forge",
        "What `on.action` may hold, with the forge's own spelling. The word for labels needs a label in `any` or "
        "`all`, as every rule for labels does; the word for closing stands alone, and is the one of rules for closed "
        "issues too. Where there is none, there are no such rules.",
        table(["forge", "`run.kind`", "pull requests", "labels", "closing"], word_rows()),
        "`any`, `all` and `none` refuse the file in a rule for closing, and in one for pull requests of Azure DevOps, "
        "whose events tell of no labels. `reviewState` is GitHub's alone. A forge has at most one rule for comments.",
        "## What refuses the file",
        table(["field", "in", "why"], refused_rows()),
        "Fields that do not go together refuse it too: `flow` and `command`; `command` and `instructions`; `once` and "
        "`replicas`; `once` without `number`; `disarmed` without `once`.",
        "## Keys that are nearly a field",
        "A key that differs from one of these only by case, by characters other than letters and digits, or by a usual "
        "slip (`modelId`, `backends`, `maxTurn`) refuses the file, and so does one that stands in the other of the two "
        "parts. With characters of another script in the place of some of its letters it is refused as well, save for "
        "`waitFor`. The fields are " + ", ".join(map(code, SPELLINGS)) + ".",
    )


def number(value: float) -> str:
    """A number without an empty fraction, thousands set apart."""
    return f"{value:,g}" if isinstance(value, float) else f"{value:,}"
