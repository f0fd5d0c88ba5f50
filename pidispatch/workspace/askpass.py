"""How git is given a credential for one call: by a program that git asks, and never by an address or an argument.

Git starts the program that `GIT_ASKPASS` names with its question as the only argument, and takes the first line it
writes (https://git-scm.com/docs/gitcredentials, "Requesting credentials"). The program is a script without any secret
in it: the credential is in the environment of that one call of git.
"""

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from shlex import quote
from typing import Final

from pidispatch.values.errors import InfraError

#: The user's name that goes with a token of GitHub's; every forge takes any name there.
#: https://docs.github.com/en/apps/creating-github-apps/authenticating-with-a-github-app/authenticating-as-a-github-app-installation
USER: Final = "x-access-token"
_PREFIX: Final = "pi-askpass-"
_TOKEN: Final = "GIT_ASKPASS_TOKEN"


@contextlib.contextmanager
def askpass(origin: str, token: str, beside: Path) -> Iterator[Mapping[str, str]]:
    """Variables for the one call of git that may use `token`, at `origin` (scheme, host and port) alone.

    The script lies in a folder of its own below `beside`, a directory of which nothing of that enters the box. It is
    gone afterwards, at the latest with that directory. Raises `InfraError` (cause `clone-failed`).
    """
    folder = _made(beside)
    try:
        yield {"GIT_ASKPASS": str(_script(folder, origin)), _TOKEN: token}
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _made(beside: Path) -> Path:
    try:
        return Path(tempfile.mkdtemp(prefix=_PREFIX, dir=beside))
    except OSError as error:
        raise _unusable(error) from None


def _script(folder: Path, origin: str) -> Path:
    scheme, _, host = origin.partition("://")
    asked_user = quote(f"Username for '{origin}': ")
    asked_password = quote(f"Password for '{scheme}://{USER}@{host}': ")
    # A proxy, or a server that was not meant, asks too, and is told nothing.
    text = f"""#!/bin/sh
case "$1" in
{asked_user}) echo {USER} ;;
{asked_password}) printf '%s\\n' "${_TOKEN}" ;;
*) exit 1 ;;
esac
"""
    path = folder / "askpass"
    try:
        path.write_text(text)
        path.chmod(0o700)
    except OSError as error:
        raise _unusable(error) from None
    if not os.access(path, os.X_OK):
        # Git would only say that it could not read a name.
        raise InfraError(
            "the script that hands git its credential cannot be started where it lies. Have PI_JOBS_DIR on a file "
            "system that is not mounted noexec",
            "clone-failed",
        )
    return path


def _unusable(error: OSError) -> InfraError:
    return InfraError(
        f"the script that hands git its credential cannot be written: {error.strerror}. Check PI_JOBS_DIR",
        "clone-failed",
    )
