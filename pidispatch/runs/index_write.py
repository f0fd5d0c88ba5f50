"""Writes the index: whatever is asked, it reads files and puts what they say, so that no order of writers leaves a lie.

What a file says is read before the lock is taken and is valid where its stamp is still the same under the lock. Whoever
writes a file after that tells the index after that, too.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeVar

from sqlalchemy import ClauseElement, Connection, bindparam, delete, insert, select
from sqlalchemy.dialects import sqlite

from pidispatch.runs.index import IndexFault, Rebuilt, index_path, marked, unmark
from pidispatch.runs.index_file import REPLACED, Identity, faults, identity, open_to_write, replace
from pidispatch.runs.index_rows import Row, crc, is_text, rows_of
from pidispatch.runs.index_schema import attempts, files, usage
from pidispatch.runs.recordfile import Unreadable
from pidispatch.runs.records import RecordStore
from pidispatch.values.record import RunRecord

T = TypeVar("T")


def _sql(statement: ClauseElement) -> str:
    """The statement as SQLite takes it, its values by name. Made once: to make it takes longer than to run it."""
    return str(statement.compile(dialect=sqlite.dialect(paramstyle="named")))


#: Files that are put under one lock: few, so that others who write need not wait.
_BATCH: Final = 200
_DELETE: Final = _sql(delete(files).where(files.c.file == bindparam("name")))
#: Takes the rows of before along, as `_DELETE` does: they refer to that of the file.
_REPLACE: Final = _sql(insert(files).prefix_with("OR REPLACE"))
_ATTEMPTS: Final = _sql(insert(attempts))
_USAGE: Final = _sql(insert(usage))


@dataclass(frozen=True)
class _Seen:
    """What was read of one file; without a stamp it is gone."""

    name: str
    stamp: str | None = None
    held: RunRecord | Unreadable | None = None
    #: Rows of `attempts` and of `usage`; `None` where it holds no record, or none that a table can hold.
    rows: tuple[list[Row], list[Row]] | None = None

    @property
    def file_row(self) -> Row:
        """The row of `files`."""
        return {"file": self.name, "crc": crc(self.name), "stamp": self.stamp, "holds": self.rows is not None}


class Writer:
    """One connection to the index of a store's records. Its methods raise `IndexFault`; not for several threads."""

    def __init__(self, state_dir: Path, store: RecordStore) -> None:
        self._state_dir = state_dir
        self._store = store
        self._connection: Connection | None = None
        self._opened: Identity | None = None

    def refresh(self, names: Collection[str]) -> None:
        """Put what the files of these names say."""
        self._mending(lambda: self._put_each([*names]))

    def clear_up(self, most: int) -> None:
        """Read the files that are not as the index knows them, but no more than `most`; the others it forgets."""
        self._mending(lambda: self._clear_up(most))

    def rebuild(self, progress: Callable[[int, int], None]) -> Rebuilt:
        """Read every file, into an empty index where that of another folder lies there."""
        try:
            with faults():
                self._connected()
        except IndexFault as fault:
            if fault.cause != "other-folder":
                raise
            replace(self._state_dir, self._store.folder, identity(index_path(self._state_dir)))
        return self._mending(lambda: self._rebuild(progress))

    def close(self) -> None:
        """Let go of the file."""
        if self._connection is not None:
            self._connection.close()
        self._connection = None

    def _mending(self, act: Callable[[], T]) -> T:
        """`act`, and once more with an empty index where that of before turns out to be broken."""
        try:
            with faults():
                return act()
        except IndexFault as fault:
            if fault.cause not in REPLACED:
                raise
        self.close()
        replace(self._state_dir, self._store.folder, self._opened)
        with faults():
            return act()

    def _connected(self) -> Connection:
        # It may have been removed, or replaced by one who found it broken.
        if self._connection is not None and identity(index_path(self._state_dir)) != self._opened:
            self.close()
        if self._connection is None:
            self._connection = open_to_write(self._state_dir, self._store.folder)
            self._opened = identity(index_path(self._state_dir))
        return self._connection

    def _clear_up(self, most: int) -> None:
        healed = marked(self._store.folder)
        there, known = set(self._store.names()), self._known()
        differing = sorted(name for name in there if self._store.stamp(name) != known.get(name))
        self._put_each([*(known.keys() - there), *differing[:most]])
        self._forget([name for name in differing[most:] if name in known])
        unmark(self._store.folder, healed)

    def _rebuild(self, progress: Callable[[int, int], None]) -> Rebuilt:
        healed = marked(self._store.folder)
        there = sorted(self._store.names())
        self._put_each([*(self._known().keys() - set(there))])
        records, unreadable = 0, list[Unreadable]()
        for first in range(0, len(there), _BATCH):
            batch = there[first : first + _BATCH]
            for seen in self._put(batch):
                records += isinstance(seen.held, RunRecord)
                unreadable += [seen.held] if isinstance(seen.held, Unreadable) else []
            progress(first + len(batch), len(there))
        unmark(self._store.folder, healed)
        return Rebuilt(records, tuple(unreadable))

    def _known(self) -> dict[str, str]:
        connection = self._connected()
        with connection.begin():
            return {row.file: row.stamp for row in connection.execute(select(files.c.file, files.c.stamp))}

    def _forget(self, names: Sequence[str]) -> None:
        connection = self._connected()
        with connection.begin():
            for first in range(0, len(names), _BATCH):
                _each(connection, _DELETE, [{"name": name} for name in names[first : first + _BATCH]])

    def _put_each(self, names: Sequence[str]) -> None:
        for first in range(0, len(names), _BATCH):
            self._put(names[first : first + _BATCH])

    def _put(self, names: Sequence[str]) -> list[_Seen]:
        """Put what these files say, under one lock; what that was."""
        connection = self._connected()
        looked = [self._look(name) for name in names if is_text(name)]
        with connection.begin():
            seen = [one if self._store.stamp(one.name) == one.stamp else self._look(one.name) for one in looked]
            if seen:
                _replace_rows(connection, seen)
        return seen

    def _look(self, name: str) -> _Seen:
        # The stamp first: what is put in place meanwhile leaves one that is outdated, never one that is wrong.
        stamp = self._store.stamp(name)
        held = None if stamp is None else self._store.read(name)
        if held is None:
            return _Seen(name)
        try:
            return _Seen(name, stamp, held, rows_of(name, held) if isinstance(held, RunRecord) else None)
        except ValueError:
            return _Seen(name, stamp, held)


def _replace_rows(connection: Connection, seen: Sequence[_Seen]) -> None:
    rows = [one.rows for one in seen if one.rows is not None]
    for statement, values in (
        (_DELETE, [{"name": one.name} for one in seen if one.stamp is None]),
        (_REPLACE, [one.file_row for one in seen if one.stamp is not None]),
        (_ATTEMPTS, [row for tried, _ in rows for row in tried]),
        (_USAGE, [row for _, used in rows for row in used]),
    ):
        if values:
            _each(connection, statement, values)


def _each(connection: Connection, statement: str, values: Sequence[Mapping[str, object]]) -> None:
    driver: Any = connection.connection.driver_connection
    driver.executemany(statement, values)
