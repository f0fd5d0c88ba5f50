"""The time zone of schedules: the one that is named, else the machine's.

https://www.freedesktop.org/software/systemd/man/latest/localtime.html
"""

import os
from pathlib import Path
from typing import Final
from zoneinfo import ZoneInfo

_LOCALTIME: Final = Path("/etc/localtime")
_FOLDER: Final = "zoneinfo/"


def zone_of(name: str) -> ZoneInfo:
    """The IANA zone of this name. Raises `ValueError` for one that this machine does not know."""
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        # The library also says so by the file that it does not find, or finds to be a folder.
        raise ValueError("is no IANA time zone that this machine knows") from None


def schedule_zone(name: str | None) -> ZoneInfo:
    """The zone of all schedules: the named one (`PI_TZ`), else the machine's. Raises `ValueError`."""
    return host_zone() if name is None else zone_of(name)


def host_zone(localtime: Path = _LOCALTIME) -> ZoneInfo:
    """The zone of this process: `TZ`, else the machine's, else UTC.

    With its rules and not only its offset of today: a schedule outlives the next change of the clocks.
    """
    try:
        if name := os.environ.get("TZ", "").removeprefix(":"):
            return zone_of(name)
        real = os.path.realpath(localtime)
        if _FOLDER in real:
            return zone_of(real.partition(_FOLDER)[2])
        with localtime.open("rb") as file:
            return ZoneInfo.from_file(file, key="localtime")
    except (ValueError, OSError):
        return ZoneInfo("UTC")
