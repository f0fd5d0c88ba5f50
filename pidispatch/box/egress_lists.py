"""The folder of the egress proxy's lists on this machine: made once, then the operator's alone.

What may stand in the lists is pidispatch/config/allowlist.py's business; what they do, docs/explanation/egress.md's.
"""

import os
import stat
from pathlib import Path
from typing import Final

from pidispatch.config import allowlist
from pidispatch.values.errors import ConfigError, InfraError

_DEFAULTS: Final = {
    allowlist.ALLOWLIST: """\
# Hosts that jobs may reach through the egress proxy: one host per line, without scheme, port and path.
# A leading dot is the name itself and every name below it. Jobs reach these by HTTPS (port 443) and by plain HTTP.
# The proxy takes an edit over within seconds; what cannot be read changes nothing and is shown by
# `pi-dispatch egress status`.

# The model provider. Take it out, and add another one's host, when you use another one.
api.anthropic.com

# The forge, with its API. A job that may reach a forge can also send out through it what it can read.
.github.com

# Package registries are not listed. Add the hosts that your jobs install from, one per line, for example:
# registry.example.com
""",
    allowlist.PRIVATE: """\
# Hosts of the allowlist that may resolve to a private address: a forge or a model in your own network. For every
# other host the proxy refuses such an address, so that no name leads jobs into your network or to this machine.
# One host per line, as in egress-allowlist.conf, which must list it too. Empty by default.
""",
}


def prepare(folder: Path) -> allowlist.Lists:
    """Make `folder` and the default lists where they are missing, overwrite nothing, and read what is there.

    Raises `ConfigError` for lists that cannot be used, `InfraError` where the folder cannot be made.
    """
    try:
        _make(folder)
        for name, text in _DEFAULTS.items():
            _create(folder / name, text)
        _refuse_unreadable(folder)
        return allowlist.parse(allowlist.read(folder))
    except allowlist.ListError as error:
        faults = "\n".join(f"  {fault}" for fault in error.faults)
        raise ConfigError(f"The lists in {folder} (PI_EGRESS_DIR) cannot be used:\n{faults}", "egress-lists") from None
    except OSError as error:
        raise InfraError(
            f"PI_EGRESS_DIR={folder} cannot be used ({error.strerror}: {error.filename}). Name another folder, or give "
            "this one to the account that runs pi-dispatch",
            "egress-folder",
        ) from None


def _make(folder: Path) -> None:
    """Its parents are this account's alone; the folder itself is for the proxy's user to read, through the mount."""
    if folder.is_dir():
        return
    missing = [parent for parent in folder.parents if not parent.exists()]
    for parent in reversed(missing):
        parent.mkdir(mode=0o700)
    folder.mkdir()
    folder.chmod(0o755)


def _create(path: Path, text: str) -> None:
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except FileExistsError:
        return
    with open(handle, "w", encoding="utf-8") as file:
        file.write(text)
        os.fchmod(handle, 0o644)


def _refuse_unreadable(folder: Path) -> None:
    """The proxy runs as a user of its own and sees nothing of this machine but the folder."""
    wanted = {folder: 0o755, **{folder / name: 0o644 for name in _DEFAULTS}}
    for path, mode in wanted.items():
        facts = path.lstat()
        if path != folder and not stat.S_ISREG(facts.st_mode):
            raise ConfigError(
                f"{path} is not a plain file, and what a link leads to is not there inside the proxy. Put the file "
                "itself in its place",
                "egress-lists",
            )
        facts = path.stat()
        if facts.st_mode & 0o002 or mode & 0o005 & ~facts.st_mode:
            raise ConfigError(
                f"{path} has the mode {stat.S_IMODE(facts.st_mode):04o}: the proxy's user must be able to read it, and "
                f"nobody but its owner and group to change it. Run: chmod {mode:o} {path}",
                "egress-lists",
            )
