"""Completion with a real bash, and what is offered where something is missing: nothing, in silence."""

import json
import os
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path

import click
import pytest

from pidispatch.cli.completion import (
    MOST,
    complete_failed_jobs,
    complete_jobs,
    complete_one_shots,
    complete_outputs,
    complete_records,
    complete_schedules,
    complete_triggers,
)
from pidispatch.cli.main import VERBS, _run

BIN = Path(sys.executable).parent
#: Sources the script, completes the words after `--`, prints what bash would offer.
BASH = r"""
eval "$(pi-dispatch completion bash)" || exit 9
spec=$(complete -p pi-dispatch) || exit 8
function=${spec##*-F }; function=${function%% *}
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1))
"$function" pi-dispatch "${COMP_WORDS[COMP_CWORD]}" ''
printf '%s\n' "${COMPREPLY[@]}"
"""
CONTEXT = click.Context(click.Command("x"))
PARAMETER = click.Argument(["job_id"])


def in_bash(*words: str, **variables: str) -> list[str]:
    """What a real bash offers for the last of `words`; nothing may be said beside it."""
    bash = shutil.which("bash")
    assert bash is not None, "bash is missing"
    environ = {"PATH": f"{BIN}:{os.environ['PATH']}", "HOME": os.environ["HOME"], "LANG": "C.UTF-8", **variables}
    # Measuring coverage of the program that the script asks is asked for by variables.
    environ |= {name: value for name, value in os.environ.items() if name.startswith("COVERAGE_")}
    done = subprocess.run(
        [bash, "--norc", "-c", BASH, "bash", "pi-dispatch", *words],
        env=environ,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert done.stderr == ""
    return done.stdout.split()


def offered(complete: object, incomplete: str = "") -> list[str]:
    assert callable(complete)
    return [item.value for item in complete(CONTEXT, PARAMETER, incomplete)]


def keep(folder: Path, *names: str) -> None:
    """Files, each newer than the one before."""
    folder.mkdir(exist_ok=True)
    for age, name in enumerate(reversed(names)):
        (folder / name).write_text("x")
        os.utime(folder / name, (1_000_000 - age, 1_000_000 - age))


def test_bash_completes_verbs_and_options(tmp_path: Path) -> None:
    assert in_bash("") == sorted(VERBS)
    assert in_bash("ru") == ["run", "runs"]
    assert in_bash("--ver") == ["--version"]
    assert in_bash("logs", "--fo") == ["--follow"]
    assert in_bash("egress", "") == ["down", "status", "up"]
    assert in_bash("unheard-of", "") == sorted(VERBS)


def test_bash_completes_the_ids_of_kept_output_newest_first(tmp_path: Path) -> None:
    keep(tmp_path, "local-b2.log", "local-a1.log", "local-b1.log", "other.log", "local-b3.json")
    assert in_bash("logs", "", PI_LOGS_DIR=str(tmp_path)) == ["other", "local-b1", "local-a1", "local-b2"]
    assert in_bash("logs", "-f", "local-b", PI_LOGS_DIR=str(tmp_path)) == ["local-b1", "local-b2"]


def test_where_something_is_missing_bash_offers_nothing(tmp_path: Path) -> None:
    assert in_bash("logs", "", PI_LOGS_DIR=str(tmp_path / "none")) == []
    assert in_bash("logs", "", PI_LOGS_DIR="not/absolute", PI_MAX_TURNS="many") == []


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_has_its_script(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert _run(["completion", shell]) == 0
    script = capsys.readouterr().out
    assert f"_PI_DISPATCH_COMPLETE={shell}_complete" in script
    assert "pi-dispatch" in script
    assert "%(" not in script
    if (program := shutil.which(shell)) is not None:
        flag = "--no-execute" if shell == "fish" else "-n"
        subprocess.run([program, flag], input=script, text=True, capture_output=True, timeout=60, check=True)


def test_another_shell_is_a_wrong_call(capsys: pytest.CaptureFixture[str]) -> None:
    assert _run(["completion", "tcsh"]) == 1
    assert "'tcsh' is not one of" in capsys.readouterr().err


def test_records_are_offered_newest_first_and_only_what_no_shell_reads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PI_LOGS_DIR", str(tmp_path))
    keep(tmp_path, "old.json", "$(touch x).json", "two words.json", "-f.json", "new.json", "new.log")
    assert offered(complete_records) == ["new", "old"]
    assert offered(complete_records, "o") == ["old"]
    assert offered(complete_outputs) == ["new"]
    keep(tmp_path, *(f"many-{number:03}.json" for number in range(MOST + 20)))
    assert offered(complete_records, "many")[:2] == ["many-119", "many-118"]
    assert len(offered(complete_records)) == MOST


def test_schedules_are_offered_as_their_file_has_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PI_TRIGGERS_FILE", raising=False)
    assert offered(complete_schedules) == []
    file = tmp_path / "triggers.json"
    monkeypatch.setenv("PI_TRIGGERS_FILE", str(file))
    assert offered(complete_schedules) == []
    file.write_text(json.dumps({"triggers": [{"on": {"id": name}} for name in ("nightly", "hourly", "$(x)")]}))
    assert offered(complete_schedules) == ["nightly", "hourly"]
    assert offered(complete_schedules, "h") == ["hourly"]
    assert in_bash("run", "--trigger", "n", PI_TRIGGERS_FILE=str(file)) == ["nightly"]
    file.write_text('{"triggers": [{}]}')
    assert offered(complete_schedules) == []


def test_rules_are_offered_by_their_places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "triggers.json"
    monkeypatch.setenv("PI_TRIGGERS_FILE", str(file))
    ons = [{"type": "label"}, {"type": "cron", "id": "nightly"}, {"type": "issue", "once": True}, {"once": False}]
    file.write_text(json.dumps({"triggers": [{"on": on} for on in ons]}))
    assert offered(complete_schedules) == ["nightly"]
    assert offered(complete_triggers) == ["0", "nightly", "2", "3"]
    assert offered(complete_one_shots) == ["2"]
    assert in_bash("triggers", "resume", "n", PI_TRIGGERS_FILE=str(file)) == ["nightly"]
    assert in_bash("triggers", "rearm", "", PI_TRIGGERS_FILE=str(file)) == ["2"]


@pytest.mark.parametrize("complete", [complete_jobs, complete_failed_jobs])
@pytest.mark.parametrize("url", ["unix:///nonexistent/socket", "nonsense", "redis://127.0.0.1:1/0"])
def test_without_a_server_no_job_is_offered(
    complete: object, url: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("VALKEY_URL", url)
    assert offered(complete) == []
    assert capsys.readouterr() == ("", "")


def test_our_own_server_is_neither_started_nor_joined(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("VALKEY_URL", raising=False)
    monkeypatch.setenv("PI_STATE_DIR", str(tmp_path / "state"))
    assert offered(complete_jobs) == []
    assert list(tmp_path.iterdir()) == []


def test_verbs_are_completed_without_loading_one() -> None:
    code = """
import sys
from pidispatch.cli.main import cli
try:
    cli.main(prog_name="pi-dispatch")
finally:
    print(*sys.modules)
"""
    environ = {
        **os.environ,
        "_PI_DISPATCH_COMPLETE": "bash_complete",
        "COMP_WORDS": "pi-dispatch\nru",
        "COMP_CWORD": "1",
    }
    done = subprocess.run([sys.executable, "-c", code], env=environ, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("plain,run\nplain,runs\n")
    assert not {"pydantic", "rich", "redis", "celery"} & set(done.stdout.split())


def test_a_server_that_hangs_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        monkeypatch.setenv("VALKEY_URL", f"redis://127.0.0.1:{listener.getsockname()[1]}/0")
        begun = time.monotonic()
        assert offered(complete_jobs) == []
        assert time.monotonic() - begun < 2
