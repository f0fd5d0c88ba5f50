"""A Debian root file system as a tar, made by mmdebstrap from the package sources this machine already uses.

No mirror is named here: a machine reaches Debian by whatever its own apt is set to, proxies included.
"""

import platform
import re
import shutil
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

_APT: Final = Path("/etc/apt")
_ONE_LINE: Final = re.compile(r"deb\s+(?P<options>\[[^]]*\]\s+)?(?P<uri>\S+)\s+(?P<suite>\S+)\s+(?P<components>.+)")
#: Left out of the image: nothing in a job reads it, and unpacking it takes time.
_LEFT_OUT: Final = ("/usr/share/doc/*", "/usr/share/man/*", "/usr/share/locale/*", "/usr/share/info/*")
#: What mmdebstrap writes into /etc of the image: how this machine builds, its proxies and mirrors.
_OF_THIS_MACHINE: Final = (
    "apt/apt.conf.d/99mmdebstrap",
    "dpkg/dpkg.cfg.d/99mmdebstrap",
    "apt/sources.list",
    "apt/sources.list.d/*",
)


class CannotMakeError(Exception):
    """The tar cannot be made on this machine; the message says what is missing."""


def codename() -> str:
    """The release of this Debian, for instance `bookworm`. Raises `CannotMakeError` elsewhere."""
    try:
        facts = platform.freedesktop_os_release()
    except OSError:
        facts = {}
    if facts.get("ID") != "debian" or not facts.get("VERSION_CODENAME"):
        raise CannotMakeError("this machine is not a Debian release")
    return facts["VERSION_CODENAME"]


def require_mmdebstrap(*, root: bool) -> None:
    """Install mmdebstrap where it is missing and `root` may; else raise `CannotMakeError`."""
    if shutil.which("mmdebstrap"):
        return
    if not root:
        raise CannotMakeError("mmdebstrap is missing (sudo apt-get install mmdebstrap)")
    apt = ["apt-get", "-qq", "-o", "DPkg::Lock::Timeout=300"]
    run([*apt, "update"])
    run(["env", "DEBIAN_FRONTEND=noninteractive", *apt, "install", "-y", "--no-install-recommends", "mmdebstrap"])


def make_tar(target: Path, release: str, packages: Sequence[str], work: Path) -> None:
    """Write the root file system with `packages` to `target`; `work` is a folder for scratch files."""
    sources = _write_sources(work, release)
    settings = work / "apt.conf"
    settings.write_text(_connection_settings())
    forget = " ".join(["rm -f", *(f'"$1"/etc/{name}' for name in _OF_THIS_MACHINE)])
    run(
        [
            "env",
            f"TMPDIR={work}",
            "mmdebstrap",
            "--variant=essential",
            f"--include={','.join(packages)}",
            f"--aptopt={settings}",
            *[f"--dpkgopt=path-exclude={pattern}" for pattern in _LEFT_OUT],
            "--dpkgopt=force-unsafe-io",
            f"--customize-hook={forget}",
            release,
            str(target),
            *map(str, sources),
        ]
    )


def run(command: Sequence[str], cwd: Path | None = None) -> None:
    """Run a program; its output is shown only when it fails."""
    done = subprocess.run(command, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode != 0:
        tail = "\n".join(done.stdout.splitlines()[-25:])
        raise RuntimeError(f"{' '.join(command[:6])} ... ended with {done.returncode}:\n{tail}")


def _write_sources(work: Path, release: str) -> list[Path]:
    """This machine's sources of `release` as files for mmdebstrap; none found means its built-in default."""
    files = [_APT / "sources.list", *sorted((_APT / "sources.list.d").glob("*"))]
    texts = {
        "debian.list": one_line_sources((path.read_text() for path in files if _is(path, ".list")), release),
        "debian.sources": stanza_sources((path.read_text() for path in files if _is(path, ".sources")), release),
    }
    written = []
    for name, text in texts.items():
        if text:
            (work / name).write_text(text)
            written.append(work / name)
    return written


def _is(path: Path, suffix: str) -> bool:
    return path.is_file() and path.suffix == suffix


def _suites(release: str) -> set[str]:
    return {release, f"{release}-updates", f"{release}-security"}


def one_line_sources(texts: Iterable[str], release: str) -> str:
    """The lines of sources.list(5) that are Debian's own `main` of `release`; other vendors' are left out."""
    kept = []
    for line in "\n".join(texts).splitlines():
        entry = _ONE_LINE.fullmatch(line.split("#")[0].strip())
        if entry and entry["suite"] in _suites(release) and "main" in entry["components"].split():
            kept.append(f"deb {entry['options'] or ''}{entry['uri']} {entry['suite']} main\n")
    return "".join(kept)


def stanza_sources(texts: Iterable[str], release: str) -> str:
    """The same of deb822-style sources, whose other fields (keys, dates) are kept as they are."""
    kept = []
    for stanza in re.split(r"\n\s*\n", "\n\n".join(texts)):
        fields = _fields(stanza)
        words = {name: fields.get(name, "").split() for name in ("Types", "Suites", "Components")}
        suites = [suite for suite in words["Suites"] if suite in _suites(release)]
        enabled = fields.get("Enabled", "yes").strip().lower() not in {"no", "false"}
        if enabled and suites and "deb" in words["Types"] and "main" in words["Components"]:
            fields |= {"Types": " deb", "Suites": f" {' '.join(suites)}", "Components": " main"}
            kept.append("".join(f"{name}:{value}\n" for name, value in fields.items()))
    return "\n".join(kept)


def _fields(stanza: str) -> dict[str, str]:
    """Values as written, with the blank or line break before them: an embedded key begins on a line of its own."""
    lines = "\n".join(line for line in stanza.splitlines() if line.strip() and not line.startswith("#"))
    return dict(re.findall(r"^([A-Za-z-]+):((?:.*)(?:\n[ \t].*)*)", lines, re.MULTILINE))


def _connection_settings() -> str:
    """How this machine's apt connects (proxies, certificates): mmdebstrap does not read that by itself."""
    dump = subprocess.run(["apt-config", "dump"], capture_output=True, text=True, check=True).stdout
    return "".join(f"{line}\n" for line in dump.splitlines() if re.match(r'Acquire::(http|https|ftp)::\S+ ".+";', line))
