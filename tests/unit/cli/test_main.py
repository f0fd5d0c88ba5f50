"""The program itself: which exit code it ends with, and what it loads to say so."""

import subprocess
import sys

import click
import pytest

from pidispatch import __version__
from pidispatch.cli.main import VERBS, _run, main
from pidispatch.values.errors import ConfigError, InfraError


@click.command()
@click.argument("end")
def probe(end: str) -> int | None:
    """A verb that ends as it is told."""
    match end:
        case "config":
            raise ConfigError("PI_MODEL=\x1b[31mx is wrong.\nWrite another", "setting")
        case "infra":
            raise InfraError("the engine does not answer", "engine")
        case "usage":
            raise click.UsageError("not so")
        case "abort":
            raise click.Abort
        case "interrupt":
            raise KeyboardInterrupt
        case "bug":
            raise ZeroDivisionError
        case "nothing":
            return None
        case _:
            return int(end)


@pytest.fixture(autouse=True)
def _probe_is_a_verb(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(VERBS, "probe", (f"{__name__}:probe", "Ends as it is told."))


@pytest.mark.parametrize(
    ("end", "code"),
    [("0", 0), ("1", 1), ("2", 2), ("nothing", 0), ("config", 2), ("infra", 1), ("usage", 1), ("abort", 1)],
)
def test_the_exit_code_of_a_verb(end: str, code: int, capsys: pytest.CaptureFixture[str]) -> None:
    assert _run(["probe", end]) == code
    assert capsys.readouterr().out == ""


def test_an_interrupt_is_no_success(capsys: pytest.CaptureFixture[str]) -> None:
    assert _run(["probe", "interrupt"]) == 1
    assert capsys.readouterr().out == ""


def test_a_mistake_of_our_own_is_not_hidden() -> None:
    with pytest.raises(ZeroDivisionError):
        _run(["probe", "bug"])


def test_an_error_is_told_on_standard_error_and_escaped(capsys: pytest.CaptureFixture[str]) -> None:
    _run(["probe", "config"])
    assert capsys.readouterr().err == "pi-dispatch: PI_MODEL=\\u{001B}[31mx is wrong.\nWrite another\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["unheard-of"], "No such command 'unheard-of'.\n"),
        (["stauts"], "No such command 'stauts'. Did you mean 'status'?"),
        (["\x1b[31mrun"], "No such command '\\x1b[31mrun'.\n"),
        (["egress", "upp"], "Did you mean 'up'?"),
        (["--unheard-of"], "No such option"),
        (["--versoin"], "No such option '--versoin'. Did you mean '--version'?"),
        (["logs", "--folow", "x"], "No such option '--folow'. Did you mean '--follow'?"),
        (["probe"], "Missing argument 'END'"),
        (["probe", "0", "1"], "unexpected extra argument"),
        (["run"], "FOLDER is missing; name both, or a schedule with --trigger ID"),
        (["run", "."], "--task is missing; name both, or a schedule with --trigger ID"),
        (["run", ".", "--task", "x", "--max-turns", "03"], "'03' must be a whole number in plain decimal digits"),
        (["run", ".", "--task", "x", "--max-turns", "0"], "'0' must be 1 or more"),
        (["run", ".", "--task", "x", "--max-turns", "1_000"], "'1_000' must be a whole number"),
        (["run", ".", "--task", ""], "--task is empty"),
        (["run", ".", "--task", " \t\n"], "--task is empty"),
        (["run", ".", "--task", "caf\udce9"], "--task is not valid UTF-8"),
    ],
)
def test_a_wrong_call_shows_the_usage_and_ends_with_1(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _run(arguments) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("Usage: pi-dispatch")
    assert message in captured.err


def test_an_option_without_its_text_is_a_wrong_call(capsys: pytest.CaptureFixture[str]) -> None:
    assert _run(["run", ".", "--task"]) == 1
    assert "Option '--task' requires an argument" in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [[], ["--help"], ["-h"]])
def test_help_lists_every_verb(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert _run(arguments) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    assert captured.out.startswith("Usage: pi-dispatch")
    for verb, (_, line) in VERBS.items():
        assert f"  {verb} " in captured.out
        assert line in captured.out


@pytest.mark.parametrize("verb", ["run", "image"])
def test_every_verb_has_help(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert _run([verb, "--help"]) == 0
    assert f"Usage: pi-dispatch {verb}" in capsys.readouterr().out


def test_the_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert _run(["--version"]) == 0
    assert capsys.readouterr().out == f"pi-dispatch, version {__version__}\n"


def test_the_program_ends_with_the_exit_code(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["pi-dispatch", "probe", "2"])
    with pytest.raises(SystemExit) as caught:
        main()
    assert caught.value.code == 2


@pytest.mark.parametrize("arguments", [[], ["--help"], ["--version"], ["unheard-of"]])
def test_nothing_heavy_is_loaded_before_a_verb_is_called(arguments: list[str]) -> None:
    code = """
import sys
from pidispatch.cli.main import _run
_run(sys.argv[1:])
print("loaded", *sorted({name.split(".")[0] for name in sys.modules}))
"""
    done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split("loaded ")[-1].split())
    assert {"click", "pidispatch"} <= loaded
    assert not loaded & {"docker", "pydantic", "pydantic_core", "pydantic_settings", "rich", "structlog", "requests"}
    assert not loaded & {"redis", "celery", "kombu", "sqlalchemy", "asyncio"}
