"""What becomes of each payload, one line each: `python -m tests.payloads.verdicts > tests/payloads/verdicts.txt`.

Read the difference before you keep it: it is what changed for somebody's webhooks.
"""

from collections import Counter
from collections.abc import Iterator

from pidispatch.forges.github.payload import project
from pidispatch.triggers.file import parse_triggers
from pidispatch.triggers.matching import Ask, Fired, decide
from pidispatch.triggers.rules import Rules
from pidispatch.values.event import Authority, Drop, Identity
from tests.payloads import TRIGGERS, Payload, examples

#: GitHub's own first account, which did a few of them.
_ME = Identity(id=1)


def rules() -> Rules:
    """The rules of the triggers file beside this one."""
    return Rules(parse_triggers(TRIGGERS.read_text(encoding="utf-8"), TRIGGERS))


def verdict(payload: Payload, against: Rules) -> str:
    """What becomes of one: the rule that it fires, or why none; where GitHub is asked, both."""
    event = project({"x-github-event": payload.event, "x-github-delivery": "d"}, payload.document)
    found = decide(event, against, _ME)
    if not isinstance(found, Ask):
        return _told(found)
    answers = {one: decide(event, against, _ME, one) for one in (Authority.YES, Authority.NO)}
    return "asked; " + "; ".join(f"{one}: {_told(answer)}" for one, answer in answers.items())


def _told(found: Fired | Drop | Ask) -> str:
    assert not isinstance(found, Ask), "it was answered"
    if isinstance(found, Drop):
        return found.value
    matched = found.matched.model_dump(exclude={"index", "type"}, exclude_none=True)
    what = " ".join(f"{name}={value}" for name, value in matched.items())
    run = found.rule.run
    return f"rule {found.rule.index} ({found.matched.type} {what}) {found.flow or f'/{run.command}'}"


def lines() -> Iterator[str]:
    """The whole file, line by line."""
    against = rules()
    seen: Counter[str] = Counter()
    source = ""
    for payload in examples():
        if payload.source != source:
            source = payload.source
            seen.clear()
            yield f"# {source}"
        action = payload.document.get("action") if isinstance(payload.document, dict) else None
        name = f"{payload.event}.{action}" if action else payload.event
        seen[name] += 1
        yield f"{name} {seen[name]} -> {verdict(payload, against)}"


if __name__ == "__main__":
    print("\n".join(lines()))
