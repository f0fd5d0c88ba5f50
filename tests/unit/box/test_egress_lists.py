"""The folder of the lists on this machine: made once, never overwritten, and readable for the proxy."""

import os
import stat
from pathlib import Path

import pytest

from pidispatch.box.egress_lists import prepare
from pidispatch.config.allowlist import ALLOWLIST, PRIVATE, Lists
from pidispatch.values.errors import ConfigError, InfraError


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_the_defaults_let_jobs_reach_the_provider_and_the_forge(tmp_path: Path) -> None:
    folder = tmp_path / "state" / "egress"
    old = os.umask(0o077)
    try:
        assert prepare(folder) == Lists((".github.com", "api.anthropic.com"), ())
    finally:
        os.umask(old)
    assert [mode(path) for path in (folder.parent, folder, folder / ALLOWLIST, folder / PRIVATE)] == [
        0o700,
        0o755,
        0o644,
        0o644,
    ]
    for name in (ALLOWLIST, PRIVATE):
        assert (folder / name).read_text().startswith("# ")
    assert "Package registries are not listed. Add the hosts" in (folder / ALLOWLIST).read_text()


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    prepare(tmp_path / "egress")
    (tmp_path / "egress" / ALLOWLIST).write_text("mine.test\n")
    assert prepare(tmp_path / "egress") == Lists(("mine.test",), ())
    (tmp_path / "egress" / PRIVATE).write_text("mine.test\n")
    assert prepare(tmp_path / "egress") == Lists(("mine.test",), ("mine.test",))


def test_faults_are_told_all_at_once_with_their_folder(tmp_path: Path) -> None:
    prepare(tmp_path / "egress")
    (tmp_path / "egress" / ALLOWLIST).write_text("a:1\n*.b\n")
    with pytest.raises(ConfigError) as raised:
        prepare(tmp_path / "egress")
    assert raised.value.exit_code == 2
    lines = raised.value.message.splitlines()
    assert str(tmp_path / "egress") in lines[0]
    assert [line.partition(":")[0].strip() for line in lines[1:]] == [f"{ALLOWLIST}, line 1", f"{ALLOWLIST}, line 2"]


@pytest.mark.parametrize(
    ("name", "wrong", "remedy"),
    [
        ("", 0o700, "chmod 755"),
        ("", 0o777, "chmod 755"),
        (ALLOWLIST, 0o640, "chmod 644"),
        (PRIVATE, 0o666, "chmod 644"),
    ],
)
def test_what_the_proxy_cannot_read_or_anybody_can_write_is_refused(
    tmp_path: Path, name: str, wrong: int, remedy: str
) -> None:
    folder = tmp_path / "egress"
    prepare(folder)
    (folder / name).chmod(wrong)
    with pytest.raises(ConfigError, match=f"{wrong:04o}.*{remedy} {folder / name}"):
        prepare(folder)


def test_a_link_is_refused_because_it_leads_nowhere_in_the_proxy(tmp_path: Path) -> None:
    folder = tmp_path / "egress"
    folder.mkdir(mode=0o755)
    (tmp_path / "elsewhere").write_text("a.test\n")
    (folder / ALLOWLIST).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ConfigError, match="is not a plain file"):
        prepare(folder)
    assert (tmp_path / "elsewhere").read_text() == "a.test\n"


def test_a_folder_that_cannot_be_made_is_a_fault_of_the_surroundings(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InfraError, match="PI_EGRESS_DIR="):
        prepare(tmp_path / "file" / "egress")
    with pytest.raises(InfraError, match="PI_EGRESS_DIR="):
        prepare(tmp_path / "file")
