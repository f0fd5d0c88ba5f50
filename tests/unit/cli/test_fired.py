"""A schedule that is fired by hand: its job, and what is said where there is none such."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from pidispatch.cli.fired import fired_job
from pidispatch.config.settings import Settings
from pidispatch.jobs.ids import local_id
from pidispatch.values.errors import ConfigError
from pidispatch.values.job import LocalJob, Matched

NOW = datetime(2026, 5, 4, 10, 30, 15, tzinfo=UTC)


def entry(name: str, **run: Any) -> dict[str, Any]:
    """One entry of the file."""
    job = {"kind": "local", "folder": "/srv/site", "flow": "tidy", "task": "tidy up", **run}
    return {"on": {"type": "cron", "id": name, "pattern": "0 3 * * *"}, "run": job}


def settings_with(folder: Path, *entries: dict[str, Any]) -> Settings:
    """Settings that name a file of these entries."""
    path = folder / "triggers.json"
    path.write_text(json.dumps({"triggers": entries}))
    return Settings.model_validate({"PI_TRIGGERS_FILE": str(path)})


def test_the_job_has_the_settings_of_its_entry(tmp_path: Path) -> None:
    (tmp_path / "site").mkdir()
    (tmp_path / "link").symlink_to("site")
    own = entry("own", folder=str(tmp_path / "link"), provider="openai", model="m", maxTurns=3, image="other:1")
    settings = settings_with(tmp_path, entry("nightly"), own)
    folder = tmp_path / "site"
    assert fired_job("own", settings, NOW, force=True) == LocalJob(
        id=local_id(folder, "tidy", "tidy up", NOW, provider="openai", model="m"),
        folder=folder,
        task="tidy up",
        flow="tidy",
        allow_dirty=True,
        provider="openai",
        model="m",
        max_turns=3,
        image="other:1",
        # How it ends says nothing of the schedule, which did not fire it.
        breaker=None,
        trigger=Matched(id="own", index=1),
    )
    assert not fired_job("nightly", settings, NOW, force=False).allow_dirty


@pytest.mark.parametrize(
    ("wanted", "ids", "said"),
    [
        ("nightli", ("hourly", "nightly"), "holds no schedule with the id 'nightli'. Did you mean 'nightly'?"),
        ("x", ("hourly", "nightly"), "It holds: hourly, nightly"),
        ("x", tuple(f"schedule-{number}" for number in range(12)), "schedule-9 and 2 more"),
        ("", (), "It holds none at all"),
    ],
)
def test_an_id_that_no_entry_has_is_told_with_what_there_is(
    wanted: str, ids: tuple[str, ...], said: str, tmp_path: Path
) -> None:
    settings = settings_with(tmp_path, *(entry(one) for one in ids))
    with pytest.raises(ConfigError, match="holds no schedule") as refused:
        fired_job(wanted, settings, NOW, force=False)
    assert refused.value.message.endswith(said)


def test_without_a_file_the_variable_is_named() -> None:
    with pytest.raises(ConfigError, match="name it with PI_TRIGGERS_FILE"):
        fired_job("nightly", Settings.model_validate({}), NOW, force=False)


def test_a_broken_file_fires_nothing(tmp_path: Path) -> None:
    settings = settings_with(tmp_path, entry("nightly"), entry("broken", waitFor=["x"]))
    with pytest.raises(ConfigError, match="waitFor"):
        fired_job("nightly", settings, NOW, force=False)
