"""What `check` says of the operator's files: of the configured one, and of those that are named."""

import json
from pathlib import Path

import pytest

from pidispatch.cli.checks import files
from pidispatch.cli.checks.row import Finding, Row
from pidispatch.cli.checks.scene import Scene
from pidispatch.cli.main import _run
from pidispatch.config.watched import FileName
from pidispatch.values.errors import ConfigError

GOOD = '{"windows": [{"scope": "*", "from": "22:00", "to": "06:00"}]}'
BAD = '{"windows": [{"scope": "*", "from": "22:00", "to": "22:00"}]}'


@pytest.fixture
def scene(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Scene:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/no-engine.sock")
    monkeypatch.setenv("VALKEY_URL", f"unix://{tmp_path}/no-server.sock")
    return Scene(30)


def test_the_configured_file(scene: Scene, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert list(files.quiet_hours(scene)) == []
    path = tmp_path / "windows.json"
    monkeypatch.setenv("PI_PAUSE_WINDOWS_FILE", str(path))
    with pytest.raises(ConfigError, match="No such file") as caught:
        list(files.quiet_hours(scene))
    assert caught.value.cause == "operator-file"
    path.write_text(GOOD)
    assert list(files.quiet_hours(scene)) == [Finding("pass", f"{path} is good; pause windows: 1", None)]
    path.write_text(BAD)
    with pytest.raises(ConfigError, match="window at index 0"):
        list(files.quiet_hours(scene))


def test_each_file_is_told_what_its_programs_would_say(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    texts = {"good": GOOD, "bad": BAD, "list": "[]", "foreign": '{"projects": []}', "broken": "{"}
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    rows = files.look_into([tmp_path / name for name in (*texts, "none")])
    assert rows[0] == Row("quiet-hours", "pass", f"{tmp_path}/good is good; pause windows: 1", None)
    assert [row.check for row in rows] == ["quiet-hours", "quiet-hours", "file", "file", "file", "file"]
    assert [row.status for row in rows[1:]] == ["fail"] * 5
    assert rows[1].found.startswith(f'{tmp_path}/bad: window at index 0: fields "from" and "to" are the same time')
    for row in rows[2:4]:
        assert row.found.endswith(
            'It knows them by a field at their top: "windows" (pause windows), "triggers" (triggers)'
        )
    assert "is no JSON" in rows[4].found
    assert "No such file" in rows[5].found
    assert all("pi-dispatch check FILE" in str(row.remedy) for row in rows[1:])

    assert _run(["check", str(tmp_path / "good")]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "1 passed, 0 to think about, 0 to mend"
    assert _run(["check", str(tmp_path / "good"), str(tmp_path / "bad")]) == 2
    assert capsys.readouterr().err == ""
    assert _run(["check", "--json", str(tmp_path / "bad")]) == 2
    printed = json.loads(capsys.readouterr().out)
    assert (printed["ok"], [row["check"] for row in printed["checks"]]) == (False, ["quiet-hours"])


def test_a_list_in_a_file_of_another_kind_is_not_taken_for_it(tmp_path: Path) -> None:
    (tmp_path / "text").write_text('"windows"')
    assert files.look_into([tmp_path / "text"])[0].check == "file"


def test_every_file_that_is_watched_can_be_checked() -> None:
    assert len(files.KINDS) >= len(FileName)
    assert len({kind.key for kind in files.KINDS}) == len(files.KINDS)


def test_a_file_of_triggers_is_known(tmp_path: Path) -> None:
    example = Path(__file__).resolve().parents[4] / "triggers" / "examples" / "cron.json"
    (tmp_path / "bad").write_text(example.read_text().replace('"flow": "tidy"', '"command": "tidy"', 1))
    good, bad = files.look_into([example, tmp_path / "bad"])
    assert (good.check, good.status) == ("triggers", "pass")
    assert (bad.check, bad.status) == ("triggers", "fail")
    assert "not served by this version" in bad.found


def test_the_configured_triggers(scene: Scene, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert list(files.triggers(scene)) == []
    path = tmp_path / "triggers.json"
    monkeypatch.setenv("PI_TRIGGERS_FILE", str(path))
    with pytest.raises(ConfigError, match="No such file"):
        list(files.triggers(scene))
    run = {"kind": "local", "folder": str(tmp_path), "flow": "tidy", "task": "x"}
    entry = {"on": {"type": "cron", "id": "nightly", "pattern": "0 3 * * *"}, "run": run}
    path.write_text(json.dumps({"triggers": [entry]}))
    assert list(files.triggers(scene)) == [Finding("pass", f"{path} is good; triggers: 1", None)]
    path.write_text(json.dumps({"triggers": [{**entry, "run": {**run, "folder": "/nowhere/at/all"}}]}))
    [found] = files.triggers(scene)
    assert found.status == "warn"
    assert "the folders of nightly are not on this machine" in found.found
