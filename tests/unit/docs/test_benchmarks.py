"""BENCHMARKS.md quotes the figures of the last run, all of them within their bounds."""

from pathlib import Path

from benchmarks.measure import quoted, read

ROOT = Path(__file__).resolve().parents[3]


def test_the_page_quotes_the_results() -> None:
    page = (ROOT / "BENCHMARKS.md").read_text()
    where, figures = read(ROOT / "benchmarks" / "results.json")

    assert page == quoted(page, where, figures)
    assert [one.name for one in figures if not one.kept] == []
    assert len(figures) == 6
