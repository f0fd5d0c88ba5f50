"""A two-megabyte image of busybox alone: enough to ask an engine what it enforces."""

import io
import shutil
import subprocess
import tarfile
from pathlib import Path
from typing import Final

#: Where no static busybox is at hand this one is fetched, so that a laptop needs nothing but its engine.
PUBLISHED: Final = "busybox:1.36.1-musl"

_FOLDERS: Final = {"etc": 0o755, "usr": 0o755, "dev": 0o755, "proc": 0o755, "sys": 0o755, "root": 0o700, "tmp": 0o1777}
_PASSWD: Final = "root:x:0:0:root:/root:/bin/sh\npi:x:1001:1001::/home/pi:/bin/sh\n"


def static_busybox() -> Path | None:
    """This machine's busybox, when it is the static one of Debian's package `busybox-static`."""
    found = shutil.which("busybox")
    if found is None or shutil.which("dpkg-query") is None:
        return None
    query = ["dpkg-query", "-W", "-f", "${db:Status-Status}", "busybox-static"]
    state = subprocess.run(query, capture_output=True, text=True, check=False).stdout
    return Path(found) if state == "installed" else None


def root_file_system(busybox: Path) -> bytes:
    """A tar with busybox under all its names, root and a user `pi` (1001) who owns /home/pi and /workspace."""
    applets = subprocess.run([busybox, "--list"], capture_output=True, text=True, check=True).stdout.split()
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.GNU_FORMAT) as tar:
        for name, mode in {**_FOLDERS, "bin": 0o755, "home": 0o755}.items():
            _add(tar, name, mode, tarfile.DIRTYPE)
        for name in ("home/pi", "workspace"):
            _add(tar, name, 0o755, tarfile.DIRTYPE, owner=1001)
        _add(tar, "bin/busybox", 0o755, content=busybox.read_bytes())
        for applet in sorted({*applets} - {"busybox"}):
            _add(tar, f"bin/{applet}", 0o777, tarfile.SYMTYPE, link="busybox")
        _add(tar, "usr/bin", 0o777, tarfile.SYMTYPE, link="../bin")
        _add(tar, "etc/passwd", 0o644, content=_PASSWD.encode())
        _add(tar, "etc/group", 0o644, content=b"root:x:0:\npi:x:1001:\n")
    return packed.getvalue()


def _add(
    tar: tarfile.TarFile,
    name: str,
    mode: int,
    kind: bytes = tarfile.REGTYPE,
    *,
    content: bytes = b"",
    link: str = "",
    owner: int = 0,
) -> None:
    entry = tarfile.TarInfo(name)
    entry.mode, entry.type, entry.linkname, entry.size = mode, kind, link, len(content)
    entry.uid = entry.gid = owner
    tar.addfile(entry, io.BytesIO(content))
