"""GitHub as a forge among others."""

from collections.abc import Mapping
from typing import Final

from pidispatch.config.clock import SystemClock
from pidispatch.config.settings import Settings
from pidispatch.forges.github.payload import project
from pidispatch.forges.github.wire import GitHubWire
from pidispatch.forges.polling import Polling
from pidispatch.forges.protocol import Account, Programs, Project
from pidispatch.forges.rights import Rights
from pidispatch.values.clock import Clock
from pidispatch.values.errors import ConfigError
from pidispatch.values.forge import FORGES, JobKind


class GitHub:
    """Its module."""

    def __init__(self, clock: Clock) -> None:
        self.row = FORGES[JobKind.GITHUB]
        self.lookup_failed = "permission-lookup-failed"
        self.event: Project = project
        self._clock = clock

    def configured(self, settings: Settings) -> bool:
        """Whether somebody chose a credential; one that merely lies about says nothing."""
        return "github_auth_source" in settings.model_fields_set

    def wire(self, settings: Settings) -> GitHubWire:
        """What verifies its requests. Raises `ConfigError` without a secret."""
        secret = settings.webhook_secret
        if secret is None:
            raise ConfigError(
                "WEBHOOK_SECRET is not set, so no delivery of GitHub's could be told from a forged one. Set it to the "
                "secret of the webhook, for instance one of: openssl rand -hex 32",
                "setting",
            )
        # As it stands in the environment, also where that is no UTF-8.
        return GitHubWire(secret.get_secret_value().encode("utf-8", "surrogateescape"))

    def account(self, settings: Settings, environ: Mapping[str, str], programs: Programs) -> Account:
        """The account. Raises `ConfigError`."""
        # Only who asks GitHub needs PyGithub, which takes longer to load than an event to explain.
        from pidispatch.forges.github.account import GitHubAccount

        return GitHubAccount.of(settings, environ, programs, self._clock)

    def rights(self, settings: Settings, environ: Mapping[str, str], programs: Programs) -> Rights:
        """What tells what the account may do. Raises `ConfigError`."""
        from pidispatch.forges.github.rights import GitHubRights

        return GitHubRights.of(settings, environ, programs, self._clock)

    def polling(self, settings: Settings, environ: Mapping[str, str], programs: Programs) -> Polling:
        """What polls it. Raises `ConfigError`."""
        from pidispatch.forges.github.polling import GitHubPolling

        return GitHubPolling.of(settings, environ, programs, self._clock)


GITHUB: Final = GitHub(SystemClock())
