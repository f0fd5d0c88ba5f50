"""What the one who waits may see of an end."""

from pathlib import Path

from pidispatch.runs.records import RecordStore
from pidispatch.values.outcome import Completed
from pidispatch.worker.told import telling
from tests.support.ends import job_of, result_of

RECORDS = RecordStore(Path("/logs"))


def test_it_is_more_than_a_record_holds() -> None:
    result = result_of(Completed()).model_copy(update={"diff": "+x\n"})
    told = telling(RECORDS, job_of("local-1"), result)
    assert (told.result, told.record) == (result, "/logs/local-1.json")


def test_a_diff_without_end_is_cut() -> None:
    result = result_of(Completed()).model_copy(update={"diff": "x" * 300_000})
    diff = telling(RECORDS, job_of("local-1"), result).result.diff
    assert diff is not None
    assert len(diff) < 263_000
    assert diff.endswith("git diff in the folder shows all of it]\n")
