"""An event held against every entry of a triggers file: which one it fires, and why each other one is not fired.

Decided by the receiver's own code; the words are made here. None of them is of the payload.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from pidispatch.cli.entries import runs_what
from pidispatch.cli.heard import is_served
from pidispatch.triggers.entry import CommentOn, CronTrigger, ForgeTrigger, LabelOn, PullRequestOn, TriggersFile
from pidispatch.triggers.matching import REVIEW_ACTION, Ask, Fired, Judged, decide, fits, judge
from pidispatch.triggers.rules import Rules
from pidispatch.values.event import Authority, Drop, Event, Identity, Occasion
from pidispatch.values.forge import FORGES
from pidispatch.values.job import Matched

#: Reasons of this walk alone, beside those of `Drop`.
SCHEDULE: Final = "schedule"
OTHER_FORGE: Final = "other-forge"
SPENT: Final = "spent"
OTHER_OCCASION: Final = "other-occasion"
EARLIER_RULE: Final = "earlier-rule"
#: What the occasions are about.
_ABOUT: Final = {
    Occasion.LABEL: "labels of an issue",
    Occasion.COMMENT: "comments",
    Occasion.PULL_REQUEST: "what happens to pull requests",
    Occasion.REVIEW: "reviews",
    Occasion.CLOSE: "closing",
}
#: An account that did nothing: which one is this deployment's, the forge alone could say.
_NOBODY: Final = Identity(id=None)


@dataclass(frozen=True)
class Step:
    """One entry, and what becomes of the event there."""

    index: int
    trigger: CronTrigger | ForgeTrigger
    #: Why it is not fired, as a fixed word; `None` for the one that is.
    reason: str | None
    #: The same as a sentence, or what of the event it takes.
    why: str

    @property
    def fires(self) -> bool:
        """Whether it is the one that the event fires."""
        return self.reason is None


@dataclass(frozen=True)
class Walk:
    """What becomes of an event, and the way there."""

    event: Event
    answer: Fired | Drop
    #: What is taken for granted, each as the rest of a sentence that begins with "if".
    assumes: tuple[str, ...]
    steps: tuple[Step, ...]

    @property
    def fired(self) -> Fired | None:
        """What is fired, if anything is."""
        return self.answer if isinstance(self.answer, Fired) else None

    @property
    def drop(self) -> Drop | None:
        """Why nothing is."""
        return self.answer if isinstance(self.answer, Drop) else None

    @property
    def why(self) -> str:
        """The answer as a sentence."""
        if isinstance(self.answer, Drop):
            return f"starts no job: {_lower(self.answer.meaning)} ({self.answer})"
        rule, flow = self.answer.rule, self.answer.flow
        trigger = self.steps[rule.index].trigger
        named = " (named in the comment)" if rule.run.command is None and flow != rule.run.flow else ""
        return f"fires trigger {rule.index}: {runs_what(trigger, flow)}{named}"


def walked(event: Event, file: TriggersFile) -> Walk:
    """Hold an event against all entries. Who did it may start jobs where the forge would have to be asked."""
    rules = Rules(file)
    answer = decide(event, rules, _NOBODY)
    asked = answer if isinstance(answer, Ask) else None
    if asked is not None:
        answer = decide(event, rules, _NOBODY, Authority.YES)
    assert not isinstance(answer, Ask), "nothing is asked twice"
    assumes = _assumed(event, asked) if isinstance(answer, Fired) else ()
    judged: dict[int, Judged] = {}
    for one in judge(event, rules):
        # A rule that two occasions reach is told by the one on which it takes the event.
        if one.rule.index not in judged or isinstance(one.found, Matched):
            judged[one.rule.index] = one
    steps = (_step(index, one, event, answer, judged) for index, one in enumerate(file.triggers))
    return Walk(event, answer, assumes, tuple(steps))


def _assumed(event: Event, asked: Ask | None) -> tuple[str, ...]:
    title = FORGES[event.forge].title
    may = f"who did it may start jobs in the repository, which {title} is asked for"
    if asked is not None and asked.rule is not None:
        may = f"who closed it may write to the repository, which {title} is asked for"
    rest = (
        "it was not this deployment's own account that did it",
        "the trigger is not paused, and not spent by the word of the server alone: see pi-dispatch triggers list",
    )
    return rest if asked is None else (may, *rest)


def _step(
    index: int,
    trigger: CronTrigger | ForgeTrigger,
    event: Event,
    answer: Fired | Drop,
    judged: Mapping[int, Judged],
) -> Step:
    if isinstance(trigger, CronTrigger):
        return Step(index, trigger, SCHEDULE, "it is a schedule, which no event fires")
    forge = trigger.run.kind
    if forge != event.forge:
        unserved = "" if is_served(forge) else ", which this version does not serve"
        return Step(index, trigger, OTHER_FORGE, f"it is about {FORGES[forge].title}{unserved}")
    if (mark := trigger.mark) is not None:
        by = f"has fired, with the job {mark.job_id}" if mark.job_id is not None else "is disarmed by hand"
        return Step(index, trigger, SPENT, f"it {by} ({mark.at}); pi-dispatch triggers rearm {index} arms it again")
    one = judged.get(index)
    if one is None:
        return Step(index, trigger, *_not_reached(trigger, event))
    if isinstance(one.found, Drop):
        return Step(index, trigger, one.found.value, _declined(one, one.found, event))
    if isinstance(answer, Drop):
        return Step(index, trigger, answer.value, f"it fits, but: {_lower(answer.meaning)}")
    if answer.rule.index == index:
        return Step(index, trigger, None, _taken(answer.matched))
    return Step(index, trigger, EARLIER_RULE, f"it fits too, but trigger {answer.rule.index} comes first")


def _not_reached(trigger: ForgeTrigger, event: Event) -> tuple[str, str]:
    """Why no occasion of the event reaches an armed rule of its forge."""
    if not event.occasions:
        return event.unhandled.value, _lower(event.unhandled.meaning)
    [rule] = Rules(TriggersFile(triggers=(trigger,))).all
    about = " and ".join(text for one, text in _ABOUT.items() if one in rule.occasions)
    this = " and ".join(_ABOUT[one] for one in event.occasions)
    return OTHER_OCCASION, f"it is about {about}, and this event is about {this}"


def _declined(judged: Judged, drop: Drop, event: Event) -> str:
    """Why a rule does not take the event, by what the file says."""
    on = judged.rule.on
    if drop is Drop.NO_TRIGGER_PHRASE and isinstance(on, CommentOn):
        return f'the comment does not hold "{on.phrase}"'
    if isinstance(on, PullRequestOn) and drop is Drop.NO_MATCHING_PR_TRIGGER:
        word = REVIEW_ACTION if judged.occasion is Occasion.REVIEW else event.action
        if word not in on.action:
            return f"it is about {', '.join(on.action)} and nothing else"
    if isinstance(on, LabelOn | PullRequestOn) and not fits(on, event.labels):
        return _unfit(on, event)
    if isinstance(on, PullRequestOn) and drop is Drop.REVIEW_STATE_NOT_MATCHED:
        return f"the verdict of the review is not {' or '.join(on.review_state or ())}"
    number = getattr(on, "number", None)
    if drop is Drop.CLOSE_NUMBER_NOT_MATCHED and number is not None:
        return f"it is about number {number} alone"
    if drop is Drop.NO_MATCHING_CLOSE_TRIGGER:
        return f"it is about closing {'an issue' if on.type == 'issue' else 'a pull request'}"
    return _lower(drop.meaning)


def _unfit(on: LabelOn | PullRequestOn, event: Event) -> str:
    """What labels do not fit; those of the file alone are named."""
    there = set(event.labels)
    was = "was added" if FORGES[event.forge].added_labels else "is there"
    told = []
    if on.any and there.isdisjoint(on.any):
        told.append(f"none of the labels {', '.join(on.any)} {was}")
    if missing := [one for one in on.all if one not in there]:
        told.append(f"not each of the labels {', '.join(on.all)} {was}: {', '.join(missing)} missing")
    if wrong := [one for one in on.none if one in there]:
        told.append(f"{', '.join(wrong)} {was}, and must not be")
    return "; ".join(told)


def _taken(matched: Matched) -> str:
    """What of the event a rule takes."""
    if matched.label is not None:
        return f"it has the label {matched.label}"
    if matched.phrase is not None:
        return f'the comment holds "{matched.phrase}"'
    return f"its action is {matched.action}"


def _lower(sentence: str) -> str:
    """A sentence as a part of another one."""
    return sentence[:1].lower() + sentence[1:].removesuffix(".")
