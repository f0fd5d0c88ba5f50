"""What a job container says of itself, and whom it is not believed to be of."""

from datetime import UTC, datetime
from typing import Any

import pytest

from pidispatch.box.facts import JobContainer


def facts(**changes: Any) -> dict[str, Any]:
    """An engine's answer, as far as it is read."""
    config = {
        "Labels": {"pi.dispatch.job": "repeat:tidy:1", "pi.dispatch.attempt": "2"},
        "Env": ["PI_PROVIDER=anthropic", "PI_MODEL=a=b", "PATH=/bin"],
    }
    answer = {
        "Name": "/pi-job-repeat_tidy_1",
        "Created": "2030-01-02T05:04:05.123456789+02:00",
        "Image": "sha256:1",
        "State": {"Status": "exited"},
        "Config": config,
    }
    return answer | changes


def test_everything_that_is_known() -> None:
    assert JobContainer.of(facts()) == JobContainer(
        name="pi-job-repeat_tidy_1",
        job_id="repeat:tidy:1",
        attempt=2,
        state="exited",
        provider="anthropic",
        model="a=b",
        image_digest="sha256:1",
        created_at=datetime(2030, 1, 2, 3, 4, 5, 123456, tzinfo=UTC),
    )


@pytest.mark.parametrize(
    ("labels", "job_id"),
    [
        ({"pi.dispatch.job": "repeat_tidy_1"}, "repeat_tidy_1"),
        ({"pi.dispatch.job": "repeat/tidy/1"}, "repeat/tidy/1"),
        ({"pi.dispatch.job": "another"}, None),
        ({"pi.dispatch.job": ""}, None),
        ({}, None),
        (None, None),
    ],
)
def test_labels_that_do_not_agree_with_the_name_are_nobodys(labels: dict[str, str] | None, job_id: str | None) -> None:
    assert JobContainer.of(facts(Config={"Labels": labels})).job_id == job_id


@pytest.mark.parametrize(("label", "attempt"), [("3", 3), ("", 1), ("x", 1), ("-1", 1)])
def test_the_number_of_the_attempt(label: str, attempt: int) -> None:
    found = JobContainer.of(facts(Config={"Labels": {"pi.dispatch.attempt": label}, "Env": None}))
    assert (found.attempt, found.provider, found.model) == (attempt, "", "")


def test_an_instant_without_an_offset_is_the_worlds() -> None:
    assert JobContainer.of(facts(Created="2030-01-02T03:04:05")).created_at == datetime(2030, 1, 2, 3, 4, 5, tzinfo=UTC)
