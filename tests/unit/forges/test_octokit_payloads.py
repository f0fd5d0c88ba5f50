"""Payloads that nobody here wrote, held against a rule of each kind."""

from collections import Counter
from pathlib import Path

from pidispatch.forges.github.payload import OCCASIONS
from tests import payloads
from tests.payloads import verdicts

GOLDEN = Path(payloads.__file__).parent / "verdicts.txt"


def test_every_payload_becomes_what_the_file_says() -> None:
    found = list(verdicts.lines())
    expected = GOLDEN.read_text(encoding="utf-8").splitlines()
    differ = [f"{new}   (was: {old})" for new, old in zip(found, expected, strict=False) if new != old]
    assert not differ, f"{len(differ)} lines differ, the first: {differ[0]}"
    assert len(found) == len(expected)


def test_of_each_event_that_is_served_some_fire_and_some_do_not() -> None:
    rules = verdicts.rules()
    fired: Counter[str] = Counter()
    dropped: Counter[str] = Counter()
    used: set[int] = set()
    for one in payloads.examples():
        told = verdicts.verdict(one, rules)
        name = one.event if one.event in {event for event, _ in OCCASIONS} else "others"
        if (at := told.find("rule ")) >= 0:
            fired[name] += 1
            used.add(int(told[at:].split()[1]))
        if at < 0 or told.startswith("asked"):
            dropped[name] += 1
    served = sorted({event for event, _ in OCCASIONS})
    print(*(f"{name}: {fired[name]} fired, {dropped[name]} dropped" for name in [*served, "others"]), sep="\n")
    assert all(fired[name] and dropped[name] for name in served), (fired, dropped)
    assert fired["others"] == 0
    assert used == {rule.index for rule in rules.all}, "every rule is fired by some of them"


def test_each_is_a_body_and_the_name_of_its_event() -> None:
    bodies = list(payloads.payloads())
    assert len(bodies) == len(payloads.examples()) > 700
    assert all(name and body.startswith(b"{") for name, body in bodies)
