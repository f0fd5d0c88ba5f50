"""Where things are inside the job container, and how long the runner waits for each of them."""

from dataclasses import dataclass
from pathlib import Path

_PACKAGES = Path("/app/node_modules/@earendil-works")


@dataclass(frozen=True, kw_only=True)
class Layout:
    """Paths and graces of one run. The defaults are the job image's; only tests build another one."""

    #: Read-only folder the host prepared: ``prompt.md``, ``event.json``, ``pi/``, ``trigger-skills/``.
    job_dir: Path = Path("/job")
    #: The repository the agent works in; also its current folder.
    workspace: Path = Path("/workspace")
    #: The operator's overlay; optional.
    overlay: Path = Path("/opt/pi-global")
    #: Where a local job leaves requests for chained jobs; optional.
    outbox: Path = Path("/outbox")
    #: Where a job's transcript is to lie; no home may be there.
    session: Path = Path("/session")
    #: Guardrails, always the first addition to the system prompt.
    rules: Path = Path("/opt/pi-dispatch/HARD_RULES.md")
    #: Used when HOME is unset or empty.
    default_home: Path = Path("/home/pi")
    #: Program and leading arguments that start pi.
    pi_command: tuple[str, ...] = (
        "/usr/local/bin/node",
        str(_PACKAGES / "pi-coding-agent/dist/bundle/cli.js"),
    )
    #: Extension that stops the agent at its budget from inside.
    budget_extension: Path = Path("/app/runner/budget.js")
    #: Compiled code of pi, made when the image was built.
    compile_cache: Path = Path("/app/compile-cache")
    #: Manifest whose ``version`` names the price table that was used.
    pi_ai_manifest: Path = _PACKAGES / "pi-ai/package.json"

    #: Seconds pi may take to answer a command.
    reply_seconds: float = 30.0
    #: Seconds pi may take to stop its run after an abort.
    abort_seconds: float = 10.0
    #: Seconds pi may take to exit after its run has settled and its stdin was closed.
    settle_seconds: float = 10.0
    #: Seconds between SIGTERM and SIGKILL for a pi that did not exit.
    kill_seconds: float = 2.0
    #: Seconds from the runner's own SIGTERM to the last moment at which the exit line is printed.
    terminate_seconds: float = 3.0

    @property
    def trigger_skills(self) -> Path:
        """Skills that the operator's rule brings along; optional."""
        return self.job_dir / "trigger-skills"
