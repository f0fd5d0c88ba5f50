"""Everything a change must pass, tier by tier, with its time; fails past the budget of all tiers together."""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
#: Seconds all tiers may take together.
BUDGET_S = 25 * 60
_QUEUE = "tests/e2e/queue"
_FORGE = "tests/e2e/forge"
_OUTAGES = [f"{_QUEUE}/test_{name}.py" for name in ("outages", "gates")]
#: Alone, because it holds a worker to the seconds that it takes, and those are the machine's.
_HELD = f"{_QUEUE}/test_held.py"
#: Run one after the other, each with all of it side by side: name -> what pytest is told. Unit tests compute while
#: the others wait, for engine, agent and outages. Those do not meet: the workers of the last two take no engine's own
#: lock.
TOGETHER: tuple[dict[str, list[str]], ...] = (
    {"unit": ["tests/unit"], "integration": ["tests/integration"]},
    {"held": [_HELD]},
    {
        "e2e": ["tests/e2e", f"--ignore={_QUEUE}", f"--ignore={_FORGE}"],
        "forge": [_FORGE],
        "queue": [_QUEUE, *(f"--ignore={path}" for path in (*_OUTAGES, _HELD))],
        "outages": _OUTAGES,
    },
)
#: Rooms whose every branch must be covered: what stands between a job and the machine, or its owner's money.
SHARP = ",".join(
    f"pidispatch/{module}.py"
    for module in (
        "box/spec",
        "box/environment",
        "box/user",
        "box/admission",
        "config/allowlist",
        "runs/classify",
        "runs/ladder",
        "forges/*",
        "forges/github/*",
        "gates/*",
        "jobs/*",
        "money/*",
        "receiver/*",
        "triggers/*",
    )
)
#: Least branch coverage, in percent, of everything.
LEAST = 95


def main() -> int:
    """Run lint and all tiers; the exit code."""
    shutil.rmtree(ROOT / ".coverage", ignore_errors=True)
    (ROOT / ".coverage").mkdir()
    times: dict[str, float] = {}
    began = time.monotonic()
    failed = [name for name, command in _commands().items() if not _timed(name, command, times)]
    for tiers in TOGETHER:
        failed += _together(tiers, times)
    if not _coverage():
        failed.append("coverage")
    total = time.monotonic() - began
    print("\ntier            seconds")
    for name, seconds in times.items():
        print(f"{name:<15} {seconds:7.1f}{'  FAILED' if name in failed else ''}")
    print(f"{'all':<15} {total:7.1f}  of {BUDGET_S}")
    if total > BUDGET_S:
        failed.append("budget")
        print(f"the tests took longer than {BUDGET_S} s")
    print("failed: " + ", ".join(failed) if failed else "everything passed")
    return 1 if failed else 0


def _commands() -> dict[str, list[str]]:
    python = sys.executable
    return {
        "lint": [python, "tools/lint.py"],
        "images": [python, "tests/image/assemble.py", "all"],
        "payloads": [python, "-m", "tests.payloads"],
    }


def _pytest(*what: str) -> list[str]:
    return [sys.executable, "-m", "coverage", "run", "-m", "pytest", *what, "-q"]


def _timed(name: str, command: list[str], times: dict[str, float]) -> bool:
    print(f"\n== {name}", flush=True)
    began = time.monotonic()
    done = subprocess.run(command, cwd=ROOT, check=False, env=_environment())
    times[name] = time.monotonic() - began
    return done.returncode == 0


def _environment() -> dict[str, str]:
    return os.environ | {"PYTHONDONTWRITEBYTECODE": "1"}


def _together(tiers: Mapping[str, Sequence[str]], times: dict[str, float]) -> list[str]:
    """Run tiers at the same time; the names of those that failed. Each is shown once it has ended."""
    began = time.monotonic()
    print(f"\n== {' and '.join(tiers)}{', side by side' if len(tiers) > 1 else ''}", flush=True)
    with ExitStack() as files:
        outputs = {name: files.enter_context(tempfile.TemporaryFile()) for name in tiers}
        running = {
            name: subprocess.Popen(
                _pytest(*what), cwd=ROOT, env=_environment(), stdout=outputs[name], stderr=subprocess.STDOUT
            )
            for name, what in tiers.items()
        }
        for name, process in running.items():
            process.wait()
            times[name] = time.monotonic() - began
            outputs[name].seek(0)
            print(f"\n== {name}\n{outputs[name].read().decode(errors='replace')}", flush=True)
    return [name for name, process in running.items() if process.returncode != 0]


def _coverage() -> bool:
    print("\n== coverage", flush=True)
    coverage = [sys.executable, "-m", "coverage"]
    subprocess.run([*coverage, "combine", "--quiet"], cwd=ROOT, check=False)
    everything = subprocess.run([*coverage, "report", f"--fail-under={LEAST}"], cwd=ROOT, check=False)
    sharp = subprocess.run(
        [*coverage, "report", f"--include={SHARP}", "--fail-under=100"], cwd=ROOT, check=False, capture_output=True
    )
    if sharp.returncode != 0:
        print("the sharp rooms are not covered in full:\n" + sharp.stdout.decode())
    return everything.returncode == 0 and sharp.returncode == 0


if __name__ == "__main__":
    sys.exit(main())
