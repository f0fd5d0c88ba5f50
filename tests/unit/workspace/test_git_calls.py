"""Host git's own configuration file, and the one bound of all calls that read what a run changed."""

import subprocess
import time
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pidispatch.values.limits import Limits
from pidispatch.workspace import git as host_git
from pidispatch.workspace.git import _config_text
from pidispatch.workspace.process import Finished
from tests.unit.workspace.conftest import Opener
from tests.unit.workspace.repository import Repository

_VALUES = st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=20)


@given(path=_VALUES, lines=st.lists(st.sampled_from(["a", '"', "\\", "\n", ";", "#", " "]), max_size=8))
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_git_reads_what_was_written(tmp_path: Path, path: str, lines: list[str]) -> None:
    written = {"core.excludesFile": path + "".join(lines), "filter.lfs.clean": "git-lfs clean -- %f", "gc.auto": "0"}
    (tmp_path / "config").write_bytes(_config_text(written).encode())
    command = ["git", "config", "--file", str(tmp_path / "config"), "--null", "--list"]
    read = subprocess.run(command, check=True, capture_output=True).stdout.decode()

    assert dict(entry.split("\n", 1) for entry in read.split("\0")[:-1]) == {
        key.lower(): value for key, value in written.items()
    }


def test_no_call_outlasts_what_is_left_of_all_of_them(
    repository: Repository, opened: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    git = opened(repository, Limits(git_timeout_s=50))
    allowed: list[float] = []

    def run_program(*_: object, timeout_s: float, **__: object) -> Finished:
        allowed.append(timeout_s)
        return Finished(0, git.sha.encode(), b"", truncated=False)

    monkeypatch.setattr(host_git, "run_program", run_program)
    git.call("status")
    bounded = git.within(7)
    bounded.call("status")
    assert bounded.head() == git.sha
    replace(bounded, deadline=time.monotonic() - 1).call("status")

    assert allowed[0] == 50
    assert all(0 < seconds <= 7 for seconds in allowed[1:])
    assert allowed[-1] < 1
