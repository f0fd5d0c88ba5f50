"""Whether a rule for events says what its forge can say: each has its own words, all from one table."""

import json
from collections.abc import Collection, Iterator
from typing import Final

from pidispatch.triggers.entry import CommentOn, ForgeTrigger, IssueOn, LabelOn, PullRequestOn
from pidispatch.triggers.refused import Wrong
from pidispatch.values.forge import FORGES, ForgeRow

#: Verdicts of a review.
#: https://docs.github.com/en/webhooks/webhook-events-and-payloads#pull_request_review
VERDICTS: Final = ("approved", "changes_requested", "commented")


def words_of(row: ForgeRow, trigger: str) -> tuple[str, ...]:
    """Words that `on.action` may have in rules of this type. One that is good as an example comes first."""
    if trigger == "issue":
        return () if row.close_word is None else (row.close_word,)
    return tuple(sorted(row.pull_actions, key=lambda word: word in (row.pull_label_action, row.close_word)))


def examples_of(kind: str, trigger: str) -> dict[str, object]:
    """Values for the fields of `on` whose examples hang on the forge."""
    words = words_of(next(row for row in FORGES.values() if row.kind == kind), trigger)
    return {"action": list(words[:1])}


def of_the_forge(trigger: ForgeTrigger) -> Iterator[Wrong]:
    """What is wrong with a rule whose fields are good by themselves."""
    on, row = trigger.on, FORGES[trigger.run.kind]
    if isinstance(on, PullRequestOn | IssueOn):
        known = words_of(row, on.type)
        about = "issues" if isinstance(on, IssueOn) else "pull requests"
        yield from _unknown("action", on.action, known, f"words that {row.title} has for {about}")
    if isinstance(on, PullRequestOn) and on.review_state is not None:
        yield from _unknown("reviewState", on.review_state, VERDICTS, "verdicts of a review")
    if isinstance(on, LabelOn) and not (on.any or on.all):
        yield _no_label("the rule would fire on every issue")
    if isinstance(on, PullRequestOn) and row.pull_label_action in on.action and not (on.any or on.all):
        yield _no_label(f"{row.pull_label_action} is about labels")


def _unknown(field: str, given: Collection[str], known: tuple[str, ...], what: str) -> Iterator[Wrong]:
    if not set(given) <= set(known):
        example = json.dumps([known[0]])
        reason = f"must hold only {what}: {', '.join(sorted(known))}"
        yield Wrong(f"on.{field}", reason, f'Write for example: "{field}": {example}')


def _no_label(why: str) -> Wrong:
    return Wrong("on.any", f"must name a label where on.all names none: {why}", 'Write for example: "any": ["pi:fix"]')


def second_comment_rules(rules: Collection[tuple[int, ForgeTrigger]]) -> Iterator[tuple[int, Wrong]]:
    """Rules for comments of a forge that has one already, each with its place."""
    first: dict[str, int] = {}
    for at, rule in rules:
        known = first.setdefault(rule.run.kind, at) if isinstance(rule.on, CommentOn) else at
        if known != at:
            title = FORGES[rule.run.kind].title
            reason = f"makes a second rule for comments of {title}, beside the trigger at index {known}"
            yield at, Wrong("on.type", reason, "Take one of them out; a comment can name its flow after the phrase")
