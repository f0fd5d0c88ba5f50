"""Makes the runner importable: it is no part of the installed package, it ships inside the image."""

import sys
from pathlib import Path

RUNNER = Path(__file__).resolve().parents[3] / "pidispatch/image/job/runner"

if str(RUNNER) not in sys.path:
    sys.path.insert(0, str(RUNNER))
