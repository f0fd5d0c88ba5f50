"""The real runner as a process in a prepared job folder, and what it left behind."""

import json
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]

#: The stub needs the project's root on its path, and the runner starts it in the workspace.
_STUB = f"""
import runpy, sys
sys.path.insert(0, {str(ROOT)!r})
runpy.run_module("tests.fakes.agent", run_name="__main__")
"""


@dataclass(frozen=True)
class Ended:
    """What a runner left behind."""

    code: int
    lines: list[dict[str, object]]
    stderr: str

    @property
    def exit_line(self) -> dict[str, object]:
        """The one exit line, which must be the last."""
        assert [line["event"] for line in self.lines].count("exit") == 1, self.lines
        assert self.lines[-1]["event"] == "exit"
        return self.lines[-1]

    def events(self, name: str) -> list[dict[str, object]]:
        """All lines of one event."""
        return [line for line in self.lines if line["event"] == name]


@dataclass
class Job:
    """A job folder and what the runner is told about it."""

    root: Path
    environ: dict[str, str] = field(default_factory=dict)
    layout: dict[str, object] = field(default_factory=dict)
    started: list[subprocess.Popen[bytes]] = field(default_factory=list)

    @property
    def note(self) -> Path:
        """Where a stub leaves what a test asserts on."""
        return self.root / "note"

    def start(self, scenario: str, argument: str | None = None) -> subprocess.Popen[bytes]:
        """Start the runner with a stub agent; the stub's argument is the note's path unless given."""
        command = [sys.executable, "-c", _STUB, scenario, str(self.note) if argument is None else argument]
        launcher = [sys.executable, str(ROOT / "tests/fakes/agent/launcher.py")]
        process = subprocess.Popen(
            [*launcher, json.dumps({"pi_command": command, **self.layout})],
            # A buffer would keep what follows the line that was waited for.
            bufsize=0,
            env=self.environ,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        self.started.append(process)
        return process

    def run(self, scenario: str, argument: str | None = None) -> Ended:
        """Run it to its end."""
        return ended(self.start(scenario, argument))


def ended(process: subprocess.Popen[bytes], before: bytes = b"") -> Ended:
    """Wait for the runner; `before` is output that was read already."""
    stdout, stderr = process.communicate(timeout=60)
    lines = [json.loads(line) for line in (before + stdout).split(b"\n") if line.strip()]
    return Ended(process.returncode, lines, stderr.decode())


def read_until(process: subprocess.Popen[bytes], event: str) -> bytes:
    """Output up to and with the first line of that event."""
    assert process.stdout is not None
    seen = b""
    while not seen.endswith(b"\n") or f'{{"event":"{event}"'.encode() not in seen:
        line = process.stdout.readline()
        assert line, seen
        seen += line
    return seen
