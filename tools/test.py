"""Everything a change must pass, tier by tier, with its time; fails past the budget of all tiers together."""

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
#: Seconds all tiers may take together.
BUDGET_S = 25 * 60
TIERS = ("unit", "integration", "e2e")
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
        "gates/*",
        "jobs/*",
    )
)
#: Least branch coverage, in percent, of everything.
LEAST = 95


def main() -> int:
    """Run lint and all tiers; the exit code."""
    shutil.rmtree(ROOT / ".coverage", ignore_errors=True)
    (ROOT / ".coverage").mkdir()
    times: dict[str, float] = {}
    failed = [name for name, command in _commands().items() if not _timed(name, command, times)]
    if not _coverage():
        failed.append("coverage")
    total = sum(times.values())
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
    commands = {"lint": [python, "tools/lint.py"], "images": [python, "tests/image/assemble.py", "all"]}
    for tier in TIERS:
        commands[tier] = [python, "-m", "coverage", "run", "-m", "pytest", f"tests/{tier}", "-q"]
    return commands


def _timed(name: str, command: list[str], times: dict[str, float]) -> bool:
    print(f"\n== {name}", flush=True)
    began = time.monotonic()
    done = subprocess.run(command, cwd=ROOT, check=False, env=os.environ | {"PYTHONDONTWRITEBYTECODE": "1"})
    times[name] = time.monotonic() - began
    return done.returncode == 0


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
