"""The accounts at the forges that this environment makes use of, each asked who it is and what it may do."""

import os
from concurrent.futures import Future
from typing import Final, NamedTuple

from pidispatch.config.asked import asked
from pidispatch.config.github_settings import GitHubSettings
from pidispatch.config.settings import Settings
from pidispatch.forges.protocol import Account, ForgeModule
from pidispatch.forges.registry import MODULES
from pidispatch.forges.rights import Rights, Standing
from pidispatch.triggers.entry import TriggersFile
from pidispatch.values.event import Identity
from pidispatch.values.forge import JobKind
from pidispatch.workspace import process

#: Variables that say which accounts there are, and of which repositories they are the accounts.
VARIABLES: Final = (*(str(field.alias) for field in GitHubSettings.model_fields.values()), "POLL_REPOS")


class Known(NamedTuple):
    """An account that said who it is."""

    account: Account
    rights: Rights
    #: Who it is, in words.
    who: str
    standing: Standing
    identity: Identity


def asked_accounts(used: set[JobKind], settings: Settings) -> dict[JobKind, Future[Known]]:
    """Ask the accounts of these forges, all at the same time; of those that this version serves."""
    return {
        kind: asked(lambda module=module: _ask(module, settings))  # type: ignore[misc]
        for kind, module in MODULES.items()
        if kind in used
    }


def _ask(module: ForgeModule, settings: Settings) -> Known:
    account = module.account(settings, os.environ, process)
    rights = module.rights(settings, os.environ, process)
    identity = account.identity()
    who, standing = rights.account()
    return Known(account, rights, who, standing, identity)


def used_forges(settings: Settings, file: TriggersFile | None, named: bool) -> set[JobKind]:
    """The forges that the settings name, that an armed rule or a schedule needs, or that has a repository `named`."""
    used = {kind for kind, module in MODULES.items() if module.configured(settings)}
    if file is not None:
        used |= {one.run.kind for _, one in file.forge_rules if one.mark is None}
    if named or schedules_with_token(file):
        used.add(JobKind.GITHUB)
    return used


def schedules_with_token(file: TriggersFile | None) -> list[int]:
    """Places of the schedules whose jobs get a token of GitHub's."""
    return [] if file is None else [at for at, one in file.schedules if one.run.github]
