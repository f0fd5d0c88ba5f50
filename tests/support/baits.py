"""Files of a work tree that make a program do something if it runs in that folder without care.

Python imports modules and reads configuration from the current folder, a shell finds programs there. Each is a `Trap`
whose spring is that carelessness.
"""

from tests.support.traps import Trap

#: Named after what the product imports, or what a Python or a worker looks for by itself.
_MODULES = (
    "celeryconfig",
    "celery",
    "kombu",
    "redis",
    "docker",
    "rich",
    "click",
    "pydantic",
    "structlog",
    "filelock",
    "json",
    "conftest",
)


def _file(name: str, content: str) -> str:
    """Shell that writes `content`, in which `@` stands for the mark's path."""
    folder = f'mkdir -p "$(dirname {name})"\n' if "/" in name else ""
    return f"{folder}sed \"s|@|$MARK|\" > {name} <<'END'\n{content}\nEND\n"


def _module(name: str, file: str, spring: str) -> Trap:
    return Trap(name, "", tree=_file(file, 'open("@", "w").close()'), springs=(spring,), guarded=())


def _settings(name: str, file: str, heading: str, value: str, reader: str) -> Trap:
    """Settings that the program would show to heed by making a folder; `reader` is an expression of Python."""
    content = "\n".join(part for part in (heading, f"PI_EGRESS_DIR={value}", f"PI_LOGS_DIR={value}") if part)
    spring = (
        f"PI_EGRESS_DIR=$(\"$PYTHON\" -P -c '{reader}') DOCKER_HOST=unix:///nonexistent/engine.sock "
        '"$PROGRAM" egress up'
    )
    return Trap(name, "", tree=_file(file, content), springs=(spring,), guarded=())


def _program(name: str) -> Trap:
    tree = f'printf "#!/bin/sh\\n$FIRE\\n" > {name}\nchmod 755 {name}'
    return Trap(f"program-{name}", "", tree=tree, springs=(f'PATH=".:$PATH"; {name} --version',), guarded=())


BAITS = (
    *(_module(f"{name}.py", f"{name}.py", f'"$PYTHON" -c "import {name}"') for name in _MODULES),
    _module("pidispatch", "pidispatch/__init__.py", '"$PYTHON" -c "import pidispatch"'),
    _module("sitecustomize.py", "sitecustomize.py", 'PYTHONPATH=. "$PYTHON" -c pass'),
    # A virtual environment has no place for it, so the interpreter that it was made with is asked.
    _module("usercustomize.py", "usercustomize.py", 'PYTHONPATH=. "$(readlink -f "$PYTHON")" -c pass'),
    _settings("dotenv", ".env", "", "@", 'import dotenv; print(dotenv.dotenv_values(".env")["PI_EGRESS_DIR"])'),
    _settings(
        "pyproject.toml",
        "pyproject.toml",
        "[tool.pydantic-settings]",
        '"@"',
        'from tomllib import *; c = load(open("pyproject.toml", "rb")); '
        'print(c["tool"]["pydantic-settings"]["PI_EGRESS_DIR"])',
    ),
    _settings(
        "setup.cfg",
        "setup.cfg",
        "[pi-dispatch]",
        "@",
        'from configparser import *; c = ConfigParser(); c.read("setup.cfg"); print(c["pi-dispatch"]["PI_EGRESS_DIR"])',
    ),
    Trap(
        "logging.ini",
        "",
        tree=_file(
            "logging.ini",
            "[loggers]\nkeys=root\n[handlers]\nkeys=file\n[formatters]\nkeys=\n[logger_root]\nhandlers=file\n"
            '[handler_file]\nclass=FileHandler\nargs=("@",)',
        ),
        springs=('"$PYTHON" -P -c \'from logging.config import fileConfig; fileConfig("logging.ini")\'',),
        guarded=(),
    ),
    *(_program(name) for name in ("git", "docker", "rm", "chmod")),
)
