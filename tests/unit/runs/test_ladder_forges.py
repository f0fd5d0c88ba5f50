"""The rung of rules that fire once: one that is spent, by either mark."""

from pathlib import Path

import pytest

from pidispatch.runs.ladder import LADDER, climb
from pidispatch.triggers.disarm import Mark
from pidispatch.values.errors import InfraError
from pidispatch.values.job import ForgeJob
from pidispatch.values.outcome import Refused
from pidispatch.values.reason import Reason
from tests.support.oneshots import MARK, fired_by, marked, rule, write
from tests.unit.runs.place import Place

STEPS = {step.name: step for step in LADDER}
FOREIGN = Mark("2026-05-04T03:00:00Z", "gh-0")
OWN = Mark("2026-05-04T03:00:00Z", "gh-1")


def place_of(folder: Path, job: ForgeJob, store: Mark | None = None) -> Place:
    """A place whose triggers file is `triggers.json` in `folder`, and whose store has this mark."""
    place = Place(folder, PI_TRIGGERS_FILE=str(folder / "triggers.json"), PI_LOGS_DIR=str(folder / "logs"))
    place.site.job = job
    place.site.marked = lambda _: store
    return place


def refused(place: Place) -> Refused | None:
    found = STEPS["oneshot"].take(place.site)
    assert not isinstance(found, str) or found == ""
    return found if isinstance(found, Refused) else None


def test_the_mark_is_asked_for_right_after_the_record() -> None:
    assert [step.name for step in LADDER[:3]] == ["records", "oneshot", "folder"]


@pytest.mark.example("ch2 EX-29", "a rule that fires once: the own mark is excused, that of another job refuses")
def test_a_job_runs_past_its_own_mark_and_no_other(tmp_path: Path) -> None:
    file = write(tmp_path / "triggers.json", rule())
    first, later = fired_by(rule()), fired_by(rule(), job_id="gh-2")
    assert refused(place_of(tmp_path, first)) is None
    write(file, marked(rule(), {"at": OWN.at, "jobId": OWN.job_id}))
    assert refused(place_of(tmp_path, first, OWN)) is None
    turned_away = refused(place_of(tmp_path, later, OWN))
    assert turned_away is not None
    assert turned_away.reason is Reason.ONCE_ALREADY_SPENT


def test_the_refusal_says_when_by_whom_and_how_it_is_armed_again(tmp_path: Path) -> None:
    write(tmp_path / "triggers.json", rule(41), marked(rule()))
    found = refused(place_of(tmp_path, fired_by(rule(), 1)))
    assert found is not None
    assert found.detail == (
        "trigger 1 fires once and was spent on 2026-05-04T03:00:00Z by the job gh-0; that close has had its run"
    )
    assert found.remedy == (
        "arm it again, which takes out on.disarmed and the store's mark: pi-dispatch triggers rearm 1"
    )


@pytest.mark.parametrize(
    ("mark", "told"),
    [
        ({}, "spent; that"),
        ({"at": "today\x1b[31m"}, "spent on today\\u{001B}[31m; that"),
        ({"at": "x" * 101}, f"spent on {'x' * 100}; that"),
        ({"jobId": "y" * 101}, f"spent by the job {'y' * 100}; that"),
    ],
)
def test_a_mark_of_a_persons_own_is_foreign_and_shown_as_far_as_it_goes(
    tmp_path: Path, mark: dict[str, str], told: str
) -> None:
    write(tmp_path / "triggers.json", marked(rule(), mark))
    found = refused(place_of(tmp_path, fired_by(rule())))
    assert found is not None
    assert found.detail is not None
    assert told in found.detail


@pytest.mark.example("ch2 EX-30", "a triggers file that cannot be read lets the job run, and is left as it is")
@pytest.mark.parametrize("text", [None, "{", '{"triggers": []}'])
def test_a_file_that_says_nothing_certain_lets_the_job_pass_and_the_store_still_speaks(
    tmp_path: Path, text: str | None
) -> None:
    if text is not None:
        (tmp_path / "triggers.json").write_text(text)
    assert refused(place_of(tmp_path, fired_by(rule()))) is None
    assert refused(place_of(tmp_path, fired_by(rule()), OWN)) is None
    found = refused(place_of(tmp_path, fired_by(rule()), FOREIGN))
    assert found is not None
    assert found.detail is not None
    assert "by the job gh-0" in found.detail


def test_a_foreign_mark_in_the_store_refuses_beside_the_own_one_in_the_file(tmp_path: Path) -> None:
    write(tmp_path / "triggers.json", marked(rule(), {"at": OWN.at, "jobId": OWN.job_id}))
    assert refused(place_of(tmp_path, fired_by(rule()), FOREIGN)) is not None


def test_a_store_that_does_not_answer_is_a_fault(tmp_path: Path) -> None:
    def away(_: ForgeJob) -> Mark | None:
        raise InfraError("nobody answers", "store-unreachable")

    place = place_of(tmp_path, fired_by(rule()))
    place.site.marked = away
    with pytest.raises(InfraError, match="nobody answers"):
        refused(place)


def test_a_foreign_mark_in_the_file_is_enough_while_the_store_is_away(tmp_path: Path) -> None:
    def away(_: ForgeJob) -> Mark | None:
        raise InfraError("nobody answers", "store-unreachable")

    write(tmp_path / "triggers.json", marked(rule()))
    place = place_of(tmp_path, fired_by(rule()))
    place.site.marked = away
    assert refused(place) is not None


def _not_asked(_: ForgeJob) -> Mark | None:
    raise AssertionError("the store was asked")


def test_a_repetition_that_an_operator_asked_for_is_no_second_firing(tmp_path: Path) -> None:
    write(tmp_path / "triggers.json", marked(rule()))
    place = place_of(tmp_path, fired_by(rule(), job_id="retry-1", retry_of="gh-1"))
    place.site.marked = _not_asked
    assert STEPS["oneshot"].take(place.site) is None


def test_a_rule_that_fires_again_is_never_looked_up(tmp_path: Path) -> None:
    write(tmp_path / "triggers.json", marked(rule()))
    job = fired_by(rule())
    again = job.trigger.matched.model_copy(update={"once": None})
    job = job.model_copy(update={"trigger": job.trigger.model_copy(update={"matched": again})})
    place = place_of(tmp_path, job)
    place.site.marked = _not_asked
    assert STEPS["oneshot"].take(place.site) is None


def test_a_job_on_a_folder_is_not_asked(tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.site.marked = _not_asked
    assert STEPS["oneshot"].take(place.site) is None
    assert place.site.local.folder == tmp_path


def test_a_spent_rule_is_told_before_the_engine_is_asked(tmp_path: Path) -> None:
    write(tmp_path / "triggers.json", marked(rule()))
    place = place_of(tmp_path, fired_by(rule()))
    found = climb(place.site, LADDER[1:])
    assert isinstance(found, Refused)
    assert found.reason is Reason.ONCE_ALREADY_SPENT
    assert MARK["jobId"] in (found.detail or "")


def test_a_job_of_a_forge_has_no_folder_to_look_at_before_its_clone(tmp_path: Path) -> None:
    place = place_of(tmp_path, fired_by(rule()))
    assert STEPS["folder"].take(place.site) is None
