"""BENCHMARKS.md quotes the figures of the last run, and says which bounds it did not keep."""

from pathlib import Path

import pytest

from benchmarks.measure import Measured, Quantity, figure, quoted, read, table, write

ROOT = Path(__file__).resolve().parents[3]

#: What `make bench` measures: a figure that is missing from the results has not been measured since it was added.
FIGURES = [
    "pi-dispatch --help",
    "submit to acquire",
    "pi-dispatch status",
    "refusal at the cap, alone",
    "git of a refusal",
    "gates",
    "webhook at half load",
    "pi-dispatch explain-event",
    "first request",
    "container call",
    "attempt without git",
    "git of an attempt",
    "256 .pi files",
    "git, 50,000 files, nothing changed",
    "git, 50,000 files, one file changed",
    "pi-dispatch runs, 100,000 records",
    "runs --reason, 100,000 records",
    "runs --reindex, 100,000 records",
    "index of one record",
    "small: webhook to container",
    "small: receive",
    "small: queue",
    "small: checks",
    "small: look-ups",
    "small: clone",
    "small: host git",
    "small: container",
    "200 MB: webhook to container",
    "200 MB: receive",
    "200 MB: queue",
    "200 MB: checks",
    "200 MB: look-ups",
    "200 MB: clone",
    "200 MB: host git",
    "200 MB: container",
    "submits",
    "early refusals",
    "jobs only written down",
    "refusals at the cap",
    "round trips of a pickup",
    "reservations",
    "webhooks",
    "webhook at half load, p99",
    "idle worker",
    "one of 10,000 held jobs, worker",
    "one of 10,000 held jobs, server",
    "fresh job beside them",
    "stop with them",
    "recovery of a running job",
    "recovery of a held job",
]
#: Bounds that the last run did not keep; the page says why.
OPEN = {"early refusals", "refusals at the cap"}


def test_the_page_quotes_the_results() -> None:
    page = (ROOT / "BENCHMARKS.md").read_text()
    where, figures = read(ROOT / "benchmarks" / "results.json")

    assert page == quoted(page, where, figures)
    assert {one.name for one in figures if not one.kept} == OPEN
    assert [one.name for one in figures] == FIGURES
    assert all(f"* **{name}**: " in page for name in OPEN)


def test_a_page_says_what_was_measured(tmp_path: Path) -> None:
    measured: list[Measured] = [
        figure("a time", "w", [0.01, 0.01], [0.004, 0.004], 7),
        figure("a time without a baseline", "w", [0.01, 0.01], None, None),
        Quantity("a rate", "w", "1/s", 3, 204.4, baseline=510, least_ratio=0.4),
        Quantity("a size", "w", "MB", 1, 87.44, bound=120),
    ]
    write(tmp_path / "results.json", "an engine", measured)
    where, found = read(tmp_path / "results.json")

    assert where.endswith("an engine")
    assert found == measured
    assert table(found).splitlines() == [
        "| figure | samples | p50 ms | p99 ms | baseline p50 ms | baseline p99 ms | ratio | judged ms | bound ms | |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |",
        "| a time | 2 | 10.0 | 10.0 | 4.0 | 4.0 | 2.500 | 6.0 | 7 | ok |",
        "| a time without a baseline | 2 | 10.0 | 10.0 | - | - | - | 10.0 | - | ok |",
        "",
        "| figure | samples | value | unit | baseline | ratio | bound | |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
        "| a rate | 3 | 204 | 1/s | 510 | 0.401 | ratio 0.4 | ok |",
        "| a size | 1 | 87.4 | MB | - | - | 120 | ok |",
    ]


@pytest.mark.parametrize(
    "over",
    [
        figure("a time", "w", [0.01, 0.01], None, 9),
        figure("beside a baseline", "w", [0.01, 0.01], [0.005, 0.005], 5, bound_ratio=1.9),
        Quantity("a rate", "w", "1/s", 1, 203.0, baseline=510, least_ratio=0.4),
        Quantity("a size", "w", "MB", 1, 120.1, bound=120),
    ],
    ids=lambda one: one.name,
)
def test_what_is_out_of_its_bounds_is_not_kept(over: Measured) -> None:
    assert not over.kept
    assert table([over]).splitlines()[-1].endswith("| OVER |")
