"""What an attempt stays counted for, by how it ended."""

from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from pidispatch.runs.charging import book_tokens, still_charged
from pidispatch.runs.classify import aborted
from pidispatch.runs.site import Site
from pidispatch.values.errors import InfraError
from pidispatch.values.job import Job
from pidispatch.values.outcome import Completed, InfraFailed, Outcome, Refused
from pidispatch.values.reason import AbortReason, Reason
from pidispatch.values.usage import Telemetry
from tests.unit.runs.place import Place

NOW = datetime(2026, 5, 4, tzinfo=UTC)
COUNTED = {"budget:2026-05-04": 1}


@pytest.fixture
def site(tmp_path: Path) -> Site:
    site = Place(tmp_path).site
    site.counted_at, site.charged = NOW, dict(COUNTED)
    return site


def cap(reason: Reason) -> Outcome:
    return Refused(reason=reason, cause="day")


@pytest.mark.example("ch2 EX-11", "a run that was stopped keeps its slot, and so does one that was killed from outside")
@pytest.mark.parametrize(
    ("outcome", "ran", "stays"),
    [
        (Completed(), True, True),
        (Refused(reason=Reason.RUNNER_POLICY), True, True),
        (InfraFailed(reason=Reason.INFRA, cause="exit-1"), True, True),
        (InfraFailed(reason=Reason.CONTAINER_DETACHED), True, True),
        (aborted(AbortReason.JOB_TIMEOUT), True, True),
        # By will: whoever ends it has used it up.
        (aborted(AbortReason.OPERATOR_CANCEL), False, True),
        # The ledger that refuses keeps the try.
        (cap(Reason.OVER_BUDGET), False, True),
        (cap(Reason.SOFT_HOLD), False, True),
        (cap(Reason.DAILY_TOKEN_CAP), False, True),
        # No container ran.
        (InfraFailed(reason=Reason.CONTAINER_NEVER_STARTED), True, False),
        (InfraFailed(reason=Reason.CONTAINER_NEVER_STARTED), False, False),
        (InfraFailed(reason=Reason.INFRA, cause="store-unreachable"), False, False),
        (Refused(reason=Reason.CONFIG_REFUSED), False, False),
    ],
)
def test_what_no_container_ran_for_is_given_back(site: Site, outcome: Outcome, ran: bool, stays: bool) -> None:
    site.spent = ran
    assert still_charged(site, outcome) == (COUNTED if stays else {})


def telemetry(total: int) -> Telemetry:
    return Telemetry(tokens={"total": Decimal(total)})


def test_tokens_are_added_to_what_it_is_counted_for(site: Site) -> None:
    told: list[tuple[Job, datetime, int]] = []

    def book(job: Job, now: datetime, tokens: int) -> dict[str, int]:
        told.append((job, now, tokens))
        return {"budget:t:2026-05-04": tokens}

    site.book = book
    book_tokens(site, telemetry(500))
    assert told == [(site.job, NOW, 500)]
    assert site.charged == {**COUNTED, "budget:t:2026-05-04": 500}


def test_a_claim_that_no_run_can_use_up_is_bounded(site: Site) -> None:
    site.book = lambda _job, _now, tokens: {"budget:t:2026-05-04": tokens}
    book_tokens(site, Telemetry(tokens={"total": Decimal("1e300")}))
    assert site.charged["budget:t:2026-05-04"] == 10**12


@pytest.mark.parametrize("nothing", [Telemetry(), Telemetry(tokens={}), telemetry(0)])
def test_where_none_are_told_none_are_added(site: Site, nothing: Telemetry) -> None:
    def book(*_: object) -> dict[str, int]:
        raise AssertionError

    site.book = book
    book_tokens(site, nothing)
    assert site.charged == COUNTED


@pytest.mark.example("ch2 EX-13", "tokens that cannot be booked are logged, and change no outcome")
@pytest.mark.parametrize(
    ("fault", "cause"), [(InfraError("x", "store-unreachable"), "store-unreachable"), (ValueError(), "ValueError")]
)
def test_a_fault_of_the_booking_changes_nothing(site: Site, fault: Exception, cause: str) -> None:
    def book(*_: object) -> dict[str, int]:
        raise fault

    site.book = book
    with capture_logs() as logs:
        book_tokens(site, telemetry(5))
    assert logs == [{"event": "token_spend_error", "log_level": "error", "jobId": site.job.id, "cause": cause}]
    assert site.charged == COUNTED
