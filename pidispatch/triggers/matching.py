"""Which rule an event fires, or why none: the gate of the receiver. It asks nobody and knows no forge's format.

Fail-closed, in this order: who did it is known, is not this deployment itself, may start jobs where the forge can be
asked; only then rules are looked at (docs/explanation/receiver.md).
"""

import re
from collections.abc import Collection, Iterator
from typing import Final, NamedTuple

from pidispatch.triggers.entry import CommentOn, IssueOn, LabelOn, PullRequestOn
from pidispatch.triggers.rules import Rule, Rules
from pidispatch.values.event import Authority, Drop, Event, Identity, Occasion
from pidispatch.values.forge import FORGES
from pidispatch.values.forge import REVIEW_ACTION as REVIEW_ACTION
from pidispatch.values.job import Matched

#: Whose word counts, as GitHub says it.
#: https://docs.github.com/en/graphql/reference/enums#commentauthorassociation
ALLOWED: Final = frozenset({"OWNER", "MEMBER", "COLLABORATOR"})


class Fired(NamedTuple):
    """The rule that takes the event, what it matched, and what is run."""

    rule: Rule
    matched: Matched
    flow: str | None


class Ask(NamedTuple):
    """Nothing is decided before the forge has said whether who did it may start jobs."""

    #: The rule that would take the event; `None` where the forge is asked of every event.
    rule: Rule | None


class Judged(NamedTuple):
    """A rule, and whether it takes the event on an occasion: what it matched, or why it does not."""

    rule: Rule
    occasion: Occasion
    found: Matched | Drop


def decide(
    event: Event, rules: Rules, me: Identity, authority: Authority | None = None, *, spent: Collection[int] = ()
) -> Fired | Drop | Ask:
    """What becomes of an event. Where the answer is `Ask`, ask the forge and call again with its `authority`.

    An authority that is unknown decides nothing: it is not to be handed in. `spent`: places of rules that fire once
    and have, as the store says.
    """
    if (drop := _stranger(event, me)) is not None:
        return drop
    if not FORGES[event.forge].says_association:
        if authority is None:
            return Ask(None)
        if authority is not Authority.YES:
            return Drop.AUTHOR_NOT_ALLOWED
    first: Drop | None = None
    for occasion in event.occasions:
        found = _on(occasion, event, rules, authority, spent)
        if not isinstance(found, Drop):
            return found
        first = first or found
        if found is Drop.CLOSER_NOT_ALLOWED:
            break
    return first or event.unhandled


def judge(event: Event, rules: Rules, *, spent: Collection[int] = ()) -> Iterator[Judged]:
    """Every rule of the event's forge that its occasions reach, and whether it would take it, whoever did it."""
    for occasion in event.occasions:
        for rule in rules.of(event.forge, occasion):
            if rule.index not in spent:
                yield Judged(rule, occasion, takes(rule, event, occasion))


def _stranger(event: Event, me: Identity) -> Drop | None:
    """Why nothing is looked at further: it is for somebody else, nobody did it, or this deployment itself."""
    if None not in (event.installation, me.installation) and event.installation != me.installation:
        return Drop.OTHER_INSTALLATION
    if event.actor.id is None and event.actor.alias is None:
        return Drop.MISSING_SENDER_ID
    return Drop.SELF if me.did(event.actor) else None


def _on(
    occasion: Occasion, event: Event, rules: Rules, authority: Authority | None, spent: Collection[int]
) -> Fired | Drop | Ask:
    """The first rule that takes the event on an occasion, or why none does."""
    if (drop := _before_rules(occasion, event)) is not None:
        return drop
    reasons: list[Drop] = []
    for rule in rules.of(event.forge, occasion):
        if rule.index in spent:
            continue
        found = takes(rule, event, occasion)
        if isinstance(found, Drop):
            reasons.append(found)
            continue
        if occasion is Occasion.CLOSE and FORGES[event.forge].says_association:
            # Associations say who wrote, not who closed.
            if authority is None:
                return Ask(rule)
            if authority is not Authority.YES:
                return Drop.CLOSER_NOT_ALLOWED
        flow = _flow(rule, event, rules.flows)
        if flow is None and rule.run.command is None:
            return Drop.NO_FLOW
        return Fired(rule, found, flow)
    return next((one for one in _TELLING if one in reasons), _NONE[occasion])


#: What is told of several rules that do not take an event: the one that came nearest.
_TELLING: Final = (Drop.REVIEW_STATE_NOT_MATCHED, Drop.CLOSE_NUMBER_NOT_MATCHED, Drop.NO_REPOSITORY)
#: What is told where nothing more exact is known.
_NONE: Final = {
    Occasion.LABEL: Drop.NO_ALLOWLISTED_LABEL,
    Occasion.COMMENT: Drop.NO_TRIGGER_PHRASE,
    Occasion.PULL_REQUEST: Drop.NO_MATCHING_PR_TRIGGER,
    Occasion.REVIEW: Drop.NO_MATCHING_PR_TRIGGER,
    Occasion.CLOSE: Drop.NO_MATCHING_CLOSE_TRIGGER,
}


def _before_rules(occasion: Occasion, event: Event) -> Drop | None:
    """Why no rule is looked at on this occasion: something is missing, or who did it may not start jobs."""
    if event.target is None:
        pull = occasion in (Occasion.PULL_REQUEST, Occasion.REVIEW) or event.event.startswith(("pull_", "merge_"))
        return Drop.MISSING_PULL_REQUEST if pull else Drop.MISSING_ISSUE_NUMBER
    row = FORGES[event.forge]
    if event.repo is None and not row.names_repository:
        return Drop.MISSING_REPOSITORY
    allowed = event.association in ALLOWED or not row.says_association
    if occasion is Occasion.LABEL:
        return None if event.labels_added else Drop.NO_LABEL_CHANGE
    if occasion is Occasion.COMMENT:
        return None if allowed else Drop.AUTHOR_NOT_ALLOWED
    if occasion is Occasion.PULL_REQUEST:
        # A label is put on by somebody whose word counts, whoever opened it.
        return None if allowed or event.action == row.pull_label_action else Drop.PR_AUTHOR_NOT_ALLOWED
    if occasion is Occasion.REVIEW and not allowed:
        return Drop.REVIEW_AUTHOR_NOT_ALLOWED
    review = event.review
    if review is not None and review.state == "commented" and not review.body.strip():
        return Drop.NO_REVIEW_BODY
    return None


def repository_of(rule: Rule, event: Event) -> str | None:
    """The repository of the job, as its forge calls it: the event's own, else the one that the rule names."""
    if event.repo is None and event.project is not None and rule.run.repository is not None:
        return f"{event.project}/{rule.run.repository}"
    return event.repo


def takes(rule: Rule, event: Event, occasion: Occasion) -> Matched | Drop:
    """Whether a rule takes an event on an occasion that it can fire on: what it matched, or why it does not."""
    found = _takes(rule, event, occasion)
    if not isinstance(found, Drop) and repository_of(rule, event) is None:
        return Drop.NO_REPOSITORY
    return found


def _takes(rule: Rule, event: Event, occasion: Occasion) -> Matched | Drop:
    on = rule.on
    if occasion is Occasion.CLOSE:
        return _closing(rule, event)
    if isinstance(on, LabelOn):
        if not fits(on, event.labels):
            return Drop.NO_ALLOWLISTED_LABEL
        return Matched(index=rule.index, type="label", label=_label(on, event.labels))
    if isinstance(on, CommentOn):
        if event.comment is None or on.phrase not in event.comment.body:
            return Drop.NO_TRIGGER_PHRASE
        return Matched(index=rule.index, type="comment", phrase=on.phrase)
    assert isinstance(on, PullRequestOn), "rules for closing have been looked at"
    return _pull(rule, on, event, occasion)


def _pull(rule: Rule, on: PullRequestOn, event: Event, occasion: Occasion) -> Matched | Drop:
    word = REVIEW_ACTION if occasion is Occasion.REVIEW else event.action
    if word not in on.action:
        return Drop.NO_MATCHING_PR_TRIGGER
    added = FORGES[event.forge].added_labels
    if added and not (on.any or on.all):
        # Nothing but the action counts, not even labels that must be absent: the event does not say which are there.
        return Matched(index=rule.index, type="pull_request", action=word)
    if not fits(on, event.labels):
        return Drop.NO_MATCHING_PR_TRIGGER
    if added:
        return Matched(index=rule.index, type="label", label=_label(on, event.labels))
    state = event.review.state if event.review is not None else None
    if occasion is Occasion.REVIEW and on.review_state is not None and state not in on.review_state:
        return Drop.REVIEW_STATE_NOT_MATCHED
    return Matched(index=rule.index, type="pull_request", action=word)


def _closing(rule: Rule, event: Event) -> Matched | Drop:
    on, target = rule.on, event.target
    assert isinstance(on, IssueOn | PullRequestOn), "only those are about closing"
    if target is None or target.type != on.type:
        return Drop.NO_MATCHING_CLOSE_TRIGGER
    if on.number not in (None, target.number):
        return Drop.CLOSE_NUMBER_NOT_MATCHED
    matched = Matched(index=rule.index, type=on.type, action=event.action, once=True if on.once else None)
    return matched.model_copy(update={"number": target.number}) if on.type == "issue" else matched


def fits(on: LabelOn | PullRequestOn, labels: Collection[str]) -> bool:
    """Whether labels fit what a rule says of them."""
    there = set(labels)
    return (not on.any or not there.isdisjoint(on.any)) and there.issuperset(on.all) and there.isdisjoint(on.none)


def _label(on: LabelOn | PullRequestOn, labels: Collection[str]) -> str | None:
    """The label that is told: the first that one of was asked for, else the first of those that all were."""
    return next((one for one in on.any if one in labels), next(iter(on.all), None))


def _flow(rule: Rule, event: Event, known: Collection[str]) -> str | None:
    """The flow of the job: the one that a comment names after the phrase, where it is known, else the rule's own."""
    if rule.run.command is not None or not isinstance(rule.on, CommentOn) or event.comment is None:
        return rule.run.flow
    named = re.search(rf"{re.escape(rule.on.phrase)}\s+(\S+)", event.comment.body)
    return named[1] if named is not None and named[1] in known else rule.run.flow
