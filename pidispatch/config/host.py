"""The name of this machine, as records carry it."""

import re
import socket

_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")


def host_name() -> str:
    """The host name in lower case, reduced to letters, digits, `.`, `_` and `-`; `worker` where nothing is left."""
    return _UNSAFE.sub("-", socket.gethostname().lower()).strip("-.") or "worker"
