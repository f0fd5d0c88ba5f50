"""Asks the index. All answers of one `Reader` are of one moment."""

from collections.abc import Iterator, Set
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from sqlalchemy import ColumnElement, Connection, Select, false, func, null, select

from pidispatch.runs.index_file import faults, open_to_read
from pidispatch.runs.index_look import Wanted
from pidispatch.runs.index_rows import is_text
from pidispatch.runs.index_schema import attempts, files
from pidispatch.runs.records import microseconds

_LAST: Final = 0x10FFFF
#: Where halves of surrogate pairs begin, which are no text, and where text goes on.
_HALVES, _PAST_HALVES = 0xD800, 0xE000


@contextmanager
def reading(state_dir: Path, folder: Path) -> Iterator["Reader"]:
    """The index of the records in `folder`. Raises `IndexFault`, as do the methods of what it gives."""
    connection = open_to_read(state_dir, folder)
    try:
        yield Reader(connection)
    finally:
        connection.close()


class Reader:
    """What the index knows of files, and which of them it would list."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def sums(self) -> tuple[int, int]:
        """The `sums` of the names of all files that it knows."""
        with faults():
            count, total = self._connection.execute(select(func.count(), func.sum(files.c.crc))).one()
        return count, total or 0

    def known(self) -> dict[str, str]:
        """Every file it knows, with the stamp by which it was read."""
        with faults():
            return {row.file: row.stamp for row in self._connection.execute(select(files.c.file, files.c.stamp))}

    def unheld(self) -> set[str]:
        """The files that it knows and does not describe."""
        return set(self._all(select(files.c.file).where(~files.c.holds)))

    def matching(self, wanted: Wanted) -> Iterator[str]:
        """The files of the records that are wanted, newest first."""
        query = select(attempts.c.file).where(*_conditions(wanted))
        with faults():
            found = self._connection.execute(query.order_by(attempts.c.at_us.desc(), attempts.c.file))
        while True:
            with faults():
                row = found.fetchone()
            if row is None:
                return
            yield row[0]

    def how_many(self, wanted: Wanted) -> int:
        """How many they are."""
        return int(self._all(select(func.count()).select_from(attempts).where(*_conditions(wanted)))[0])

    def reasons(self, left_out: Set[str]) -> set[str]:
        """Every reason of a last attempt in a file that is not left out."""
        query = select(attempts.c.reason, attempts.c.file if left_out else null())
        with faults():
            found = self._connection.execute(
                query.where(attempts.c.last, attempts.c.reason.is_not(None)).distinct()
            ).all()
        return {reason for reason, file in found if file not in left_out}

    def _all(self, query: Select[Any]) -> list[Any]:
        with faults():
            return [*self._connection.execute(query).scalars()]


def _conditions(wanted: Wanted) -> list[ColumnElement[bool]]:
    if not all(is_text(asked) for asked in (wanted.outcome, wanted.reason, wanted.beginning)):
        # No row holds such.
        return [false()]
    conditions: list[ColumnElement[bool]] = [attempts.c.last]
    if wanted.beginning is not None:
        # Few runs are meant: better found by their ids and then ordered than met in their order.
        conditions = [func.coalesce(attempts.c.last, false()), attempts.c.job_id >= wanted.beginning]
        conditions += [attempts.c.job_id < after] if (after := _after(wanted.beginning)) else []
    if wanted.floor is not None:
        conditions.append(attempts.c.at_us >= microseconds(wanted.floor))
    if wanted.outcome is not None:
        conditions.append(attempts.c.outcome == wanted.outcome)
    if wanted.reason is not None:
        conditions.append(attempts.c.reason == wanted.reason)
    return conditions


def _after(beginning: str) -> str | None:
    """The first text behind all that begin so; `None` where there is none."""
    head = beginning.rstrip(chr(_LAST))
    if not head:
        return None
    following = ord(head[-1]) + 1
    return head[:-1] + chr(_PAST_HALVES if following == _HALVES else following)
