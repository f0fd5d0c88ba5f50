"""Engine, this process and a folder, as the choice of a job's user needs them."""

import os
import sys

from pidispatch.box.engine import EngineFacts
from pidispatch.box.user import HostFacts


def host_facts(engine: EngineFacts, folder_uid: int, folder_gid: int) -> HostFacts:
    """What is known of `engine` and of this process, for a job in a folder of that owner."""
    return HostFacts(
        linux=sys.platform == "linux",
        wsl="microsoft" in os.uname().release.lower(),
        engine_is_here=engine.here,
        readable=engine.readable,
        desktop=engine.desktop,
        security_options=engine.security_options,
        socket_uid=engine.socket_uid,
        socket_gid=engine.socket_gid,
        euid=os.geteuid(),
        egid=os.getegid(),
        folder_uid=folder_uid,
        folder_gid=folder_gid,
    )
