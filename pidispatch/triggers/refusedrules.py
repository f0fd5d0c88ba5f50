"""What a rule for events must not say, in the order in which it is looked for: fields that do not go together.

The values of its fields are looked at afterwards (`rulekinds`), and then whether its forge knows them (`vocabulary`).
"""

from collections.abc import Iterator
from typing import Final

from pidispatch.triggers.refused import (
    CLOSING,
    SWITCHES_RULES,
    TAKE_OUT,
    UNSERVED_RULES,
    Given,
    Wrong,
    near,
    old_tools,
    unserved,
)
from pidispatch.values.forge import FORGES, REVIEW_ACTION, ForgeRow

#: Fields of `on` that say something of labels.
SELECTORS: Final = ("any", "all", "none")
#: Types whose rules name the repository, on a forge whose issues are in none.
NAMES_REPOSITORY: Final = ("label", "comment")


def of_a_rule(on: Given, run: Given) -> Iterator[Wrong]:
    """What a rule must not say, before the values of its fields are looked at. Type and kind are good."""
    row = _row(run)
    if "portfolio" in run:
        yield Wrong("run.portfolio", "has no meaning for an event", TAKE_OUT)
    if on["type"] == "issue" and row.close_word is None:
        reason = f"cannot be issue for {row.title}: closing is not yet covered there"
        yield Wrong("on.type", reason, 'Write "type": "label", or take the entry out')
    if "missed" in on:
        yield Wrong("on.missed", "has no meaning for an event: only schedules fall due", TAKE_OUT)
    yield from near("on", on)
    yield from _of_its_event(on, row)
    yield from _of_firing_once(on, run)
    yield from near("run", run)
    yield from old_tools(run)
    yield from _of_what_is_run(run)
    yield from _of_the_repository(on, run, row)
    yield from unserved(run, UNSERVED_RULES, SWITCHES_RULES)


def _row(run: Given) -> ForgeRow:
    return next(row for row in FORGES.values() if row.kind == run["kind"])


def is_closing(on: Given, row: ForgeRow) -> bool:
    """Whether a rule is about closing, and about nothing else."""
    words = on.get("action")
    if on["type"] == "issue":
        return True
    return on["type"] == "pull_request" and isinstance(words, list) and set(map(str, words)) == {row.close_word}


def _of_its_event(on: Given, row: ForgeRow) -> Iterator[Wrong]:
    words = on.get("action")
    closing = is_closing(on, row)
    mixed = isinstance(words, list) and row.close_word is not None and row.close_word in words and not closing
    if on["type"] == "pull_request" and mixed:
        reason = f"has {row.close_word} beside other words, and a rule for closing is about nothing else"
        yield Wrong("on.action", reason, f'Write "action": ["{row.close_word}"], and another entry for the rest')
    if why := _without_labels(on, row, closing):
        for name in SELECTORS:
            if name in on:
                yield Wrong(f"on.{name}", why, TAKE_OUT)
    if not closing:
        for name in CLOSING:
            if name in on:
                reason = "has no meaning in a rule that is not about closing alone"
                yield Wrong(f"on.{name}", reason, TAKE_OUT)
    if on["type"] == "pull_request" and "reviewState" in on:
        yield from _of_reviews(words, row)


def _without_labels(on: Given, row: ForgeRow, closing: bool) -> str | None:
    """Why labels have no meaning in the rule; `None` where they have one, or are dropped."""
    if closing:
        return "has no meaning in a rule for closing: whatever the labels, it is closed"
    if on["type"] == "pull_request" and not row.pull_labels:
        return f"has no meaning for a pull request of {row.title}, whose events tell of no labels"
    return None


def _of_reviews(words: object, row: ForgeRow) -> Iterator[Wrong]:
    if REVIEW_ACTION not in row.pull_actions:
        yield Wrong("on.reviewState", f"has no meaning for {row.title}, whose events tell of no verdict", TAKE_OUT)
    elif not isinstance(words, list) or REVIEW_ACTION not in words:
        reason = f"has no meaning without {REVIEW_ACTION} in on.action"
        yield Wrong("on.reviewState", reason, f'Take it out, or write "action": ["{REVIEW_ACTION}"]')


def _of_firing_once(on: Given, run: Given) -> Iterator[Wrong]:
    # Of a rule that may have these fields; of all others they are refused before.
    if on.get("once") is True:
        if "number" not in on:
            yield Wrong("on.once", "needs on.number: which of them it fires for", 'Write for example: "number": 40')
        if "replicas" in run:
            yield Wrong("run.replicas", "stands beside on.once, and such a rule starts one job", TAKE_OUT)
        if "waitFor" in run:
            yield Wrong("run.waitFor", "stands beside on.once, and such a rule starts its job at once", TAKE_OUT)
    elif "disarmed" in on:
        yield Wrong("on.disarmed", "marks a rule that does not fire once", 'Take it out, or write "once": true')


def _of_what_is_run(run: Given) -> Iterator[Wrong]:
    if "flow" in run and "command" in run:
        yield Wrong("run.command", "stands beside run.flow, and a job has only one of them", "Take one of them out")
    if "flow" not in run and "command" not in run:
        yield Wrong("run.flow", "is missing, and so is run.command", 'Write for example: "flow": "fix"')
    if "command" in run and "instructions" in run:
        yield Wrong("run.instructions", "stands beside run.command, which is the whole prompt", TAKE_OUT)
    if run.get("resume") is True:
        for name, why in _NOT_RESUMED.items():
            if name in run:
                yield Wrong("run.resume", f"cannot be true beside run.{name}: {why}", TAKE_OUT)
    if "waitFor" in run and "replicas" in run:
        yield Wrong("run.waitFor", "stands beside run.replicas, whose jobs begin together", TAKE_OUT)
    if "secretsProfile" in run and "secrets" not in run:
        yield Wrong("run.secretsProfile", "has no meaning without run.secrets", TAKE_OUT)


#: What a run that goes on where the last one ended cannot have.
_NOT_RESUMED: Final = {
    "command": "a command begins anew",
    "replicas": "each of several jobs begins anew",
    "secrets": "a session would keep them",
}


def _of_the_repository(on: Given, run: Given, row: ForgeRow) -> Iterator[Wrong]:
    if row.names_repository and on["type"] in NAMES_REPOSITORY:
        if "repository" not in run:
            reason = f"is missing, and an item of {row.title} is in no repository that could be cloned"
            yield Wrong("run.repository", reason, 'Write for example: "repository": "widgets"')
    elif "repository" in run:
        yield Wrong("run.repository", "has no meaning here: the event names its repository", TAKE_OUT)
