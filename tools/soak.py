"""The long fault run: two workers on two engines, one server, thousands of jobs, and every 20 s something goes wrong.

The queue's clock runs ten times as fast (`tests/soak/limits.py`). What engines and neighbours saw is counted, not what
the workers say. Exit code 0: nothing was lost, nothing was paid for twice, nothing was left, nothing grew.

Starts and ends its engines and its server itself, which needs root on Debian (tests/engine/up).
"""

import argparse
import json
import secrets
import signal
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests.soak.conduct import Conductor  # noqa: E402 - the project's root must be on the path first
from tests.soak.place import Place  # noqa: E402
from tests.soak.plan import Plan, make_plan  # noqa: E402
from tests.soak.report import Findings  # noqa: E402
from tests.soak.watch import look  # noqa: E402

MINUTES, JOBS = 20.0, 2000
FIGURES = ROOT / "benchmarks" / "soak.json"
#: Jobs whose story is told, where several broke a promise.
_STORIES = 10


def main() -> int:
    """Play it and judge it; the exit code."""
    told = _arguments()
    plan = make_plan(told.seed, told.minutes * 60, told.jobs, calm=told.calm)
    # So that everything is ended, also when this is told to end.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    signal.signal(signal.SIGINT, signal.default_int_handler)
    print(f"seed {plan.seed}: {len(plan.jobs)} jobs and {len(plan.faults)} faults in {plan.seconds:.0f} s", flush=True)
    with Place() as place:
        print(f"set up in {place.folder}", flush=True)
        try:
            findings = _play(place, plan)
        except BaseException:
            place.keep()
            print(f"broken off; the workers' logs and the records stay in {place.folder}", flush=True)
            raise
        print(_table(findings), flush=True)
        told.out.write_text(json.dumps(findings.figures(), indent=2) + "\n")
        if not findings.verdict.violations:
            print(f"\nevery promise was kept; the figures are in {told.out}")
            return 0
        place.keep()
        _tell(findings)
        print(f"\nrepeat it with: --seed {plan.seed}; the workers' logs and the records stay in {place.folder}")
    return 1


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=MINUTES, help=f"time with jobs and faults ({MINUTES:g})")
    parser.add_argument("--jobs", type=int, help="jobs in that time (100 a minute)")
    parser.add_argument("--seed", type=int, help="what all that is random is drawn from (a random one)")
    parser.add_argument("--calm", action="store_true", help="without faults, to see what belongs to them")
    parser.add_argument("--out", type=Path, default=FIGURES, help="file for the figures (benchmarks/soak.json)")
    told = parser.parse_args()
    told.jobs = round(JOBS / MINUTES * told.minutes) if told.jobs is None else told.jobs
    told.seed = secrets.randbelow(1_000_000) if told.seed is None else told.seed
    return told


def _play(place: Place, plan: Plan) -> Findings:
    conductor = Conductor(place, plan, lambda line: print(line, flush=True))
    conductor.play()
    for worker in place.workers:
        worker.end()
    conductor.course.samples.append(look(place))
    for engine in place.engines:
        engine.starts.await_last()
    return Findings(place, plan, conductor)


def _table(findings: Findings) -> str:
    lines = [
        f"{name.replace('_', ' '):<24} {', '.join(f'{key} {one}' for key, one in value.items())}"
        if isinstance(value, dict)
        else f"{name.replace('_', ' '):<24} {value}"
        for name, value in findings.figures().items()
    ]
    return "\n" + "\n".join(lines)


def _tell(findings: Findings) -> None:
    """Every violation, and the story of the jobs that they are about."""
    print()
    for one in findings.verdict.violations:
        print(f"VIOLATION ({one.rule}) {one.job_id or ''} {one.what}")
    jobs = list(dict.fromkeys(one.job_id for one in findings.verdict.violations if one.job_id))
    for job_id in jobs[:_STORIES]:
        print(f"\n{findings.story(job_id)}")


if __name__ == "__main__":
    sys.exit(main())
