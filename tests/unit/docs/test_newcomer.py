"""`tools/newcomer` types what the README says and nothing else, and holds it to the times that the README promises."""

import os
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
SCRIPT = ROOT / "tools" / "newcomer"
_SECTION = re.compile(r"^## Two commands\n(.*?)^## ", re.DOTALL | re.MULTILINE)


def _bash(program: str, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a line of bash with the script's functions."""
    return subprocess.run(
        ["bash", "-c", f"source {SCRIPT}\n{program}", "test", *arguments],
        env={"PATH": os.environ["PATH"], **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def _steps() -> list[list[str]]:
    """Name, most seconds and command of each step."""
    return [line.split("|") for line in _bash("printf '%s\\n' \"${steps[@]}\"").stdout.splitlines()]


def _section() -> str:
    found = _SECTION.search((ROOT / "README.md").read_text())
    assert found is not None
    return found[1]


def test_it_types_the_commands_of_the_readme() -> None:
    block = re.search(r"```sh\n(.*?)```", _section(), re.DOTALL)
    assert block is not None
    written = [line.split("#")[0].strip() for line in block[1].splitlines()]
    assert list(dict.fromkeys(command for _, _, command in _steps())) == written


def test_its_debian_has_what_the_readme_asks_for() -> None:
    [asked] = re.findall(r"`apt-get install -y ([^`]*)`", _section())
    assert _bash('echo "${packages[*]}"').stdout.split() == asked.split()


def test_its_bounds_are_those_of_the_readme() -> None:
    most = {name: int(seconds) for name, seconds, _ in _steps()}
    [cold] = re.findall(r"Under (\d+) minutes\s+the\s+first\s+time", _section())
    [test] = re.findall(r"`make test` takes at most (\d+) minutes", _section())
    assert most == {"demo, cold": int(cold) * 60, "demo, warm": 20, "test": int(test) * 60}


@pytest.mark.parametrize("name", ["newcomer", "newcomer-inside"])
def test_the_scripts_are_valid_bash(name: str) -> None:
    done = subprocess.run(["bash", "-n", SCRIPT.with_name(name)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("arguments", [("a", "b"), ("--keep",)])
def test_a_wrong_call_says_how(arguments: tuple[str, ...]) -> None:
    done = subprocess.run([SCRIPT, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "usage: tools/newcomer [DIR]" in done.stderr


def test_an_ordinary_user_is_told_what_it_needs(tmp_path: Path) -> None:
    (tmp_path / "id").write_text("#!/bin/sh\necho 1000\n")
    (tmp_path / "id").chmod(0o755)
    environment = {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    done = subprocess.run([SCRIPT], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "only be made and entered by root on Debian" in done.stderr


def test_the_table_has_every_figure_and_their_sum(tmp_path: Path) -> None:
    (tmp_path / "times").write_text("123 - root file system\n2400 240 demo, cold\n87 20 demo, warm\n")
    done = _bash('report "$1"', str(tmp_path / "times"))
    assert (done.returncode, done.stderr) == (0, "")
    assert [line.rsplit(maxsplit=2) for line in done.stdout.splitlines()[3:5]] == [
        ["demo, cold", "240.0", "240"],
        ["demo, warm", "8.7", "20"],
    ]
    assert done.stdout.splitlines()[2].split() == ["root", "file", "system", "12.3", "-"]
    assert done.stdout.splitlines()[5].split() == ["total", "261.0"]


def test_a_step_that_took_too_long_is_a_failure_with_its_figure(tmp_path: Path) -> None:
    (tmp_path / "times").write_text("2401 240 demo, cold\n214 20 demo, warm\n")
    done = _bash('report "$1"', str(tmp_path / "times"))
    assert done.returncode == 1
    assert done.stderr.splitlines() == [
        "newcomer: FAILED: demo, cold took 240.1 s, more than 240 s",
        "newcomer: FAILED: demo, warm took 21.4 s, more than 20 s",
    ]


@pytest.mark.parametrize(
    ("name", "taken"),
    [
        ("https_proxy", True),
        ("NO_PROXY", True),
        ("PIP_INDEX_URL", True),
        ("PIP_CERT", True),
        ("SSL_CERT_FILE", True),
        ("NODE_EXTRA_CA_CERTS", True),
        ("npm_config_registry", True),
        ("PI_EGRESS_PROXY", False),
        ("DOCKER_HOST", False),
        ("PIP_FIND_LINKS", False),
        ("VIRTUAL_ENV", False),
    ],
)
def test_only_the_way_to_the_mirrors_is_taken_over(name: str, taken: bool) -> None:
    assert _bash('reaches "$1"', name).returncode == (0 if taken else 1)
