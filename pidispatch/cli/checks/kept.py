"""What lies on this machine's disk: folders, the overlay, and where the provider's key comes from."""

import os
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from pidispatch.box.authfile import key_beside
from pidispatch.box.overlay import check_overlay
from pidispatch.box.providers import KEY_VARIABLES
from pidispatch.box.providers import credential as keys_of
from pidispatch.cli.checks.row import Finding, failed, passed, warned
from pidispatch.cli.checks.scene import Scene
from pidispatch.config.private import private_folder
from pidispatch.money.standing import RECORDS_DAYS, records_suffice
from pidispatch.runs.records import RecordStore
from pidispatch.workspace.jobdir import read_deployment_id

#: Where a machine removes things by itself.
_TEMPORARY: Final = ("/tmp", "/var/tmp", "/dev/shm", "/run")


def state_folder(scene: Scene) -> Iterator[Finding]:
    """Made where it is missing, as a worker does. Raises where it cannot be used."""
    path = scene.settings("PI_STATE_DIR").state_dir
    _writable(private_folder(path, "PI_STATE_DIR"))
    read_deployment_id(path)
    yield _folder(path, "PI_STATE_DIR", "the id of this deployment and what waits in pi-dispatch's own server")


def jobs_folder(scene: Scene) -> Iterator[Finding]:
    """Likewise."""
    path = scene.settings("PI_JOBS_DIR").jobs_dir
    _writable(private_folder(path, "PI_JOBS_DIR"))
    yield _folder(path, "PI_JOBS_DIR", "what a killed run left to be settled")


def logs_folder(scene: Scene) -> Iterator[Finding]:
    """Likewise."""
    settings = scene.settings("PI_LOGS_DIR", "PI_LOG_RETENTION_DAYS", "PI_MONTHLY_CAP")
    path = settings.logs_dir
    RecordStore(path).prepare()
    yield _folder(path, "PI_LOGS_DIR", "the records of all runs")
    if not records_suffice(settings):
        yield warned(
            f"PI_LOG_RETENTION_DAYS={settings.log_retention_days}: records go before the month they are counted in is "
            "over, so a server that loses its data cannot be told from them what was spent",
            f"PI_LOG_RETENTION_DAYS={RECORDS_DAYS} or more, or 0 to keep them for ever",
        )


def _writable(folder: Path) -> None:
    with tempfile.TemporaryFile(dir=folder):
        pass


def _folder(path: Path, variable: str, holds: str) -> Finding:
    found = f"{path}: this account's own, mode {stat.S_IMODE(path.stat().st_mode):04o}, can be written"
    real = Path(os.path.realpath(path))
    if any(real.is_relative_to(os.path.realpath(one)) for one in (*_TEMPORARY, tempfile.gettempdir())):
        return warned(
            f"{found}; it lies in a temporary folder, so {holds} may be removed behind your back",
            f"name a folder that stays with {variable}",
        )
    return passed(found)


def overlay(scene: Scene) -> Iterator[Finding]:
    """The operator's overlay, where there is one. Raises where no job could have it."""
    folder = scene.settings("PI_GLOBAL_PI_DIR").global_pi_dir
    if folder is not None:
        check_overlay(folder)
        yield passed(f"{folder} holds no credential and nothing that is not served")


def credential(scene: Scene) -> Iterator[Finding]:
    """Whether there is a key of the provider, and under which name; never the key."""
    settings = scene.settings("PI_PROVIDER", "PI_AUTH_FROM_PI", "PI_CODING_AGENT_DIR", "PI_FORWARD_ENV", "PI_EGRESS")
    provider = settings.provider
    if found := keys_of(provider, os.environ):
        yield passed(f"{provider}: {', '.join(found)} is set")
        return
    stored = key_beside(provider, settings, os.environ)
    if stored.variables:
        yield passed(f"{provider}: pi's own key in {settings.agent_dir / 'auth.json'}")
        return
    beside = f"; the entry in pi's auth.json {stored.refused}" if stored.refused else ""
    variables = KEY_VARIABLES.get(provider)
    yield failed(
        f"there is no credential for the provider {provider!r}{beside}",
        f"export {variables[-1]}=..." if variables else f"set PI_PROVIDER to one of: {', '.join(KEY_VARIABLES)}",
    )
