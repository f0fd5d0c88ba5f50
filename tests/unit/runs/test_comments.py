"""What is said on an item: for every reason what it is to be, and never a word that is not ours or an operator's."""

import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pidispatch.box.admission import refuse_image
from pidispatch.box.engine import ImageFacts
from pidispatch.config.settings import Settings
from pidispatch.jobs.charges import TurnedAway
from pidispatch.money.budget import Budget
from pidispatch.runs.classify import aborted, classify_error
from pidispatch.runs.comments import ENDED, EXACT, FAILED, SILENT, marker, text
from pidispatch.runs.oneshot import spent
from pidispatch.triggers.disarm import Mark
from pidispatch.values.errors import ConfigError
from pidispatch.values.job import ForgeJob
from pidispatch.values.outcome import Completed, InfraFailed, Outcome, Refused
from pidispatch.values.reason import FAILURES, AbortReason, Reason, RunnerReason
from pidispatch.values.record import RunRecord
from tests.support.ends import NOW, result_of
from tests.support.oneshots import fired_by, rule

ROOT = Path(__file__).resolve().parents[3]
JOB = fired_by(rule())
REFUSALS = sorted(set(Reason) - FAILURES - set(ENDED) - SILENT)
NOT_RUN = "The job was not run."
NO_MORE = "It is not tried again."
WORD_JOINER = "\u2060"
#: What calls somebody on GitHub: a name behind an `@` that is not the end of a word.
CALL = re.compile(r"(?<![A-Za-z0-9])@[A-Za-z0-9]")


def record_of(outcome: Outcome, job: ForgeJob = JOB, attempt: int = 1, **more: Any) -> RunRecord:
    """The record of an attempt at a job of GitHub."""
    return RunRecord.of(job, result_of(outcome, spent=False), "build-1", attempt).model_copy(update=more)


def said(outcome: Outcome, **more: Any) -> list[str]:
    """The paragraphs of the comment."""
    found = text(record_of(outcome, **more), outcome)
    assert found is not None
    return found.split("\n\n")


def test_every_reason_has_its_place() -> None:
    assert not SILENT & set(ENDED)
    assert not FAILURES & (SILENT | set(ENDED))
    assert set(REFUSALS) >= EXACT
    # A reason that is new has to be put into one of the lists with thought.
    assert len(REFUSALS) == 17


@pytest.mark.parametrize("reason", REFUSALS)
def test_a_refusal_says_why_what_helps_and_that_nothing_was_run(reason: Reason) -> None:
    first, remedy, operator, last, mark = said(Refused(reason=reason))
    assert first.startswith(f"pi-dispatch refused this job (`{reason}`). ")
    assert len(first) > len(f"pi-dispatch refused this job (`{reason}`). ") + 20
    assert remedy.startswith("What helps: ")
    assert len(remedy) > 20
    assert operator == "For the operator: `pi-dispatch show gh-1`"
    assert (last, mark) == (NOT_RUN, "<!-- pi-dispatch gh-1 -->")


@pytest.mark.parametrize("reason", sorted(SILENT))
def test_of_what_the_repository_or_the_skills_hold_nothing_is_said(reason: Reason) -> None:
    outcome = Refused(reason=reason, detail="the details")
    assert text(record_of(outcome), outcome) is None


@pytest.mark.parametrize("reason", sorted(ENDED))
def test_an_end_by_a_rule_is_one_fixed_sentence(reason: Reason) -> None:
    outcome = Refused(reason=reason, cause="error", detail="a private text", remedy="a private text")
    first, operator, mark = said(outcome)
    assert first == f"pi-dispatch (`{reason}`): {ENDED[reason]}"
    assert first.endswith(NO_MORE)
    assert (operator, mark) == ("For the operator: `pi-dispatch show gh-1`", marker("gh-1"))


@pytest.mark.parametrize("reason", sorted(FAILURES))
def test_a_failure_that_nothing_follows_is_one_fixed_sentence(reason: Reason) -> None:
    outcome = InfraFailed(reason=reason, cause="exit-1", detail="a private text", said="a private text")
    first, operator, mark = said(outcome)
    assert first == f"pi-dispatch: {FAILED}"
    assert (operator, mark) == ("For the operator: `pi-dispatch show gh-1`", marker("gh-1"))


def test_a_completed_job_is_the_agents_to_tell_of() -> None:
    assert text(record_of(Completed()), Completed()) is None


def test_a_reason_of_a_later_version_is_not_spoken_of() -> None:
    for reason in ("phase-of-the-moon", None):
        assert text(record_of(Refused(reason=Reason.INFRA), reason=reason)) is None


@pytest.mark.parametrize("why", list(AbortReason))
def test_an_abort_says_who_ended_it(why: AbortReason) -> None:
    [first, *_] = said(aborted(why))
    assert ("An operator cancelled" in first) is (why is AbortReason.OPERATOR_CANCEL)
    assert ("its time was up" in first) is (why is not AbortReason.OPERATOR_CANCEL)


@pytest.mark.parametrize("cause", list(RunnerReason))
def test_a_budget_of_the_run_that_is_used_up_is_named_with_what_raises_it(cause: RunnerReason) -> None:
    [first, *_] = said(Refused(reason=Reason.RUNNER_POLICY, cause=cause))
    fixed = f"pi-dispatch (`runner-policy`): {ENDED[Reason.RUNNER_POLICY]}"
    if cause is RunnerReason.TURN_BUDGET:
        assert first == (
            f"{fixed} The run used up its model turns. What helps: Raise --max-turns or PI_MAX_TURNS, or split the "
            "task."
        )
    elif cause is RunnerReason.TOKEN_BUDGET:
        assert first == f"{fixed} The run used up its tokens. What helps: Raise PI_MAX_TOKENS, or split the task."
    else:
        assert first == fixed


@pytest.mark.example("ch8 F13", "the comment on a refusal by a cap names the cap, its numbers and what raises it")
@pytest.mark.parametrize(
    ("found", "sentence", "remedy"),
    [
        (
            TurnedAway(kind="over", ledger=0, window="week", amount=61, cap=60),
            "All 60 runs of this week are used up; this would be number 61.",
            "wait until 2026-01-05 00:00 UTC, or raise PI_WEEKLY_CAP=60 and start the worker anew",
        ),
        (
            TurnedAway(kind="soft", ledger=0, window="day", amount=23, cap=25),
            "New starts are held: with this one, 23 of the 25 runs of this day would be used, which is more than 90 "
            "percent.",
            "wait until 2026-01-03 00:00 UTC, or raise PI_SOFT_HOLD_PCT=90 or PI_DAILY_CAP=25 and start the worker "
            "anew",
        ),
        (
            TurnedAway(kind="tokens", ledger=-1, window="", amount=9100, cap=9000),
            "9100 tokens are spent today, of 9000.",
            "wait until 2026-01-03 00:00 UTC, or raise PI_DAILY_TOKEN_CAP=9000 and start the worker anew",
        ),
    ],
)
def test_f13_a_cap_names_its_numbers_and_what_raises_it(found: TurnedAway, sentence: str, remedy: str) -> None:
    settings = Settings.model_validate({"PI_WEEKLY_CAP": "60", "PI_SOFT_HOLD_PCT": "90", "PI_DAILY_TOKEN_CAP": "9000"})
    outcome = Budget(settings).refusal("gh-1", found, NOW)
    first, second, *_ = said(outcome)
    assert first == f"pi-dispatch refused this job (`{outcome.reason}`). {sentence}"
    assert second == f"What helps: {remedy}"


@pytest.mark.parametrize(
    ("reason", "cause", "sentence"),
    [
        (Reason.OVER_BUDGET, "week", "All runs of this week are used up."),
        (Reason.SOFT_HOLD, "day", "New starts are held, because the runs of this day are nearly used up."),
        (Reason.OVER_BUDGET, "aeon", Reason.OVER_BUDGET.meaning),
    ],
)
def test_the_record_alone_knows_the_window_and_the_variables(reason: Reason, cause: str, sentence: str) -> None:
    found = text(record_of(Refused(reason=reason, cause=cause)))
    assert found is not None
    assert f"(`{reason}`). {sentence}\n\nWhat helps: {reason.remedy}\n\n" in found
    assert "PI_DAILY_CAP" in found or "PI_SOFT_HOLD_PCT" in found


def test_a_rule_that_is_spent_names_the_mark_and_how_it_is_armed() -> None:
    first, remedy, *_ = said(spent(JOB, Mark("2026-01-01T00:00:00Z", "gh-0")))
    assert first.endswith(
        "Trigger 0 fires once and was spent on 2026-01-01T00:00:00Z by the job gh-0; that close has had its run."
    )
    assert "on.disarmed" in remedy
    assert remedy.endswith("pi-dispatch triggers rearm 0")
    first, *_ = said(spent(JOB, Mark()))
    assert first.endswith("Trigger 0 fires once and was spent; that close has had its run.")


def test_an_image_is_named_with_what_it_declares() -> None:
    image = ImageFacts.model_construct(forges=frozenset({"gitlab"}), capabilities=frozenset({"anyUid"}))
    refused = refuse_image("ghcr.io/acme/job@sha256:1f", image, JOB)
    assert refused is not None
    first, remedy, *_ = said(refused)
    assert "The image 'ghcr.io/acme/job@sha256:1f' serves gitlab, and this is a job of github." in first
    assert "run.image" in remedy
    image = ImageFacts.model_construct(forges=None, capabilities=frozenset({"anyUid"}))
    refused = refuse_image("pi-job:1", image, JOB.model_copy(update={"replica": 1, "replicas": 2}))
    assert refused is not None
    first, remedy, *_ = said(refused)
    assert "declares the capabilities anyUid" in first
    assert "pi-dispatch image build" in remedy


def test_an_attempt_after_one_that_ran_is_not_said_to_be_all_there_was() -> None:
    before = record_of(InfraFailed(reason=Reason.INFRA))
    *_, last, _ = said(Refused(reason=Reason.SOFT_HOLD, cause="day"), attempt=2, attempts=before.as_earlier)
    assert last == "The job was not run again."


def test_an_outcome_that_is_not_the_records_is_not_told() -> None:
    refused = Refused(reason=Reason.OVER_BUDGET, cause="day", detail="all 25 runs of this day are used up")
    cancelled = text(record_of(aborted(AbortReason.OPERATOR_CANCEL)), refused)
    assert cancelled is not None
    assert "25" not in cancelled
    held = text(record_of(Refused(reason=Reason.SOFT_HOLD, cause="day")), refused)
    assert held is not None
    assert "25" not in held


@pytest.mark.parametrize("reason", sorted(set(REFUSALS) - EXACT))
@given(private=st.text(st.characters(codec="utf-8"), min_size=12))
def test_no_detail_of_a_refusal_is_said_that_is_not_ours(reason: Reason, private: str) -> None:
    outcome = Refused(reason=reason, cause=private, detail=f"/srv/{private}", remedy=private, said=private)
    assert said(outcome) == said(Refused(reason=reason))


def test_a_setting_that_cannot_work_is_said_without_its_message() -> None:
    message = "/etc/pi/models.json holds the key sk-1234 of a person"
    outcome = classify_error(ConfigError(message, "overlay-models"))
    found = "\n".join(said(outcome))
    assert "cannot work as it stands" in found
    assert not any(word in found for word in message.split() if "/" in word or "sk-" in word)


@given(
    name=st.text(st.characters(codec="utf-8"))
    | st.lists(st.sampled_from(["@", "`", "<!--", "-->", "a", "#1", "\\", "\n", "[x](y)", "&lt;", "_"])).map("".join)
)
def test_an_operators_words_call_nobody_and_end_nothing(name: str) -> None:
    outcome = Refused(reason=Reason.JOB_IMAGE_MISSING, detail=f"there is no image {name}", remedy=f"build {name}")
    paragraphs = said(outcome)
    assert len(paragraphs) == 5, paragraphs
    first, remedy, *_, mark = paragraphs
    assert mark == marker("gh-1")
    visible = "\n\n".join(paragraphs[:-1])
    assert "<" not in visible
    assert ">" not in visible
    assert "\n" not in first + remedy
    assert not CALL.search(visible)
    assert first.count("`") == 2
    assert "`" not in remedy
    assert not re.search(r"#\d", visible)
    assert len(visible) < 8000


def test_a_name_that_calls_somebody_reads_as_it_did() -> None:
    outcome = Refused(reason=Reason.JOB_IMAGE_MISSING, detail="there is no image '@acme/x@1'", remedy="ask @ops, #12")
    first, remedy, *_ = said(outcome)
    assert first.replace(WORD_JOINER, "").endswith("There is no image '@acme/x@1'.")
    assert remedy == f"What helps: ask @{WORD_JOINER}ops, #{WORD_JOINER}12"


def test_a_long_name_is_cut() -> None:
    first, *_ = said(Refused(reason=Reason.JOB_IMAGE_MISSING, detail="n" * 9000))
    assert len(first) < 600
    assert first.endswith("….")


@pytest.mark.parametrize("job_id", ["gh-1 --> @x", "gh-`", "gh-\n", "gh-" + "1" * 300, "gh-é", "gh-\udcff"])
def test_an_id_that_would_leave_the_marker_is_not_in_it(job_id: str) -> None:
    record = record_of(Refused(reason=Reason.SOFT_HOLD, cause="day")).model_copy(update={"job_id": job_id})
    found = text(record)
    assert found is not None
    assert job_id not in found
    assert re.fullmatch(r"<!-- pi-dispatch [0-9a-f]{64} -->", marker(job_id))
    assert found.endswith(marker(job_id))
    assert marker(job_id) != marker(job_id + "0")


def row_of(reason: Reason) -> str:
    """The line of the page for a reason, by what the record alone lets be said."""
    outcome: Any = InfraFailed(reason=reason) if reason in FAILURES else Refused(reason=reason)
    found = text(record_of(outcome))
    if found is None:
        return f"| `{reason}` | nothing | |"
    first, second, *_ = found.split("\n\n")
    words = first.replace(f"pi-dispatch refused this job (`{reason}`). ", "").replace(f"pi-dispatch (`{reason}`): ", "")
    helps = second.removeprefix("What helps: ") if second.startswith("What helps: ") else ""
    return f"| `{reason}` | {words.removeprefix('pi-dispatch: ')} | {helps} |".replace("|  |", "| |")


@pytest.mark.parametrize("reason", list(Reason))
def test_the_page_says_what_is_said(reason: Reason) -> None:
    page = (ROOT / "docs" / "reference" / "comments.md").read_text()
    assert f"\n{row_of(reason)}\n" in page
