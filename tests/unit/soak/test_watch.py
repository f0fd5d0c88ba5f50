"""Every key of a soak is of a declared kind, and every process and slot is counted for what it is."""

import pytest

from tests.soak.conduct import together
from tests.soak.watch import Sample, kind_of


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("job:local-1", "job:<id>"),
        ("job:lock:local-1", "job:lock:<id>"),
        ("job:told:local-1", "job:told:<id>"),
        ("jobs:due", "jobs:due"),
        ("jobs:queued:pi-jobs@w1", "jobs:queued:<queue>"),
        ("worker:w1", "worker:<name>"),
        ("workers", "workers"),
        ("pi-jobs@w1", "celery"),
        ("unacked_index", "celery"),
        ("_kombu.binding_deadlines", "celery"),
        ("0f0c.reply.celery.pidbox", "celery"),
        ("jobs:dues", None),
        ("lock:local-1", None),
    ],
)
def test_a_key_is_of_its_kind(name: str, kind: str | None) -> None:
    assert kind_of(name) == kind


def test_what_no_job_explains_is_the_rest() -> None:
    sample = Sample(0.0, {}, used=1000, of_jobs=400)

    assert sample.rest == 600
    assert Sample(0.0, {}).rest is None


def test_those_that_run_at_the_same_time_are_counted() -> None:
    assert together([]) == 0
    assert together([(1, 2), (2, 3)]) == 1
    assert together([(1, 4), (2, 3), (3.5, None), (3.6, None)]) == 3
