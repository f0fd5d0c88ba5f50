"""The tests of the queue on the newest Celery and kombu, which the project does not install: it shows what they break.

In `.venv-next`, an environment of its own: the project with all of its declared bounds but those of the two. It may
fail. At the end stand the versions and the tests that failed; the exit code is pytest's, or 1 without the environment.

Arguments are handed on to pytest; paths among them take the place of the whole suite.
"""

import configparser
import json
import subprocess
import sys
import tempfile
from importlib.metadata import distributions
from pathlib import Path
from xml.etree import ElementTree

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv-next"
PYTHON = VENV / "bin" / "python"
SUITE = (
    "tests/unit/worker",
    "tests/unit/jobs",
    "tests/integration/jobs",
    "tests/integration/worker",
    "tests/e2e/queue",
)
#: What is taken as new as it is, whatever bounds the project has.
NEWEST = ("celery", "kombu")
#: Their relatives, of which the versions tell too why something fails.
SHOWN = (*NEWEST, "amqp", "billiard", "vine", "redis", "flower")


def main(arguments: list[str]) -> int:
    """Make the environment, run the suite, say what failed; the exit code."""
    try:
        make_environment()
    except subprocess.CalledProcessError as error:
        print(f"test-next: {VENV.name} could not be made; this failed: {' '.join(map(str, error.cmd))}")
        return 1
    told = f"{sys.version.split()[0]}, {', '.join(f'{name} {version}' for name, version in versions().items())}"
    print(f"\n== Python {told}", flush=True)
    chosen = [one for one in arguments if (ROOT / one.partition("::")[0]).exists()]
    options = [one for one in arguments if one not in chosen]
    with tempfile.TemporaryDirectory(prefix="pi-next-") as folder:
        report = Path(folder) / "report.xml"
        command = [PYTHON, "-m", "pytest", *(chosen or SUITE), "-q", f"--junitxml={report}", *options]
        code = subprocess.run(command, cwd=ROOT, check=False).returncode
        failed = failures(report) if report.is_file() else []
    print(f"\n== Python {told}")
    print("\n".join(failed))
    print(f"{len(failed)} tests failed" if code else "everything passed", flush=True)
    if held := held_back():
        print(f"not the newest, as another package does not take it: {', '.join(held)}")
    return code


def make_environment() -> None:
    """Have `.venv-next` hold the newest that fits together. Raises `CalledProcessError`."""
    print(f"== {VENV.name}", flush=True)
    if not PYTHON.exists():
        # Made from the base of the running interpreter.
        subprocess.run([sys.executable, "-m", "venv", "--clear", VENV], check=True)
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as wanted:
        wanted.write("\n".join(requirements((ROOT / "setup.cfg").read_text())) + "\n")
        wanted.flush()
        # One resolution of everything, so that what the two depend on fits.
        _pip("install", "--upgrade", "-r", wanted.name, "setuptools", "wheel")
    # Its own bounds would be taken otherwise.
    _pip("install", "--no-deps", "--no-build-isolation", "-e", str(ROOT))


def requirements(text: str) -> list[str]:
    """What a setup.cfg with this `text` asks for, with its development tools, and any version of `NEWEST`."""
    declared = configparser.ConfigParser(interpolation=None)
    declared.read_string(text)
    lists = (declared["options"]["install_requires"], declared["options.extras_require"]["dev"])
    lines = [line for one in lists for line in one.splitlines() if line and not line.startswith("#")]
    return [_unbound(line) for line in lines]


def _unbound(line: str) -> str:
    """`line`, without its version where it asks for one of `NEWEST`."""
    wanted = line.split()[0]
    return wanted if wanted.partition("[")[0] in NEWEST else line


def versions() -> dict[str, str]:
    """The versions in the environment, of `SHOWN`."""
    found = {one.name.lower(): one.version for one in distributions(path=_libraries())}
    return {name: found.get(name, "none") for name in SHOWN}


def _libraries() -> list[str]:
    return [str(path) for path in (VENV / "lib").glob("python*/site-packages")]


def held_back() -> list[str]:
    """Of `NEWEST`, what the index has newer than what could be installed; empty where the index does not say."""
    done = _pip("install", "--upgrade", "--no-deps", "--dry-run", "--report", "-", *NEWEST, check=False)
    if done.returncode != 0:
        return []
    found = (one["metadata"] for one in json.loads(done.stdout)["install"])
    return [f"{one['name']} {one['version']}" for one in found]


def failures(report: Path) -> list[str]:
    """One line for each test that failed, from pytest's report: its name and the first line of why."""
    lines = []
    for case in ElementTree.parse(report).iter("testcase"):
        for fault in (*case.iterfind("failure"), *case.iterfind("error")):
            why = (fault.get("message") or "").strip().partition("\n")[0]
            lines.append(f"{fault.tag:<8} {case.get('classname')}::{case.get('name')}  {why[:200]}")
    return lines


def _pip(*arguments: str, check: bool = True) -> "subprocess.CompletedProcess[str]":
    """Call the environment's pip; what it prints is shown where it fails."""
    command = [str(PYTHON), "-m", "pip", "--quiet", "--disable-pip-version-check", *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if check and done.returncode != 0:
        print(done.stdout + done.stderr, flush=True)
        done.check_returncode()
    return done


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
