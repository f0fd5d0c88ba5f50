"""Runs the benchmarks, prints tables, writes `benchmarks/results.json`; fails where a bound is not kept."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import docker

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks.attempt import attempt_overhead  # noqa: E402 - the project's root must be on the path first
from benchmarks.call import call_overhead  # noqa: E402
from benchmarks.dispatch import dispatch  # noqa: E402
from benchmarks.forge import forge_jobs  # noqa: E402
from benchmarks.held import held_jobs  # noqa: E402
from benchmarks.history import long_history  # noqa: E402
from benchmarks.measure import Figure, Measured, figure, machine, quoted, read, table, write  # noqa: E402
from benchmarks.money import money  # noqa: E402
from benchmarks.recovery import recovery  # noqa: E402
from benchmarks.runner import first_request  # noqa: E402
from benchmarks.webhook import webhooks  # noqa: E402
from benchmarks.workspace import dotpi_files, large_repository  # noqa: E402
from tests.support.program import PROGRAM  # noqa: E402

HELP_RUNS = 30
HELP_BOUND_MS = 150


def help_time() -> Figure:
    """Time of `pi-dispatch --help`, as a user waits for it."""
    samples = []
    for _ in range(HELP_RUNS):
        began = time.perf_counter()
        subprocess.run([PROGRAM, "--help"], check=True, capture_output=True)
        samples.append(time.perf_counter() - began)
    return figure("pi-dispatch --help", "process start to exit", samples, None, HELP_BOUND_MS)


def main() -> int:
    """Measure everything; the exit code."""
    # Told to end, it ends everything that it has started, as at Ctrl-C.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    client = docker.from_env(version="auto", timeout=60)
    measured: list[Measured] = [
        help_time(),
        *dispatch(),
        *money(),
        *webhooks(),
        *held_jobs(),
        first_request(client),
        call_overhead(client),
        *attempt_overhead(client),
        dotpi_files(),
        *large_repository(),
        *long_history(),
        *recovery(client),
        *forge_jobs(client),
    ]
    print(f"machine: {machine()}\n")
    print(table(measured))
    results, page = ROOT / "benchmarks" / "results.json", ROOT / "BENCHMARKS.md"
    write(results, f"Docker {client.version()['Version']}", measured)
    page.write_text(quoted(page.read_text(), *read(results)))
    client.close()
    return 0 if all(one.kept for one in measured) else 1


if __name__ == "__main__":
    sys.exit(main())
