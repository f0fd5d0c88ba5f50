"""What `check` says of folders, the overlay and the provider's key."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from pidispatch.cli.checks import kept
from pidispatch.cli.checks.row import Finding
from pidispatch.cli.checks.scene import Scene
from pidispatch.values.errors import ConfigError, InfraError

FOLDERS = {
    "PI_STATE_DIR": kept.state_folder,
    "PI_JOBS_DIR": kept.jobs_folder,
    "PI_LOGS_DIR": kept.logs_folder,
}
KEY = "sk-never-shown"


@pytest.fixture
def scene(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Scene:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/no-engine.sock")
    monkeypatch.setenv("VALKEY_URL", f"unix://{tmp_path}/no-server.sock")
    monkeypatch.setenv("PI_CODING_AGENT_DIR", str(tmp_path / "pi"))
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    return Scene(30)


@pytest.mark.parametrize("variable", FOLDERS)
def test_a_folder_in_a_temporary_place_is_made_and_warned_of(
    variable: str, scene: Scene, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    folder = tmp_path / "own"
    monkeypatch.setenv(variable, str(folder))
    (found,) = FOLDERS[variable](scene)
    assert found.status == "warn"
    assert found.found.startswith(f"{folder}: this account's own, mode 0700, can be written; it lies in a temporary")
    assert found.remedy == f"name a folder that stays with {variable}"
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("variable", FOLDERS)
def test_a_folder_that_stays_passes(
    variable: str, scene: Scene, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    # Nowhere that a test may write is known to stay.
    monkeypatch.setattr(kept, "_TEMPORARY", ())
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "elsewhere"))
    monkeypatch.setenv(variable, str(tmp_path / "own"))
    assert [one.status for one in FOLDERS[variable](scene)] == ["pass"]


def test_records_that_go_before_their_month_is_over_are_warned_of(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PI_LOGS_DIR", str(tmp_path / "own"))
    monkeypatch.setenv("PI_LOG_RETENTION_DAYS", "7")
    _, short = kept.logs_folder(scene)
    assert short.status == "warn"
    assert short.found.startswith("PI_LOG_RETENTION_DAYS=7: records go before the month")
    assert short.remedy == "PI_LOG_RETENTION_DAYS=32 or more, or 0 to keep them for ever"


@pytest.mark.parametrize(("variable", "cause"), [("PI_STATE_DIR", "not-own-folder"), ("PI_LOGS_DIR", "logs-dir")])
def test_a_folder_that_is_a_link_is_refused(
    variable: str, cause: str, scene: Scene, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "link").symlink_to(tmp_path)
    monkeypatch.setenv(variable, str(tmp_path / "link"))
    with pytest.raises((ConfigError, InfraError)) as error:
        list(FOLDERS[variable](scene))
    assert error.value.cause == cause


def test_a_state_folder_whose_id_is_none_is_refused(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PI_STATE_DIR", str(tmp_path))
    tmp_path.chmod(0o700)
    (tmp_path / "deployment").write_text("none")
    with pytest.raises(ConfigError) as error:
        list(kept.state_folder(scene))
    assert error.value.cause == "deployment-id"


def test_an_overlay_is_only_mentioned_where_there_is_one(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert list(kept.overlay(scene)) == []
    folder = tmp_path / "overlay"
    folder.mkdir()
    monkeypatch.setenv("PI_GLOBAL_PI_DIR", str(folder))
    assert [one.status for one in kept.overlay(scene)] == ["pass"]
    (folder / "models.json").write_text(json.dumps({"providers": {"a": {"apiKey": KEY}}}))
    with pytest.raises(ConfigError) as error:
        list(kept.overlay(scene))
    assert KEY not in error.value.message


def _stored(folder: Path, entry: dict[str, str]) -> Callable[[], None]:
    def write() -> None:
        folder.mkdir()
        (folder / "auth.json").write_text(json.dumps({"anthropic": entry}))

    return write


def test_a_key_of_the_environment_is_named_and_never_shown(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    assert list(kept.credential(scene)) == [Finding("pass", "anthropic: ANTHROPIC_API_KEY is set", None)]


def test_a_key_that_pi_keeps_is_found_there(scene: Scene, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _stored(tmp_path / "pi", {"type": "api_key", "key": KEY})()
    (found,) = kept.credential(scene)
    assert (found.status, found.found) == ("pass", f"anthropic: pi's own key in {tmp_path / 'pi' / 'auth.json'}")
    monkeypatch.setenv("PI_AUTH_FROM_PI", "0")
    (found,) = kept.credential(scene)
    assert (found.status, found.remedy) == ("fail", "export ANTHROPIC_API_KEY=...")


def test_a_login_is_told_beside_the_missing_key(scene: Scene, tmp_path: Path) -> None:
    _stored(tmp_path / "pi", {"type": "oauth", "access": KEY})()
    (found,) = kept.credential(scene)
    assert found.status == "fail"
    assert "the entry in pi's auth.json is a login" in found.found
    assert KEY not in found.found


def test_an_unknown_provider_is_told_which_there_are(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PI_PROVIDER", "nobody")
    (found,) = kept.credential(scene)
    assert found.status == "fail"
    assert found.remedy is not None
    assert found.remedy.startswith("set PI_PROVIDER to one of: ")
    assert "anthropic" in found.remedy
