"""This deployment's accounts at forges, as a worker's jobs need them: made when the first of them does, then kept."""

import threading
from collections.abc import Mapping

from pidispatch.config.log import log
from pidispatch.config.settings import Settings
from pidispatch.forges.protocol import Account, ForgeModule
from pidispatch.forges.registry import MODULES
from pidispatch.values.errors import ConfigError
from pidispatch.values.forge import FORGES, JobKind
from pidispatch.workspace import process


class Accounts:
    """Asked for the account at a forge; several threads may ask at once. An account holds no token."""

    def __init__(
        self, settings: Settings, environ: Mapping[str, str], modules: Mapping[JobKind, ForgeModule] = MODULES
    ) -> None:
        self._settings = settings
        self._environ = environ
        self._modules = modules
        self._lock = threading.Lock()
        self._known: dict[JobKind, Account] = {}

    def __call__(self, kind: JobKind) -> Account:
        """The account. Raises `ConfigError` where this version serves no such forge, or its settings cannot work."""
        with self._lock:
            if (known := self._known.get(kind)) is None:
                known = self._known[kind] = self._made(kind)
            return known

    def tell_unavailable(self) -> None:
        """Log each forge that the settings name and whose credential cannot work: its jobs will be refused."""
        for kind, module in self._modules.items():
            if not module.configured(self._settings):
                continue
            try:
                self(kind)
            except ConfigError as error:
                if kind is JobKind.GITHUB:
                    log().warning("github_auth_unavailable", kind=kind.value, reason=error.message)

    def _made(self, kind: JobKind) -> Account:
        module = self._modules.get(kind)
        if module is None:
            raise ConfigError(f"this version runs no jobs of {FORGES[kind].title}", "forge-unserved")
        return module.account(self._settings, self._environ, process)
