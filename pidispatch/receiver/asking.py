"""From an event and the rule that takes it to the jobs it asks for, field by field.

Nothing is taken over that is not named here, so no field of a payload reaches a job by accident.
"""

import hashlib
from typing import Final, NamedTuple

from pidispatch.jobs.delivered import Delivery
from pidispatch.jobs.ids import forge_id, semantic_key
from pidispatch.triggers.matching import Fired
from pidispatch.values.event import Actor, Event
from pidispatch.values.forge import separator
from pidispatch.values.job import ForgeJob, Origin, Sender

#: Characters of an event's own words that are kept in the log of deliveries.
_WORD: Final = 64
_DIGITS: Final = 16


class Asked(NamedTuple):
    """A job that an event asks for."""

    job: ForgeJob
    #: What the same wish has in common.
    key: str
    #: What the log of deliveries keeps of it.
    delivery: Delivery


def jobs_of(event: Event, fired: Fired) -> tuple[Asked, ...]:
    """The jobs: one, or as many as the rule has replicas."""
    count = fired.rule.run.replicas
    if count is None:
        return (_asked(event, fired, None),)
    return tuple(_asked(event, fired, number) for number in range(1, count + 1))


def delivery_of(event: Event, *, trigger: int | None = None, reason: str | None = None) -> Delivery:
    """What the log of deliveries keeps of an event."""
    target = None
    if event.repo is not None and event.target is not None:
        target = f"{event.repo}{separator(event.forge, event.target.type)}{event.target.number}"
    return Delivery(
        id=event.delivery,
        event=event.event[:_WORD],
        action=event.action[:_WORD] or None,
        target=target,
        trigger=trigger,
        reason=reason,
    )


def _asked(event: Event, fired: Fired, replica: int | None) -> Asked:
    rule, run = fired.rule, fired.rule.run
    assert event.repo is not None, "a rule takes no event without a repository"
    assert event.target is not None, "nor one without a target"
    job = ForgeJob(
        id=forge_id(event.forge, event.delivery, replica),
        kind=event.forge,
        repo=event.repo,
        target=event.target,
        flow=fired.flow if run.command is None else None,
        command=run.command,
        trigger=Origin(
            event=event.event,
            action=event.action,
            delivery_id=event.delivery,
            sender=Sender(id=sender_id(event.actor)),
            matched=fired.matched,
            comment=event.comment,
            review=event.review,
        ),
        provider=run.provider,
        model=run.model,
        max_turns=run.max_turns,
        max_tokens=run.max_tokens,
        image=run.image,
        instructions=run.instructions,
        skills_dir=run.skills_dir,
        replica=replica,
        replicas=run.replicas,
        breaker=rule.breaker,
        oneshot=rule.oneshot,
    )
    return Asked(job, semantic_key(job), delivery_of(event, trigger=rule.index))


def sender_id(actor: Actor) -> int | str:
    """The forge's id of who did it. In the place of an address, which is kept nowhere, what stands for it."""
    if actor.id is not None:
        return actor.id
    digest = hashlib.sha256((actor.alias or "").encode("utf-8", "replace")).hexdigest()
    return f"azid-{digest[:_DIGITS]}"
