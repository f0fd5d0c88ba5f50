"""A folder of records with its index, looked at without a line of what keeps it."""

import sqlite3
import zlib
from contextlib import closing
from pathlib import Path
from typing import Any

from pidispatch.runs.index import RecordIndex, index_path
from pidispatch.runs.index_rows import rows_of
from pidispatch.runs.records import RecordStore
from pidispatch.values.record import RunRecord

Rows = dict[str, list[dict[str, Any]]]


class Indexed:
    """Records that are kept with an index, as a worker keeps them."""

    def __init__(self, folder: Path) -> None:
        self.state = folder / "state"
        self.index = RecordIndex(self.state, folder / "logs")
        self.store = RecordStore(folder / "logs", self.index)
        self.store.prepare()
        #: The same folder for one who does not know of the index.
        self.unheard = RecordStore(folder / "logs")

    @property
    def path(self) -> Path:
        """The index."""
        return index_path(self.state)

    def rows(self) -> Rows:
        """All that the index says of records, in one order."""
        return rows_in(self.path)

    def said(self) -> Rows:
        """All that the files say, in the same order."""
        rows: Rows = {"files": [], "attempts": [], "usage": []}
        for name in sorted(self.store.names(), key=str.encode):
            held = self.store.read(name)
            holds = isinstance(held, RunRecord)
            row = {"file": name, "crc": zlib.crc32(name.encode()), "stamp": self.store.stamp(name), "holds": holds}
            rows["files"].append(row)
            attempts, usage = rows_of(name, held) if isinstance(held, RunRecord) else ([], [])
            rows["attempts"] += attempts
            rows["usage"] += usage
        return rows

    def ask(self, query: str) -> Any:
        """The one value of a query."""
        return asked(self.path, query)[0][0]


def asked(path: Path, query: str) -> list[Any]:
    """The rows of a query."""
    with closing(sqlite3.connect(path)) as connection:
        connection.row_factory = sqlite3.Row
        return connection.execute(query).fetchall()


def rows_in(path: Path) -> Rows:
    """The tables of an index, by the names of their columns."""
    keys = {"files": "file", "attempts": "file, place", "usage": "file, place, number"}
    return {
        table: [dict(row) for row in asked(path, f"SELECT * FROM {table} ORDER BY {key}")]
        for table, key in keys.items()
    }
