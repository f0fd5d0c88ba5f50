"""Figures and their bounds: percentiles, a table, a file."""

import json
import os
import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Final

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
    #: Like `baseline_p50_ms`.
    baseline_p99_ms: float | None = None

    @property
    def kept(self) -> bool:
        """Whether the figure is within its bounds."""
        within = self.bound_ms is None or self.judged_ms <= self.bound_ms
        return within and (self.bound_ratio is None or self.ratio is None or self.ratio <= self.bound_ratio)

    @property
    def ratio(self) -> float | None:
        """Our median by the baseline's."""
        return self.p50_ms / self.baseline_p50_ms if self.baseline_p50_ms else None


@dataclass(frozen=True)
class Quantity:
    """One measured figure that is no time of many samples: a rate, a size, how long something took once."""

    name: str
    what: str
    unit: str
    #: How many measurements the value is the median of.
    samples: int
    value: float
    #: The same of the baseline in the same run.
    baseline: float | None = None
    #: Most that the value may be.
    bound: float | None = None
    #: Least of the value by the baseline.
    least_ratio: float | None = None

    @property
    def kept(self) -> bool:
        """Whether the value is within its bounds."""
        within = self.bound is None or self.value <= self.bound
        return within and (self.least_ratio is None or self.ratio is None or self.ratio >= self.least_ratio)

    @property
    def ratio(self) -> float | None:
        """The value by the baseline's."""
        return self.value / self.baseline if self.baseline else None


#: What a run measures.
Measured = Figure | Quantity


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
        baseline_p99_ms=percentile(raw_s, 99) * 1000 if raw_s else None,
    )


def percentile(samples: Sequence[float], percent: int) -> float:
    """The percentile by linear interpolation of at least two samples."""
    return statistics.quantiles(samples, n=100, method="inclusive")[percent - 1]


def table(measured: Sequence[Measured]) -> str:
    """What was measured as Markdown tables, which BENCHMARKS.md quotes: times first, then everything else."""
    times, rest = _parted(measured)
    tables = [_lines(_TIMES, [_time(one) for one in times]), _lines(_QUANTITIES, [_quantity(one) for one in rest])]
    return "\n".join(one for one, any_of in zip(tables, (times, rest), strict=True) if any_of)


_TIMES: Final = (
    *("figure", "samples", "p50 ms", "p99 ms", "baseline p50 ms", "baseline p99 ms", "ratio", "judged ms", "bound ms"),
    "",
)
_QUANTITIES: Final = ("figure", "samples", "value", "unit", "baseline", "ratio", "bound", "")


def _lines(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(line)} |".replace("|  |", "| |") + "\n" for line in lines)


def _parted(measured: Sequence[Measured]) -> tuple[list[Figure], list[Quantity]]:
    times = [one for one in measured if isinstance(one, Figure)]
    return times, [one for one in measured if isinstance(one, Quantity)]


def _time(one: Figure) -> list[str]:
    baseline = (_shown(one.baseline_p50_ms, 1), _shown(one.baseline_p99_ms, 1), _shown(one.ratio, 3))
    judged = (f"{one.judged_ms:.1f}", _shown(one.bound_ms, 0), _verdict(one))
    return [one.name, str(one.samples), f"{one.p50_ms:.1f}", f"{one.p99_ms:.1f}", *baseline, *judged]


def _quantity(one: Quantity) -> list[str]:
    bound = _shown(one.bound, 0) if one.least_ratio is None else f"ratio {one.least_ratio:g}"
    digits = 0 if one.value >= 100 else 1
    value = (f"{one.value:.{digits}f}", one.unit, _shown(one.baseline, digits), _shown(one.ratio, 3))
    return [one.name, str(one.samples), *value, bound, _verdict(one)]


def _shown(value: float | None, digits: int) -> str:
    return "-" if value is None else f"{value:.{digits}f}"


def _verdict(one: Measured) -> str:
    return "ok" if one.kept else "OVER"


def machine() -> dict[str, object]:
    """The size of this machine."""
    pages, page = os.sysconf("SC_PHYS_PAGES"), os.sysconf("SC_PAGE_SIZE")
    return {"cores": os.cpu_count(), "memoryGiB": round(pages * page / 2**30, 1)}


def write(path: Path, engine: str, measured: Sequence[Measured]) -> None:
    """Write the results as JSON."""
    figures, quantities = (
        [asdict(one) | {"kept": one.kept, "ratio": one.ratio} for one in part] for part in _parted(measured)
    )
    document = {"machine": machine(), "engine": engine, "figures": figures, "quantities": quantities}
    path.write_text(json.dumps(document, indent=2) + "\n")


def read(path: Path) -> tuple[str, list[Measured]]:
    """What `write` wrote: a sentence about machine and engine, and what was measured, times first."""
    document = json.loads(path.read_text())
    size = document["machine"]
    measured: list[Measured] = [Figure(**_known(Figure, row)) for row in document["figures"]]
    measured += [Quantity(**_known(Quantity, row)) for row in document.get("quantities", [])]
    return f"{size['cores']} cores, {size['memoryGiB']} GiB of memory, {document['engine']}", measured


def _known(kind: type[Measured], row: dict[str, Any]) -> dict[str, Any]:
    names = {field.name for field in fields(kind)}
    return {name: value for name, value in row.items() if name in names}


def quoted(page: str, where: str, measured: Sequence[Measured]) -> str:
    """The text of a page with what was measured between its two marks."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{where}.\n\n{table(measured)}\n{END}{after}"
