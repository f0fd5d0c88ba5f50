"""The rules of a triggers file as events are held against them: by forge and occasion, spent ones left out."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from pidispatch.triggers.entry import (
    CommentOn,
    ForgeRun,
    IssueOn,
    LabelOn,
    PullRequestOn,
    TriggersFile,
)
from pidispatch.triggers.identity import breaker_of, oneshot_of
from pidispatch.values.event import Occasion
from pidispatch.values.forge import FORGES, ForgeKind


@dataclass(frozen=True)
class Rule:
    """One armed entry."""

    #: Its place in the file, from 0.
    index: int
    on: LabelOn | CommentOn | PullRequestOn | IssueOn
    run: ForgeRun
    #: What its runs are counted under, and what its mark is kept under, where it fires once.
    breaker: str
    oneshot: str | None

    @property
    def closes(self) -> bool:
        """Whether it is about closing."""
        if isinstance(self.on, IssueOn):
            return True
        return isinstance(self.on, PullRequestOn) and set(self.on.action) == {FORGES[self.run.kind].close_word}

    @property
    def occasions(self) -> frozenset[Occasion]:
        """What it can fire on."""
        if self.closes:
            return _CLOSE
        return _OCCASIONS[type(self.on)]


_CLOSE: Final = frozenset({Occasion.CLOSE})
_OCCASIONS: Final = {
    LabelOn: frozenset({Occasion.LABEL}),
    CommentOn: frozenset({Occasion.COMMENT}),
    PullRequestOn: frozenset({Occasion.PULL_REQUEST, Occasion.REVIEW}),
}


class Rules:
    """All rules of a file. An event of one forge never meets a rule of another."""

    def __init__(self, file: TriggersFile) -> None:
        rules = [
            Rule(index, one.on, one.run, breaker_of(one), oneshot_of(one))
            for index, one in file.forge_rules
            if one.mark is None
        ]
        self._rules: dict[tuple[ForgeKind, Occasion], list[Rule]] = {}
        for rule in rules:
            for occasion in rule.occasions:
                self._rules.setdefault((rule.run.kind, occasion), []).append(rule)
        #: All of them, in the order of the file.
        self.all: tuple[Rule, ...] = tuple(rules)
        #: Every flow that a comment may name, of whatever forge.
        self.flows = frozenset(rule.run.flow for rule in rules if rule.run.flow is not None)

    def __len__(self) -> int:
        return len(self.all)

    def of(self, forge: ForgeKind, occasion: Occasion) -> Sequence[Rule]:
        """Those of a forge that an occasion can fire, in the order of the file."""
        return self._rules.get((forge, occasion), ())

    @property
    def forges(self) -> frozenset[ForgeKind]:
        """The forges that any armed rule is about."""
        return frozenset(rule.run.kind for rule in self.all)
