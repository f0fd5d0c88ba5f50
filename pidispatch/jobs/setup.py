"""The store's own marks: the format it is written in, and the deployment it belongs to."""

import secrets
from typing import Final

from pidispatch.jobs.calls import Calls
from pidispatch.jobs.keys import DEPLOYMENT, SCHEMA
from pidispatch.values.errors import ConfigError

#: Format of rows and keys that this version writes. A store of a later one is refused.
FORMAT: Final = 1


class Setup(Calls):
    """Opens the store."""

    def open(self, folder_id: str | None) -> str:
        """Check the store's format and belonging; the deployment's id, which is valid from now on.

        `folder_id` is the id that the state folder holds. An empty store takes it, or a fresh one; a folder without an
        id adopts the store's. Raises `ConfigError` for a store of a later format (cause `schema-newer`) or of another
        deployment (`deployment-differs`), and `InfraError`.
        """
        status, found = self._script("open", FORMAT, folder_id or "", secrets.token_hex(8))
        if status == "newer":
            raise _newer(found)
        if status == "other":
            raise ConfigError(
                f"the store belongs to deployment {found}, and PI_STATE_DIR to {folder_id}. Both would settle each "
                "other's runs. Name another place with PI_KEY_PREFIX or VALKEY_URL; to join the store's deployment, "
                "move the file `deployment` in PI_STATE_DIR away while nothing runs here",
                "deployment-differs",
            )
        return str(found)

    def deployment(self) -> str | None:
        """The id of the deployment that the store belongs to; `None` of an empty one. Raises `InfraError`."""
        found = self._ask(lambda: self._client.get(self._key(DEPLOYMENT)))
        return None if found is None else str(found)

    def check_format(self) -> None:
        """Raise `ConfigError` (`schema-newer`) for a store of a later format, for who only changes what is there."""
        found = self._ask(lambda: self._client.get(self._key(SCHEMA)))
        if found is not None and not (str(found).isdecimal() and int(found) <= FORMAT):
            raise _newer(str(found))


def _newer(found: str) -> ConfigError:
    return ConfigError(
        f"the store is written in format {found}, and this version knows {FORMAT} at most: install the newer "
        "pi-dispatch again, or name another place with PI_KEY_PREFIX or VALKEY_URL",
        "schema-newer",
    )
