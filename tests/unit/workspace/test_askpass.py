"""What git is told when it asks for a credential: only by one server, and only in its environment."""

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from pidispatch.values.errors import InfraError
from pidispatch.workspace.askpass import askpass

TOKEN = "ghs_a$(touch x)'\"%s\\n"


@pytest.fixture
def beside(tmp_path: Path) -> Path:
    """The job's directory."""
    path = tmp_path / "job"
    path.mkdir()
    return path


def ask(variables: Mapping[str, str], question: str) -> tuple[int, str]:
    done = subprocess.run(
        [variables["GIT_ASKPASS"], question],
        env={"PATH": os.defpath, **variables},
        capture_output=True,
        check=False,
    )
    return done.returncode, done.stdout.decode()


@pytest.mark.parametrize(
    ("origin", "password"),
    [
        ("https://github.com", "https://x-access-token@github.com"),
        ("http://127.0.0.1:8000", "http://x-access-token@127.0.0.1:8000"),
        ("https://[::1]:8443", "https://x-access-token@[::1]:8443"),
    ],
)
def test_its_own_server_is_told_name_and_token(beside: Path, origin: str, password: str) -> None:
    with askpass(origin, TOKEN, beside) as variables:
        assert ask(variables, f"Username for '{origin}': ") == (0, "x-access-token\n")
        assert ask(variables, f"Password for '{password}': ") == (0, f"{TOKEN}\n")


@pytest.mark.parametrize(
    "question",
    [
        "",
        "Password: ",
        "Username for 'https://github.com.evil.test': ",
        "Username for 'http://github.com': ",
        "Password for 'https://x-access-token@github.com.evil.test': ",
        "Password for 'https://x-access-token@githubXcom': ",
        "Password for 'https://somebody@github.com': ",
        "Password for 'https://github.com': ",
        "Password for 'http://x-access-token@github.com': ",
        "Password for 'http://proxy.test:3128': ",
        "Are you sure you want to continue connecting (yes/no)? ",
    ],
)
def test_nobody_else_is_told_anything(beside: Path, question: str) -> None:
    with askpass("https://github.com", TOKEN, beside) as variables:
        assert ask(variables, question) == (1, "")


def test_the_script_is_closed_to_others_and_holds_no_secret(beside: Path) -> None:
    with askpass("https://github.com", TOKEN, beside) as variables:
        script = Path(variables["GIT_ASKPASS"])
        assert script.parent.parent == beside
        assert script.parent.name.startswith("pi-askpass-")
        assert (script.parent.stat().st_mode & 0o777, script.stat().st_mode & 0o777) == (0o700, 0o700)
        assert "ghs_" not in script.read_text()
        assert variables["GIT_ASKPASS_TOKEN"] == TOKEN


def test_it_is_gone_afterwards_whatever_happens(beside: Path) -> None:
    with pytest.raises(KeyError), askpass("https://github.com", TOKEN, beside):
        raise KeyError
    assert os.listdir(beside) == []


def test_a_folder_that_cannot_be_made_is_a_fault(beside: Path) -> None:
    beside.rmdir()
    with pytest.raises(InfraError) as caught, askpass("https://github.com", TOKEN, beside):
        pass
    assert caught.value.cause == "clone-failed"
    assert "PI_JOBS_DIR" in caught.value.message
    assert "ghs_" not in caught.value.message


def test_a_script_that_cannot_be_written_is_a_fault_and_leaves_no_folder(
    beside: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_text", full)
    with pytest.raises(InfraError) as caught, askpass("https://github.com", TOKEN, beside):
        pass
    assert "No space left" in caught.value.message
    assert os.listdir(beside) == []


def test_where_no_program_may_be_started_it_is_said(beside: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file system without that right: one that is mounted noexec answers the same."""
    monkeypatch.setattr(Path, "chmod", lambda *_: None)
    with pytest.raises(InfraError, match="not mounted noexec") as caught, askpass("https://github.com", TOKEN, beside):
        raise AssertionError("it was handed out")
    assert (caught.value.cause, list(beside.iterdir())) == ("clone-failed", [])
