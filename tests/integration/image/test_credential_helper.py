"""The credential helper of the job image: whom it answers, and that it says nothing to anybody else."""

import subprocess
from pathlib import Path

import pytest

from pidispatch.image import context_path

_HELPER = context_path("job") / "git-credential-job"
_GITHUB = {"GITHUB_TOKEN": "t0ken", "GH_TOKEN": "t0ken"}
_OWN = {**_GITHUB, "GH_HOST": "ghe.example:8443", "GH_ENTERPRISE_TOKEN": "t0ken"}


def _answer(place: Path, environ: dict[str, str], asked: str, *, action: tuple[str, ...] = ("get",)) -> str:
    """What the helper prints; it writes nothing else and ends well, whatever it is asked."""
    done = subprocess.run(
        ["/bin/sh", _HELPER, *action], input=asked, env=environ, cwd=place, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr, list(place.iterdir())) == (0, "", [])
    return done.stdout


@pytest.mark.parametrize(
    ("environ", "host"),
    [
        (_GITHUB, "github.com"),
        ({"GITHUB_TOKEN": "t0ken", "GH_HOST": "github.com"}, "github.com"),
        (_OWN, "ghe.example:8443"),
        ({"GH_ENTERPRISE_TOKEN": "t0ken", "GH_HOST": "ghe.example"}, "ghe.example"),
    ],
)
def test_the_tokens_own_host_gets_it(tmp_path: Path, environ: dict[str, str], host: str) -> None:
    asked = f"protocol=https\nhost={host}\npath=o/r.git\nwwwauth[]=Basic realm=x\n\n"
    assert _answer(tmp_path, environ, asked) == "username=x-access-token\npassword=t0ken\n"


@pytest.mark.parametrize(
    ("environ", "asked"),
    [
        (_GITHUB, "protocol=http\nhost=github.com\n\n"),
        (_GITHUB, "protocol=https\nhost=github.com.evil.example\n\n"),
        (_GITHUB, "protocol=https\nhost=gist.github.com\n\n"),
        (_GITHUB, "protocol=https\n\nhost=github.com\n"),
        (_GITHUB, "host=github.com\n\n"),
        (_GITHUB, ""),
        (_OWN, "protocol=https\nhost=github.com\n\n"),
        ({"GH_ENTERPRISE_TOKEN": "t0ken"}, "protocol=https\nhost=github.com\n\n"),
        ({"GITHUB_TOKEN": ""}, "protocol=https\nhost=github.com\n\n"),
        ({}, "protocol=https\nhost=github.com\n\n"),
        ({"protocol": "https", "host": "github.com", **_GITHUB}, "\n"),
    ],
)
def test_nobody_else_gets_it(tmp_path: Path, environ: dict[str, str], asked: str) -> None:
    assert _answer(tmp_path, environ, asked) == ""


@pytest.mark.parametrize("action", [("store",), ("erase",), ()])
def test_it_keeps_nothing(tmp_path: Path, action: tuple[str, ...]) -> None:
    asked = "protocol=https\nhost=github.com\nusername=u\npassword=p\n\n"
    assert _answer(tmp_path, _GITHUB, asked, action=action) == ""
