"""What is configured: variables, and the file of Celery's settings."""

import os
import re
from collections.abc import Collection, Iterator
from typing import Final

from pidispatch.cli.checks.row import Finding, failed, passed
from pidispatch.cli.checks.scene import Scene
from pidispatch.config.settings import Settings, load_only, refuse_unserved_bounds
from pidispatch.jobs.celery_defaults import STATE_FILE, operator_settings, refuse_environment
from pidispatch.server.address import Address
from pidispatch.values.errors import ConfigError

#: Where the words of a malformed variable go over into what to write instead.
_EXAMPLE: Final = ". Write for example: "
_NAME = re.compile(r"[A-Z_]+")


def settings(_scene: Scene) -> Iterator[Finding]:
    """Every malformed variable, one finding each."""
    variables = {str(field.alias) for field in Settings.model_fields.values()}
    sound = variables
    while faults := _faults(sound):
        for fault in faults:
            what, _, example = fault.rpartition(_EXAMPLE)
            yield failed(what, f"write for example: {example}") if what else failed(fault, "change it as said")
        # How variables go together is only looked at where each of them is sound.
        sound = sound - {_NAME.match(fault)[0] for fault in faults}  # type: ignore[index]
    if sound == variables:
        given = [name for name in sorted(variables) if os.environ.get(name)]
        yield passed(f"set here: {', '.join(given)}" if given else "none is set; all stand at their defaults")


def _faults(variables: Collection[str]) -> list[str]:
    """What is wrong with these variables; each begins with the name of one of them."""
    faults: list[str] = []
    for read in (load_only, _read_address):
        try:
            read(variables)
        except ConfigError as error:
            faults += error.message.split("\n")
    return faults


def _read_address(variables: Collection[str]) -> None:
    if "VALKEY_URL" in variables:
        Address.of(load_only(("VALKEY_URL",)))


def bounds(_scene: Scene) -> Iterator[Finding]:
    """Bounds that this version does not enforce. Raises `ConfigError` for one that is set."""
    refuse_unserved_bounds(os.environ)
    yield from ()


def celery(scene: Scene) -> Iterator[Finding]:
    """The operator's file of Celery's settings, where there is one. Raises `ConfigError` for what is refused."""
    found = scene.settings("PI_CELERY_CONFIG", "PI_STATE_DIR")
    refuse_environment()
    path = found.celery_config or found.state_dir / STATE_FILE
    own = operator_settings(found.celery_config, found.state_dir)
    if path.is_file():
        yield passed(f"{path} sets {', '.join(sorted(own)) or 'nothing'}")
