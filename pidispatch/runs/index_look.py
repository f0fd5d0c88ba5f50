"""Which runs there were: chosen by the index, read from their files.

What the index does not describe is read as well: files it does not know, files that hold nothing it could know, and,
where a writer has left word that it could not tell the index, files that are not as it knows them.
"""

import gc
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pidispatch.runs.index import IndexFault, index_path, marked
from pidispatch.runs.index_rows import sums
from pidispatch.runs.recordfile import Unreadable
from pidispatch.runs.records import Found, RecordStore, newest_first
from pidispatch.values.record import RunRecord

if TYPE_CHECKING:
    from pidispatch.runs.index_read import Reader

#: Files that are read one by one without a word: it takes no longer than the rest of the program.
UNTOLD_FILES: Final = 500


@dataclass(frozen=True)
class Wanted:
    """Which runs are asked for; `None` asks for nothing."""

    #: Ended at this instant or later; without an end, begun.
    floor: datetime | None = None
    outcome: str | None = None
    reason: str | None = None
    #: How the job's id begins.
    beginning: str | None = None

    def admits(self, record: RunRecord) -> bool:
        """Whether a record is one of them."""
        ended = record.ended_at or record.started_at
        return (
            (self.outcome is None or record.outcome == self.outcome)
            and (self.reason is None or record.reason == self.reason)
            and (self.beginning is None or record.job_id.startswith(self.beginning))
            and (self.floor is None or (ended is not None and ended >= self.floor))
        )


@dataclass(frozen=True)
class Listing:
    """What was found."""

    #: Newest end first, those without an end last; no more than were asked for.
    records: tuple[RunRecord, ...]
    #: All that were wanted.
    total: int
    #: Files that hold no record, as far as they were read.
    unreadable: tuple[Unreadable, ...]
    #: Whether there is any record.
    any: bool
    #: Where none was wanted: every reason that is on record.
    reasons: frozenset[str] = frozenset()
    #: What keeps the index from being of use, in words for a person.
    note: str | None = None


def look(state_dir: Path, store: RecordStore, wanted: Wanted, limit: int | None = None) -> Listing:
    """The runs that are wanted, at most `limit`. Raises `InfraError` where the records cannot be listed."""
    names = store.names()
    if not index_path(state_dir).exists():
        return _by_files(store, names, wanted, limit, _slow(len(names)))
    try:
        with _reader(state_dir, store.folder) as index:
            return _by_index(index, store, names, wanted, limit)
    except IndexFault as fault:
        note = f"the index of the runs {fault.meaning} ({index_path(state_dir)}), so every record was read. "
        return _by_files(store, names, wanted, limit, note + _remedy(fault))


def _reader(state_dir: Path, folder: Path) -> "AbstractContextManager[Reader]":
    # Loaded here: the database is what a look at few files need not pay for. Its thousands of classes are no garbage,
    # and to look for some among them takes a quarter of the time.
    collecting = gc.isenabled()
    gc.disable()
    try:
        from pidispatch.runs.index_read import reading
    finally:
        if collecting:
            gc.enable()
    return reading(state_dir, folder)


def _remedy(fault: IndexFault) -> str:
    if fault.cause == "newer":
        return "Look with that version, or remove the file and write: pi-dispatch runs --reindex"
    return "It is made anew by: pi-dispatch runs --reindex"


def _slow(files: int) -> str | None:
    if files <= UNTOLD_FILES:
        return None
    return (
        f"{files} records are not in the index and were read one by one; they get there by: pi-dispatch runs --reindex"
    )


def _by_files(store: RecordStore, names: list[str], wanted: Wanted, limit: int | None, note: str | None) -> Listing:
    found, unreadable = store.read_each(names)
    chosen = newest_first(one for one in found if wanted.admits(one[1]))
    return Listing(chosen[:limit], len(chosen), tuple(unreadable), bool(found), _reasons(found), note)


def _by_index(index: "Reader", store: RecordStore, names: list[str], wanted: Wanted, limit: int | None) -> Listing:
    unheld = index.unheld()
    unknown, gone = _not_as_known(index, store, names)
    # Nothing of `unheld` would be listed.
    beside, unreadable = store.read_each(unheld | unknown)
    admitted = [one for one in beside if wanted.admits(one[1])]
    left_out = unknown | gone
    if left_out:
        listed = [name for name in index.matching(wanted) if name not in left_out]
        shown, spoilt, missing = _shown(store, iter(listed), wanted, limit)
        total = len(listed)
    else:
        shown, spoilt, missing = _shown(store, index.matching(wanted), wanted, limit)
        # All names are known, so a query has nothing to add where everything is wanted.
        total = len(names) - len(unheld) if wanted == Wanted() else index.how_many(wanted)
    total += len(admitted) - missing
    unreadable += spoilt
    return Listing(
        newest_first((*shown, *admitted))[:limit],
        total,
        tuple(sorted(unreadable, key=lambda one: one.file)),
        bool(total) or len(names) > len(unreadable),
        frozenset() if total else _reasons(beside) | index.reasons(left_out),
        _slow(len(unknown)),
    )


def _not_as_known(index: "Reader", store: RecordStore, names: list[str]) -> tuple[set[str], set[str]]:
    """The files that the index does not know, or knows otherwise, and those that it knows and that are gone."""
    mark = marked(store.folder)
    if mark is None and index.sums() == sums(names):
        return set(), set()
    known, there = index.known(), set(names)
    unknown = {name for name in there if name not in known}
    if mark is not None:
        unknown |= {name for name in there - unknown if known[name] != store.stamp(name)}
    return unknown, known.keys() - there


def _shown(
    store: RecordStore, names: Iterator[str], wanted: Wanted, limit: int | None
) -> tuple[list[Found], list[Unreadable], int]:
    """The first `limit` records that are still wanted, files that are spoilt, and how many were met of what is not."""
    shown: list[Found] = []
    unreadable: list[Unreadable] = []
    missing = 0
    while batch := [*islice(names, None if limit is None else limit - len(shown))]:
        found, spoilt = store.read_each(batch)
        admitted = [one for one in found if wanted.admits(one[1])]
        shown += admitted
        unreadable += spoilt
        missing += len(batch) - len(admitted)
    return shown, unreadable, missing


def _reasons(found: Iterable[Found]) -> frozenset[str]:
    return frozenset(record.reason for _, record in found if record.reason)
