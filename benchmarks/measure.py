"""Figures and their bounds: percentiles, a table, a file."""

import json
import os
import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path

#: Between these marks of BENCHMARKS.md stand the figures of the last run.
BEGIN, END = "<!-- figures -->", "<!-- end of figures -->"


@dataclass(frozen=True)
class Figure:
    """One measured figure in milliseconds, with its baseline from the same run and its bound."""

    name: str
    what: str
    samples: int
    p50_ms: float
    p99_ms: float
    #: Median of the baseline in the same run; `None` where there is none.
    baseline_p50_ms: float | None
    #: What is compared with `bound_ms`.
    judged_ms: float
    #: `None` where the figure is reported only.
    bound_ms: float | None
    #: Most of our median by the baseline's; `None` where only the milliseconds are bounded.
    bound_ratio: float | None = None

    @property
    def kept(self) -> bool:
        """Whether the figure is within its bounds."""
        within = self.bound_ms is None or self.judged_ms <= self.bound_ms
        return within and (self.bound_ratio is None or self.ratio is None or self.ratio <= self.bound_ratio)

    @property
    def ratio(self) -> float | None:
        """Our median by the baseline's."""
        return self.p50_ms / self.baseline_p50_ms if self.baseline_p50_ms else None


def figure(
    name: str,
    what: str,
    ours_s: Sequence[float],
    raw_s: Sequence[float] | None,
    bound_ms: float | None,
    bound_ratio: float | None = None,
) -> Figure:
    """A figure from samples in seconds: judged by the difference of medians where there is a baseline."""
    ours = percentile(ours_s, 50) * 1000
    raw = percentile(raw_s, 50) * 1000 if raw_s else None
    return Figure(
        name=name,
        what=what,
        samples=len(ours_s),
        p50_ms=ours,
        p99_ms=percentile(ours_s, 99) * 1000,
        baseline_p50_ms=raw,
        judged_ms=ours - raw if raw is not None else ours,
        bound_ms=bound_ms,
        bound_ratio=bound_ratio,
    )


def percentile(samples: Sequence[float], percent: int) -> float:
    """The percentile by linear interpolation of at least two samples."""
    return statistics.quantiles(samples, n=100, method="inclusive")[percent - 1]


def table(figures: Sequence[Figure]) -> str:
    """The figures as a Markdown table, which BENCHMARKS.md quotes."""
    head = "| figure | samples | p50 ms | p99 ms | baseline p50 ms | ratio | judged ms | bound ms | |\n"
    rule = "| --- | --- | --- | --- | --- | --- | --- | --- | --- |\n"
    return head + rule + "".join(_row(one) for one in figures)


def _row(one: Figure) -> str:
    baseline = "-" if one.baseline_p50_ms is None else f"{one.baseline_p50_ms:.1f}"
    ratio = "-" if one.ratio is None else f"{one.ratio:.3f}"
    bound = "-" if one.bound_ms is None else f"{one.bound_ms:.0f}"
    return (
        f"| {one.name} | {one.samples} | {one.p50_ms:.1f} | {one.p99_ms:.1f} | {baseline} | {ratio} "
        f"| {one.judged_ms:.1f} | {bound} | {'ok' if one.kept else 'OVER'} |\n"
    )


def machine() -> dict[str, object]:
    """The size of this machine."""
    pages, page = os.sysconf("SC_PHYS_PAGES"), os.sysconf("SC_PAGE_SIZE")
    return {"cores": os.cpu_count(), "memoryGiB": round(pages * page / 2**30, 1)}


def write(path: Path, engine: str, figures: Sequence[Figure]) -> None:
    """Write the results as JSON."""
    rows = [asdict(one) | {"kept": one.kept, "ratio": one.ratio} for one in figures]
    document = {"machine": machine(), "engine": engine, "figures": rows}
    path.write_text(json.dumps(document, indent=2) + "\n")


def read(path: Path) -> tuple[str, list[Figure]]:
    """What `write` wrote: a sentence about machine and engine, and the figures."""
    document = json.loads(path.read_text())
    size, names = document["machine"], {field.name for field in fields(Figure)}
    figures = [Figure(**{name: row[name] for name in names & row.keys()}) for row in document["figures"]]
    return f"{size['cores']} cores, {size['memoryGiB']} GiB of memory, {document['engine']}", figures


def quoted(page: str, where: str, figures: Sequence[Figure]) -> str:
    """The text of a page with the figures between its two marks."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{where}.\n\n{table(figures)}\n{END}{after}"
