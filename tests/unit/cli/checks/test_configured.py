"""What `check` says of variables and of the file of Celery's settings."""

from pathlib import Path

import pytest

from pidispatch.cli.checks import configured
from pidispatch.cli.checks.row import Finding, Told
from pidispatch.cli.checks.scene import Scene
from pidispatch.values.errors import ConfigError


@pytest.fixture
def scene(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Scene:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/no-engine.sock")
    monkeypatch.setenv("VALKEY_URL", f"unix://{tmp_path}/no-server.sock")
    monkeypatch.setenv("PI_STATE_DIR", str(tmp_path))
    monkeypatch.delenv("VALKEY_PASSWORD", raising=False)
    return Scene(30)


def test_every_malformed_variable_has_a_finding_and_no_secret_is_repeated(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PI_MAX_TURNS", "03")
    monkeypatch.setenv("PI_EGRESS", "yes\x1b")
    monkeypatch.setenv("VALKEY_PASSWORD", "hush hush")
    monkeypatch.setenv("PI_FORWARD_ENV", "PI_MODEL")
    monkeypatch.setenv("VALKEY_URL", "redis://user:hush@host:many")
    found = list(configured.settings(scene))
    assert {one.status for one in found} == {"fail"}
    assert {one.found.split("=")[0].split(" ")[0] for one in found} == {
        "PI_MAX_TURNS",
        "PI_EGRESS",
        "VALKEY_PASSWORD",
        "PI_FORWARD_ENV",
        "VALKEY_URL",
    }
    assert len(found) == 5
    assert (
        Finding(
            "fail",
            "PI_MAX_TURNS='03' must be a whole number in plain decimal digits",
            "write for example: PI_MAX_TURNS=30",
        )
        in found
    )
    assert all(one.remedy for one in found)
    assert "hush" not in str(found)
    assert "\x1b" not in str(found)


def test_sound_variables_are_named_and_their_values_are_not(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VALKEY_PASSWORD", "correct_horse-battery")
    assert list(configured.settings(scene)) == [
        Finding("pass", "set here: PI_STATE_DIR, VALKEY_PASSWORD, VALKEY_URL", None)
    ]
    for name in ("PI_STATE_DIR", "VALKEY_PASSWORD", "VALKEY_URL"):
        monkeypatch.delenv(name)
    assert list(configured.settings(scene)) == [Finding("pass", "none is set; all stand at their defaults", None)]


def test_a_bound_that_nothing_enforces_is_refused_and_none_is_not_mentioned(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert list(configured.bounds(scene)) == []
    monkeypatch.setenv("PI_DAILY_COST_USD", "3")
    with pytest.raises(ConfigError, match="PI_DAILY_COST_USD is set"):
        list(configured.bounds(scene))


def test_the_file_of_celery_s_settings(scene: Scene, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert list(configured.celery(scene)) == []
    file = tmp_path / "celeryconfig.py"
    file.write_text("worker_send_task_events = False\n")
    assert list(configured.celery(scene)) == [Finding("pass", f"{file} sets worker_send_task_events", None)]
    file.write_text("")
    assert list(configured.celery(scene)) == [Finding("pass", f"{file} sets nothing", None)]
    file.write_text("task_acks_late = False\n")
    with pytest.raises(ConfigError, match="task_acks_late is fixed"):
        list(configured.celery(scene))
    file.unlink()
    monkeypatch.setenv("CELERY_BROKER_URL", "redis://elsewhere")
    with pytest.raises(ConfigError, match="CELERY_BROKER_URL"):
        list(configured.celery(scene))


def test_what_stands_on_a_malformed_variable_is_left_to_its_own_row(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PI_CELERY_CONFIG", "not/absolute.py")
    with pytest.raises(Told):
        list(configured.celery(scene))
    monkeypatch.setenv("VALKEY_URL", "nowhere")
    with pytest.raises(Told):
        Scene(30).server()
