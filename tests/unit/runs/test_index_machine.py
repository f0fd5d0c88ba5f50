"""Whatever is done to records, in whatever order: the index lists what the files hold, and healed it says the same."""

import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from pidispatch.runs.index import mark
from pidispatch.runs.index_look import Listing, Wanted, look
from pidispatch.values.record import EarlierAttempt, RunRecord
from tests.unit.runs.history import NOW, record, records
from tests.unit.runs.indexed import Indexed

#: Few, so that they meet; two share a file name, and one is sorted otherwise with its ending than without.
_JOBS = st.sampled_from(["a", "a-b", "a:b", "a/b", "b", "\u00e9"])
_INSTANTS = st.sampled_from([None, NOW, NOW + timedelta(microseconds=1), datetime.max.replace(tzinfo=UTC)])
_EARLIER = st.lists(
    st.builds(lambda one: EarlierAttempt.model_validate(one.as_earlier[-1].model_dump()), records), max_size=2
)
_RECORDS = st.builds(
    lambda one, job, ended, earlier: one.model_copy(
        update={"job_id": job, "ended_at": ended, "attempts": tuple(earlier)}
    ),
    *(records, _JOBS, _INSTANTS, _EARLIER),
)
_NAMES = st.sampled_from(["a.json", "a-b.json", "a_b.json", "b.json", "copy.json", "junk.json"])
_WANTED = (
    Wanted(),
    Wanted(floor=NOW),
    Wanted(outcome="failed"),
    Wanted(reason="infra"),
    Wanted(reason="\ud800"),
    Wanted(beginning="a"),
    Wanted(beginning="a-"),
    Wanted(floor=NOW + timedelta(microseconds=1), outcome="completed"),
)


def _plain(found: Listing) -> tuple[Any, ...]:
    # Notes tell the two ways apart, and reasons are told only where nothing is found.
    reasons = None if found.total else found.reasons
    return found.records, found.total, found.unreadable, found.any, reasons


class History(RuleBasedStateMachine):
    """A folder of records, its index, and those who do something to either."""

    @initialize()
    def begin(self) -> None:
        """Nothing is there yet."""
        self.folder = tempfile.TemporaryDirectory()
        self.place = Indexed(Path(self.folder.name))
        #: Whether everything was told to the index.
        self.told = True
        #: Files that the index may know and that were taken away behind its back. What is put in the place of one, as
        #: silently, only `--reindex` finds.
        self.taken: set[str] = set()

    def teardown(self) -> None:
        """Leave nothing."""
        if hasattr(self, "place"):
            self.place.index.close()
            self.folder.cleanup()

    @rule(put=_RECORDS, way=st.sampled_from(["write", "add", "keep"]))
    def put(self, put: RunRecord, way: str) -> None:
        """An attempt is recorded."""
        getattr(self.place.store, way)(put)

    @rule(put=_RECORDS)
    def put_by_one_whose_index_failed(self, put: RunRecord) -> None:
        """The file is written, and all that the index hears is that it was not told."""
        self.place.unheard.write(put)
        mark(self.place.store.folder)
        self.told = False

    @rule(put=_RECORDS)
    def put_by_one_who_was_killed(self, put: RunRecord) -> None:
        """A new file is written and nobody says so."""
        path = self.place.store.record_path(put.job_id)
        if not path.exists() and path.name not in self.taken:
            self.place.unheard.write(put)
            self.told = False

    @rule(name=_NAMES, text=st.sampled_from(["{", "", record("b", flow=None).model_dump_json()]))
    def put_by_hand(self, name: str, text: str) -> None:
        """A file that nobody told of, where none was, or one that holds nothing."""
        path = self.place.store.folder / name
        if not path.exists() and name not in self.taken:
            path.write_text(text)
            self.told = False

    @rule(name=_NAMES, by_hand=st.booleans())
    def remove(self, name: str, by_hand: bool) -> None:
        """A file goes."""
        path = self.place.store.folder / name
        if path.exists():
            path.unlink()
            if by_hand:
                self.told = False
                self.taken.add(name)
            else:
                self.place.index.refresh((name,))

    @rule()
    def remove_what_is_old(self) -> None:
        """The retention's sweep, with everything grown old."""
        self.place.store.sweep(datetime.now(UTC) + timedelta(days=2), 1)

    @rule(way=st.sampled_from(["clear_up", "rebuild", "lost", "damaged"]))
    def heal(self, way: str) -> None:
        """The index is set right, or made anew after a loss."""
        if way == "lost" and self.place.path.exists():
            self.place.path.unlink()
        if way == "damaged" and self.place.path.exists():
            # What is open lives on in its log and its memory.
            self.place.index.close()
            self.place.path.write_bytes(b"no database" * 1000)
        if way == "clear_up":
            self.place.index.clear_up()
        else:
            self.place.index.rebuild(lambda _done, _of: None)
        self.told = True
        self.taken = set()

    @invariant()
    def says_what_the_files_say(self) -> None:
        """Row by row, where it was told of everything."""
        if self.told and self.place.path.exists():
            assert self.place.rows() == self.place.said()

    @rule(wanted=st.sampled_from(_WANTED), limit=st.sampled_from([None, None, 1, 3]))
    def look(self, wanted: Wanted, limit: int | None) -> None:
        """The index lists what one lists who reads all files."""
        by_index = look(self.place.state, self.place.store, wanted, limit)
        by_files = look(self.place.state / "none", self.place.store, wanted, limit)
        assert _plain(by_index) == _plain(by_files)
        assert by_index.note is None


History.TestCase.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
TestHistory = History.TestCase
