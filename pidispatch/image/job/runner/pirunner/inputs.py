"""Start-up checks of the mounted folders: all before anything is spent, in a fixed order (docs/reference/runner.md)."""

import errno
import os
import time
from pathlib import Path

from pirunner.layout import Layout
from pirunner.lines import Lines
from pirunner.refusal import Refusal, RefusalReason, config


def check_readable(layout: Layout) -> None:
    """Every mount that is there can be listed and entered; raises Refusal ``job-inputs-unreadable``."""
    for folder in (layout.job_dir, layout.trigger_skills, layout.overlay, layout.workspace):
        try:
            os.listdir(folder)
            os.stat(folder / ".")
        except FileNotFoundError:
            continue
        except OSError as error:
            raise unreadable(folder, error) from error


def unreadable(path: Path, error: OSError) -> Refusal:
    """The refusal for an input this user may not read."""
    message = (
        f"{path} cannot be read by uid {os.getuid()} ({error_name(error)}): give that user read access on the host"
    )
    return Refusal(RefusalReason.INPUTS_UNREADABLE, message)


def read_prompt(layout: Layout) -> str:
    """The task. Raises Refusal when it is missing, empty or unreadable."""
    path = layout.job_dir / "prompt.md"
    try:
        prompt = path.read_bytes().decode("utf-8", "replace")
    except FileNotFoundError as error:
        raise config(f"{path} is missing: the job folder was not mounted as prepared") from error
    except OSError as error:
        raise unreadable(path, error) from error
    if not prompt.strip():
        raise config(f"{path} is empty: there is nothing to do")
    return prompt


def check_rules(layout: Layout) -> None:
    """The guardrails are readable. pi would take the path of a missing file as the text itself."""
    try:
        rules = layout.rules.read_bytes()
    except OSError as error:
        raise config(
            f"the guardrails {layout.rules} cannot be read ({error_name(error)}): rebuild the image"
        ) from error
    if not rules.strip():
        raise config(f"the guardrails {layout.rules} are empty: rebuild the image")


def check_writable(layout: Layout, home: Path, lines: Lines) -> None:
    """Say which folders this user cannot write; raises Refusal ``workspace-not-writable`` for the workspace.

    An agent that can write nothing would spend tokens and look as if it had succeeded.
    """
    uid = os.getuid()
    code = try_write(layout.workspace)
    if code is not None:
        path = str(layout.workspace)
        lines.event("workspace_not_writable", path=path, uid=uid, code=code)
        message = f"{path} cannot be written by uid {uid} ({code}): give that user the folder, or run as its owner"
        raise Refusal(RefusalReason.WORKSPACE_NOT_WRITABLE, message)
    if layout.outbox.exists() and (code := try_write(layout.outbox)) is not None:
        lines.event("outbox_not_writable", path=str(layout.outbox), uid=uid, code=code)
    if (code := try_write(home)) is not None:
        lines.event("home_not_writable", home=str(home), uid=uid, code=code)
    mounts = (layout.workspace, layout.job_dir, layout.outbox, layout.session)
    if any(home.is_relative_to(mount) for mount in mounts):
        lines.event("home_under_mount", home=str(home), uid=uid)


def try_write(folder: Path) -> str | None:
    """Create and delete a file in `folder`; None when that worked, else the error's name, such as ``EACCES``.

    Mode bits would not tell: the file system may be read-only, or the owner another one than it looks.
    """
    probe = folder / f".pi-dispatch-probe-{os.getpid()}-{time.time_ns()}"
    try:
        os.close(os.open(probe, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600))
        os.unlink(probe)
    except OSError as error:
        return error_name(error)
    return None


def error_name(error: OSError) -> str:
    """The error's symbolic name, such as ``EACCES``."""
    return errno.errorcode.get(error.errno or 0, "EIO")
