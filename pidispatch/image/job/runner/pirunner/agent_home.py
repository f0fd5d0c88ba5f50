"""pi's own configuration folder, made afresh for the job.

pi keeps spend controls in files it also writes itself, so one that survived a job could change the next. The settings
are chosen here rather than inherited; a repository's own `.pi/settings.json` is never read.
"""

import json
import os
from collections.abc import Mapping
from pathlib import Path

from pirunner.environment import Environment
from pirunner.inputs import error_name, unreadable
from pirunner.layout import Layout
from pirunner.lines import Lines
from pirunner.refusal import config

#: Milliseconds of silence after which a request to the provider is given up. A slow steady stream is no silence.
_SILENCE_MS = 120_000


def settings(environment: Environment) -> Mapping[str, object]:
    """pi's settings for this job (pi's documentation, "Settings Reference").

    Compaction is off because its failed calls cannot be metered; provider-level retries because they cannot be seen.
    """
    return {
        "compaction": {"enabled": False},
        "retry": {
            "enabled": True,
            "maxRetries": environment.retry_max,
            "baseDelayMs": environment.retry_base_ms,
            "provider": {"timeoutMs": _SILENCE_MS, "maxRetries": 0},
        },
        "httpIdleTimeoutMs": _SILENCE_MS,
        "cacheWarming": "off",
        "enableInstallTelemetry": False,
        "defaultProjectTrust": "never",
        "defaultThinkingLevel": "off",
    }


def prepare(home: Path, layout: Layout, environment: Environment, lines: Lines) -> Path:
    """Make the folder with its settings and the overlay's models; return it.

    Raises Refusal: ``config`` when the folder cannot be written (pi would die on it), ``job-inputs-unreadable`` when
    the overlay's models cannot be read.
    """
    folder = home / ".pi" / "agent"
    models = _overlay_models(layout)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "settings.json").write_text(json.dumps(settings(environment)))
        if models is not None:
            (folder / "models.json").write_bytes(models)
    except OSError as error:
        code = error_name(error)
        lines.event("agent_dir_not_writable", path=str(folder), uid=os.getuid(), code=code)
        message = f"{folder} cannot be written by uid {os.getuid()} ({code}): the agent keeps its settings there"
        raise config(message) from error
    return folder


def _overlay_models(layout: Layout) -> bytes | None:
    path = layout.overlay / "models.json"
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise unreadable(path, error) from error
