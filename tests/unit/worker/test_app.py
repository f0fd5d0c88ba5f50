"""How `celery -A pidispatch` finds the application, and what its other commands need."""

import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
import pytest
from celery import Celery

from pidispatch.jobs.producer import TASK
from pidispatch.worker import app as module
from pidispatch.worker.app import make_app
from pidispatch.worker.consumer import FetchGate, Renewal
from pidispatch.worker.tick import TICK
from tests.unit.worker.conftest import Application


@pytest.fixture(autouse=True)
def _environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("VALKEY_URL", "VALKEY_PASSWORD"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PI_STATE_DIR", str(tmp_path / "state"))


def found_by(command: str | None) -> Celery:
    """The application as Celery's command line asks for it, with this command."""
    with click.Context(click.Group("celery")) as context:
        context.invoked_subcommand = command
        return make_app()


def test_it_has_our_tasks_and_steps(application: Application) -> None:
    assert {TASK, TICK} <= set(application.app.tasks)
    assert {Renewal, FetchGate} <= application.app.steps["consumer"]


@pytest.mark.parametrize("command", [None, "worker", "report", "multi"])
def test_a_command_that_needs_no_server_is_given_none(command: str | None, tmp_path: Path) -> None:
    assert found_by(command).main == "pidispatch"
    assert not (tmp_path / "state").exists()


def test_without_a_command_line_it_is_made_too(tmp_path: Path) -> None:
    assert make_app().main == "pidispatch"
    assert not (tmp_path / "state").exists()


@pytest.mark.parametrize("command", ["inspect", "status", "flower", "control", "events"])
def test_a_command_that_lives_on_a_server_never_starts_one(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as caught:
        found_by(command)
    assert caught.value.code == 1
    err = capsys.readouterr().err
    assert err.startswith("pi-dispatch: pi-dispatch's own server does not run, and this does not start it. Start a ")
    assert not (tmp_path / "state").exists()


def test_a_server_that_runs_is_held_until_the_program_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    held: list[str] = []

    @contextmanager
    def find(_: object) -> Any:
        held.append("joined")
        yield
        held.append("left")

    monkeypatch.setattr(module, "find_server", find)
    found_by("inspect")
    assert held == ["joined"]
    module._joined.close()
    assert held == ["joined", "left"]


@pytest.mark.parametrize("command", ["worker", "status"])
def test_settings_that_cannot_be_read_end_the_program_with_the_message_alone(
    command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PI_MAX_TURNS", "many")
    with pytest.raises(SystemExit) as caught:
        found_by(command)
    assert caught.value.code == 2
    assert capsys.readouterr().err.startswith("pi-dispatch: PI_MAX_TURNS='many' must be a whole number")


def test_the_package_names_no_other_attribute() -> None:
    import pidispatch

    with pytest.raises(AttributeError, match="module 'pidispatch' has no attribute 'celery'"):
        _ = pidispatch.celery


def test_the_package_itself_loads_nothing_heavy() -> None:
    heavy = "('celery', 'kombu', 'redis', 'docker', 'pydantic', 'structlog')"
    script = f"import sys, pidispatch; print([m for m in sys.modules if m.split('.')[0] in {heavy}])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_the_application_is_made_once(monkeypatch: pytest.MonkeyPatch) -> None:
    import pidispatch

    monkeypatch.delitem(vars(pidispatch), "app", raising=False)
    assert pidispatch.app is pidispatch.app
    monkeypatch.delitem(vars(pidispatch), "app")
