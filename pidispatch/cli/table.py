"""Tables for any width: cells that may be cut are, then rows take several lines, and an id is always whole."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final

from rich.console import Console
from rich.table import Table
from rich.text import Text

#: Wider than any table, so that nothing is cut where no person looks.
PIPE_COLUMNS: Final = 100_000
#: Characters that are left of a text which is cut, at least.
_LEAST: Final = 12
#: Characters between two columns, and where rows are stacked, for which room is scarce.
_GAP, _NARROW_GAP = 2, 1


def table_of(
    console: Console, header: Sequence[str], rows: Sequence[Sequence[Text]], cut: Collection[str] = ()
) -> Table:
    """`rows` under `header`, made for the width of `console`. Texts in columns of `cut` may lose their end.

    A console that is no terminal is made wide enough first.
    """
    if not console.is_terminal:
        console.width = PIPE_COLUMNS
    for lines in range(1, len(header) + 1):
        places, gap = _places(header, rows, cut, lines), _GAP if lines == 1 else _NARROW_GAP
        spare = console.width - sum(place.least for place in places) - gap * (len(places) - 1)
        if spare >= 0:
            break
    return _table(header, rows, places, gap, max(0, spare))


@dataclass(frozen=True)
class _Place:
    """Where some of the columns stand, one below the other."""

    columns: range
    #: Characters that it needs, and that it could use.
    least: int
    most: int


def _places(header: Sequence[str], rows: Sequence[Sequence[Text]], cut: Collection[str], lines: int) -> list[_Place]:
    """The first columns on the first line of a row, the next below them."""
    across = -(-len(header) // lines)
    widths = [max(len(name), *(row[at].cell_len for row in rows), 0) for at, name in enumerate(header)]
    places = []
    for first in range(across):
        columns = range(first, len(header), across)
        least = max(min(widths[one], _LEAST) if header[one] in cut else widths[one] for one in columns)
        places.append(_Place(columns, least, max(widths[one] for one in columns)))
    return places


def _table(
    header: Sequence[str], rows: Sequence[Sequence[Text]], places: Sequence[_Place], gap: int, spare: int
) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, gap, 0, 0))
    widths = []
    for place in places:
        more = min(spare, place.most - place.least)
        spare -= more
        widths.append(place.least + more)
        head = "\n".join(header[one] for one in place.columns)
        table.add_column(head, width=place.least + more, no_wrap=True, header_style="bold")
    for row in rows:
        cells = zip(places, widths, strict=True)
        table.add_row(*(_stacked([row[one] for one in place.columns], chars) for place, chars in cells))
    return table


def _stacked(cells: Sequence[Text], chars: int) -> Text:
    fit = [cell.copy() for cell in cells]
    for cell in fit:
        cell.truncate(chars, overflow="ellipsis")
    return Text("\n").join(fit)
