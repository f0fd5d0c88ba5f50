"""BENCHMARKS.md quotes the figures of the last run, all of them within their bounds."""

from pathlib import Path

from benchmarks.measure import quoted, read

ROOT = Path(__file__).resolve().parents[3]

#: What `make bench` measures: a figure that is missing from the results has not been measured since it was added.
FIGURES = [
    "pi-dispatch --help",
    "first request",
    "container call",
    "attempt without git",
    "git of an attempt",
    "256 .pi files",
    "git, 50,000 files, nothing changed",
    "git, 50,000 files, one file changed",
]


def test_the_page_quotes_the_results() -> None:
    page = (ROOT / "BENCHMARKS.md").read_text()
    where, figures = read(ROOT / "benchmarks" / "results.json")

    assert page == quoted(page, where, figures)
    assert [one.name for one in figures if not one.kept] == []
    assert [one.name for one in figures] == FIGURES
