"""The user at a terminal: lines of shell as a person types them, with a git of no configuration but the folder's."""

import os
import pty
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

_USER = {
    "PATH": os.environ.get("PATH", os.defpath),
    "HOME": "/nonexistent",
    "LC_ALL": "C",
    "TERM": "xterm",
    "PYTHON": sys.executable,
    "PROGRAM": str(Path(sys.executable).parent / "pi-dispatch"),
    "PAGER": "cat",
    "EDITOR": "true",
    # A file, since what variables say does not reach the other side of a push.
    "GIT_CONFIG_SYSTEM": str(Path(__file__).with_name("user.gitconfig")),
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_AUTHOR_NAME": "a",
    "GIT_AUTHOR_EMAIL": "a@example.test",
    "GIT_COMMITTER_NAME": "a",
    "GIT_COMMITTER_EMAIL": "a@example.test",
}


def as_user(folder: Path, line: str, variables: Mapping[str, str] | None = None, *, check: bool = False) -> str:
    """A line of shell in a folder, as its user would type it at a terminal: what it printed.

    PYTHON is this interpreter, PROGRAM the product.
    """
    controller, terminal = os.openpty()
    process = subprocess.Popen(
        ["sh", "-c", line],
        cwd=folder,
        env={**_USER, **(variables or {})},
        stdin=subprocess.DEVNULL,
        stdout=terminal,
        stderr=terminal,
        start_new_session=True,
    )
    os.close(terminal)
    shown = read_all(controller)
    if process.wait(60) != 0 and check:
        raise RuntimeError(f"exit {process.returncode}: {shown}")
    return shown


def at_terminal(argv: list[str], env: Mapping[str, str], cwd: Path) -> tuple["subprocess.Popen[bytes]", int]:
    """Start a program at a terminal of its own; the process, and the other side of the terminal."""
    controller, terminal = pty.openpty()
    process = subprocess.Popen(
        argv, env=dict(env), cwd=cwd, stdin=terminal, stdout=terminal, stderr=terminal, start_new_session=True
    )
    os.close(terminal)
    return process, controller


def read_all(terminal: int) -> str:
    """Everything written to a terminal until its last writer is gone."""
    chunks = []
    while True:
        try:
            chunk = os.read(terminal, 65536)
        except OSError:
            # Linux says EIO once nobody holds the other side.
            break
        if not chunk:
            break
        chunks.append(chunk)
    os.close(terminal)
    return b"".join(chunks).decode("utf-8", "replace")
