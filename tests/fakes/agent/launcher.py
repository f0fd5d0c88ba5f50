"""Starts the real runner with another layout: ``python3 launcher.py LAYOUT``, a JSON object of Layout's fields.

Production code reads its layout from nowhere, so a test has to build one in a process of its own.
"""

import json
import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "pidispatch/image/job/runner"))

from pirunner.layout import Layout  # noqa: E402  (the path above makes it importable)
from pirunner.main import main  # noqa: E402


def layout(fields: dict[str, object]) -> Layout:
    """Paths are given as strings, the command as a list, seconds as numbers."""
    values = {
        name: Path(value) if isinstance(value, str) else tuple(value) if isinstance(value, list) else value
        for name, value in fields.items()
    }
    return Layout(**values)  # type: ignore[arg-type]


if __name__ == "__main__":
    given = json.loads(sys.argv[1])
    sys.exit(main(["runner", *given.pop("arguments", [])], os.environ, layout(given)))
