"""The kill matrix again and again, to find what fails once in a while; ends with the first failure."""

import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MATRIX = "tests/e2e/queue/test_kill_matrix.py"
TIMES = 20


def main() -> int:
    """Play it so many times; the exit code."""
    began = time.monotonic()
    for number in range(1, TIMES + 1):
        print(f"\n== kill matrix {number} of {TIMES}, after {time.monotonic() - began:.0f} s", flush=True)
        if subprocess.run([sys.executable, "-m", "pytest", MATRIX, "-q"], cwd=ROOT, check=False).returncode != 0:
            print(f"the kill matrix failed in its run {number} of {TIMES}")
            return 1
    print(f"\nthe kill matrix was played {TIMES} times without a failure, in {time.monotonic() - began:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
