"""Format check, lint, types and layers; says which of them failed, after running them all."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BIN = Path(sys.executable).parent
CODE = ["pidispatch", "tests", "tools", "benchmarks"]
RUNNER = ROOT / "pidispatch" / "image" / "job" / "runner"
#: Where a check runs that does not run at the top.
FOLDERS = {"mypy (runner)": RUNNER, "mypy (egress)": ROOT / "pidispatch" / "image" / "egress"}
CHECKS: dict[str, list[str]] = {
    "ruff format": [str(BIN / "ruff"), "format", "--check", "--quiet", *CODE],
    "ruff": [str(BIN / "ruff"), "check", "--quiet", "--output-format", "concise", *CODE],
    "mypy": [str(BIN / "mypy"), "--no-error-summary", *CODE],
    # The runner is a package of its own, found from its own folder as in the image.
    "mypy (runner)": [
        str(BIN / "mypy"),
        "--no-error-summary",
        "--strict",
        "--cache-dir",
        str(ROOT / ".mypy_cache" / "runner"),
        ".",
    ],
    # So is the program of the egress proxy, which finds the grammar beside itself there.
    "mypy (egress)": [
        "env",
        f"MYPYPATH={ROOT / 'pidispatch' / 'config'}",
        str(BIN / "mypy"),
        "--no-error-summary",
        "--strict",
        "--cache-dir",
        str(ROOT / ".mypy_cache" / "egress"),
        "proxy.py",
    ],
    "import-linter": [str(BIN / "lint-imports"), "--no-logo"],
}


def lint() -> int:
    """Run every check; the number of those that failed."""
    failed = []
    for name, command in CHECKS.items():
        done = subprocess.run(command, cwd=FOLDERS.get(name, ROOT), capture_output=True, text=True, check=False)
        print(f"{'ok' if done.returncode == 0 else 'FAILED':<7} {name}", flush=True)
        if done.returncode != 0:
            failed.append(name)
            print(done.stdout + done.stderr, flush=True)
    return len(failed)


if __name__ == "__main__":
    sys.exit(1 if lint() else 0)
