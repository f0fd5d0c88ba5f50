"""Whose clock schedules go by."""

from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from pidispatch.config.zone import host_zone, schedule_zone, zone_of


def test_a_zone_by_its_name() -> None:
    assert zone_of("Europe/Berlin") == ZoneInfo("Europe/Berlin")


@pytest.mark.parametrize("name", ["Mars/Olympus", "", "../etc/passwd", "Europe", "/etc/localtime", "a\0b"])
def test_what_is_no_zone(name: str) -> None:
    with pytest.raises(ValueError, match="is no IANA time zone that this machine knows"):
        zone_of(name)


def test_tz_comes_before_the_machines(monkeypatch: pytest.MonkeyPatch) -> None:
    for text in ("America/New_York", ":America/New_York"):
        monkeypatch.setenv("TZ", text)
        assert host_zone() == ZoneInfo("America/New_York")
    monkeypatch.setenv("TZ", "nowhere")
    assert host_zone() == ZoneInfo("UTC")


def test_the_machines_own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("TZ", raising=False)
    zones = tmp_path / "zoneinfo" / "Europe"
    zones.mkdir(parents=True)
    (zones / "Berlin").touch()
    link = tmp_path / "localtime"
    link.symlink_to(zones / "Berlin")
    assert host_zone(link) == ZoneInfo("Europe/Berlin")
    assert host_zone(tmp_path / "none") == ZoneInfo("UTC")
    copied = tmp_path / "copied"
    copied.write_bytes(b"TZif")
    assert host_zone(copied) == ZoneInfo("UTC")


def test_schedules_go_by_the_named_zone_else_by_the_machines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "America/New_York")
    assert schedule_zone(None) == ZoneInfo("America/New_York")
    assert schedule_zone("Europe/Berlin") == ZoneInfo("Europe/Berlin")
