"""The page says what each reason means, and no more than there are."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
_TOKEN = re.compile(r"[\"`]((?:lookup|token)-[a-z-]+)[\"`]")


def test_every_reason_for_not_knowing_is_on_the_page() -> None:
    said = set(_TOKEN.findall((ROOT / "docs/how-to/github-receiver.md").read_text()))
    given = {
        token for path in (ROOT / "pidispatch/forges/github").glob("*.py") for token in _TOKEN.findall(path.read_text())
    }
    assert len(given) == 9
    assert given == said
