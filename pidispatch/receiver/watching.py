"""The triggers file as a receiver has it: the rules in force, and word of forges that nobody here hears."""

import os
from collections import Counter
from collections.abc import Collection, Mapping
from typing import Final

from pidispatch.config.log import log
from pidispatch.config.settings import Settings
from pidispatch.config.watched import FileName, WatchedFile
from pidispatch.triggers.disarm import triggers_path
from pidispatch.triggers.file import parse_triggers
from pidispatch.triggers.rules import Rules
from pidispatch.values.forge import FORGES, JobKind
from pidispatch.values.limits import Limits

#: Variables that say that somebody means to have a forge heard.
_MEANT: Final[Mapping[JobKind, tuple[str, ...]]] = {
    JobKind.GITLAB: ("GITLAB_WEBHOOK_MODE", "GITLAB_WEBHOOK_SECRET", "GITLAB_TOKEN"),
    JobKind.FORGEJO: ("FORGEJO_URL", "FORGEJO_WEBHOOK_SECRET", "FORGEJO_TOKEN"),
    JobKind.AZURE: ("AZURE_WEBHOOK_MODE", "AZURE_WEBHOOK_SECRET", "AZURE_TOKEN", "AZURE_ORG_URL"),
}


def watched_rules(settings: Settings, limits: Limits) -> WatchedFile[Rules]:
    """The file, not read as yet."""
    path = triggers_path(settings)
    return WatchedFile(
        path,
        FileName.TRIGGERS,
        lambda text: Rules(parse_triggers(text, path)),
        debounce_ms=limits.edit_debounce_ms,
        look_s=limits.file_look_s,
    )


class Unheard:
    """Tells of forges that rules, or variables, are about and that this receiver does not hear; once for each state."""

    def __init__(self, heard: Collection[JobKind], environ: Mapping[str, str] = os.environ) -> None:
        self._heard = frozenset(heard)
        self._meant = frozenset(kind for kind, names in _MEANT.items() if any(environ.get(name) for name in names))
        self._told: dict[JobKind, int] = {}

    def __call__(self, rules: Rules) -> None:
        """Look at the rules that are in force from now on."""
        counts: Counter[JobKind] = Counter(rule.run.kind for rule in rules.all)
        found: dict[JobKind, int] = {
            kind: counts[kind] for kind in FORGES if kind not in self._heard and (counts[kind] or kind in self._meant)
        }
        for kind, count in found.items():
            if self._told.get(kind) != count:
                log().warning("forge_not_served", forge=kind, rules=count)
        self._told = found
