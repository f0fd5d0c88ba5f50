"""The directory of one attempt: what the box is given to read, its outbox, and beside them what is the host's alone.

It is locked while its attempt lives. One that nobody holds was left by a program that was killed, and the next one
settles it (`pidispatch.runs.sweep`).
"""

import contextlib
import itertools
import os
import re
import secrets
import shutil
import tempfile
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from pidispatch.config.log import log
from pidispatch.config.private import private_folder
from pidispatch.values.errors import ConfigError, DispatchError, InfraError
from pidispatch.workspace.locks import Lock, gate, try_lock
from pidispatch.workspace.process import program, run_program, search_path

#: Seconds a program may take to remove a directory.
_REMOVE_S = 60.0
#: Entries of an outbox that are counted.
OUTBOX_COUNTED = 10_000
#: Name of the note in a job directory.
NOTE = "attempt.json"
#: Names in the folder of all job directories: one in use, one being removed, what is kept of one. What is named
#: otherwise is not ours.
_LIVE, _GONE, _KEPT, _LOCK = "job-", "gone-", "kept-", ".lock"
_LIVE_NAME = re.compile(r"job-[a-z0-9_]{8}")
_GONE_NAME = re.compile(r"gone-job-[a-z0-9_]{8}")
_KEPT_NAME = re.compile(r"kept-local-[0-9a-f]{16}")
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]")
_DEPLOYMENT = re.compile(r"[0-9a-f]{16}")
_ID_FILE = "deployment"


def sanitise(job_id: str) -> str:
    """A job id as part of a file or container name: every character outside `[A-Za-z0-9._-]` becomes `_`."""
    return _UNSAFE.sub("_", job_id)


@dataclass(frozen=True)
class JobDir:
    """Paths of one attempt on the host. Only `inputs`, `outbox` and `workspace` enter the box."""

    #: Belongs to this process and is not mounted.
    path: Path
    #: User and group of the job.
    owner: tuple[int, int]
    lock: Lock = field(compare=False, repr=False)

    @property
    def inputs(self) -> Path:
        """Mounted read-only at `/job`."""
        return self.path / "job"

    @property
    def prompt(self) -> Path:
        """The user's turn."""
        return self.inputs / "prompt.md"

    @property
    def event(self) -> Path:
        """Where the job came from."""
        return self.inputs / "event.json"

    @property
    def outbox(self) -> Path:
        """Mounted writable at `/outbox`; a job of a forge has none."""
        return self.path / "outbox"

    @property
    def workspace(self) -> Path:
        """The clone of a job of a forge, mounted writable at `/workspace`."""
        return self.path / "workspace"

    @property
    def skills(self) -> Path:
        """What of the repository's `.pi` travels, inside of the inputs."""
        return self.inputs / "pi"

    @property
    def trigger_skills(self) -> Path:
        """The skills that the job's rule brings along, inside of the inputs."""
        return self.inputs / "trigger-skills"

    @property
    def guard(self) -> Path:
        """The notes of the git metadata guard."""
        return self.path / "guard"

    @property
    def note(self) -> Path:
        """What the one who settles a broken-off attempt must know; written before it is counted."""
        return self.path / NOTE

    @property
    def making(self) -> Path:
        """Is there from right before the container is made: without it none ever was."""
        return self.path / "making"

    @property
    def end(self) -> Path:
        """How its container ended, until the record says so."""
        return self.path / "end.json"

    def kept(self, job_id: str) -> Path:
        """Where the agent's versions of what was put back are kept, beside this directory and longer than it."""
        return self.path.with_name(_KEPT + sanitise(job_id))

    @property
    def git_dir(self) -> Path:
        """The host's own git directory for this attempt: it names paths of the host, so it stays outside the box."""
        return self.path / "git"

    def write_inputs(self, prompt: str, event: str) -> None:
        """Write what the job is told. Raises `InfraError`."""
        try:
            for path, text in ((self.prompt, prompt), (self.event, event)):
                path.write_text(text, encoding="utf-8")
                path.chmod(0o444)
                self.give(path)
        except OSError as error:
            raise InfraError(f"the job's inputs cannot be written: {error.strerror}", "job-dir") from None

    def give(self, path: Path) -> None:
        """Hand `path` to the job's user; only root can, and anyone else is that user."""
        if os.geteuid() == 0:
            os.chown(path, *self.owner, follow_symlinks=False)


def make_job_dir(jobs_dir: Path, owner: tuple[int, int], *, outbox: bool = True) -> JobDir:
    """A fresh locked directory for one attempt; what enters the box belongs to the job's user when we are root."""
    home = private_folder(jobs_dir, "PI_JOBS_DIR")
    try:
        # Nobody may look for unlocked directories while this one is there and not locked yet.
        with gate(home):
            path = Path(tempfile.mkdtemp(prefix=_LIVE, dir=home))
            lock = try_lock(path / _LOCK)
            assert lock is not None, "nobody else can know of it yet"
        job_dir = JobDir(path, owner, lock)
        for folder in (job_dir.inputs, job_dir.outbox) if outbox else (job_dir.inputs,):
            folder.mkdir(mode=0o700)
            job_dir.give(folder)
    except OSError as error:
        raise InfraError(f"the job's directory cannot be made: {error.strerror}", "job-dir") from None
    return job_dir


def all_job_dirs(jobs_dir: Path) -> list[Path]:
    """Every job directory there is, in use or not."""
    return [path for path in _named(jobs_dir, _LIVE_NAME) if (path / _LOCK).is_file()]


def _named(jobs_dir: Path, name: re.Pattern[str]) -> list[Path]:
    """Directories of ours by their names, in a fixed order."""
    try:
        with os.scandir(jobs_dir) as entries:
            found = [entry for entry in entries if name.fullmatch(entry.name) and entry.is_dir(follow_symlinks=False)]
    except OSError:
        return []
    return sorted(Path(entry.path) for entry in found)


def abandoned_job_dirs(jobs_dir: Path) -> list[JobDir]:
    """Directories of attempts whose program is gone, each locked by us now. What else was left there is removed.

    A folder that cannot be used holds none: whoever makes a directory there is told why.
    """
    if not jobs_dir.is_dir():
        return []
    try:
        home = private_folder(jobs_dir, "PI_JOBS_DIR")
        with gate(home):
            found = [taken for path in all_job_dirs(home) if (taken := _taken(path)) is not None]
    except (OSError, DispatchError) as error:
        log().warning("job_dirs_unreadable", cause=type(error).__name__)
        return []
    for path in _named(home, _GONE_NAME):
        _remove_tree(path)
    return found


def _taken(path: Path) -> JobDir | None:
    """The directory at `path` with its lock, `None` while its program lives or where it cannot be locked."""
    try:
        lock = try_lock(path / _LOCK)
    except OSError:
        return None
    return JobDir(path, (os.geteuid(), os.getegid()), lock) if lock is not None else None


def release_job_dir(job_dir: JobDir) -> None:
    """Give up the lock and leave everything where it is, for the next program to settle."""
    job_dir.lock.release()


def remove_job_dir(job_dir: JobDir) -> None:
    """Remove the directory of an attempt; what resists stays, is logged and hides no other error."""
    # Under its own name and half removed it would look like one to settle.
    gone = job_dir.path.with_name(_GONE + job_dir.path.name)
    with contextlib.suppress(OSError):
        job_dir.path.rename(gone)
    _remove_tree(gone)
    job_dir.lock.release()


def remove_old_kept(jobs_dir: Path, now: datetime, days: int) -> None:
    """Remove what was kept of agents' changes for longer than `days` days; 0 keeps it for ever. Never raises."""
    if days == 0:
        return
    oldest = now.timestamp() - days * 86400
    for path in _named(jobs_dir, _KEPT_NAME):
        with contextlib.suppress(OSError):
            if path.lstat().st_mtime < oldest:
                _remove_tree(path)


def _remove_tree(path: Path) -> None:
    try:
        shutil.rmtree(path)
    except FileNotFoundError:
        return
    except (OSError, RecursionError):
        _remove_by_program(path)


def _remove_by_program(path: Path) -> None:
    """Remove what an agent closed to us or nested too deep: these programs know no depth and follow no link."""
    env = {"PATH": search_path(), "LC_ALL": "C"}
    try:
        for command in (["chmod", "-R", "u+rwX"], ["rm", "-rf"]):
            argv = [program(command[0]), *command[1:], "--", str(path)]
            run_program(argv, env=env, cwd=Path("/"), timeout_s=_REMOVE_S, max_bytes=4096)
    except InfraError as error:
        log().warning("remove_failed", directory=path.name, cause=error.cause)
    if os.path.lexists(path):
        log().warning("job_dir_left", directory=path.name)


def count_outbox(job_dir: JobDir) -> int:
    """How many entries the agent left in its outbox; those past `OUTBOX_COUNTED` are not counted."""
    try:
        with os.scandir(job_dir.outbox) as entries:
            return sum(1 for _ in itertools.islice(entries, OUTBOX_COUNTED))
    except OSError:
        return 0


def deployment_id(state_dir: Path) -> str:
    """The id that marks this deployment's containers: 16 hex digits, made once and kept in the state folder."""
    return _keep_id(state_dir, secrets.token_hex(8))


def read_deployment_id(state_dir: Path) -> str | None:
    """The id in the state folder; `None` where it holds none yet. Nothing is made."""
    path = state_dir / _ID_FILE
    return _checked_id(path) if os.path.lexists(path) else None


def adopt_deployment_id(state_dir: Path, deployment: str) -> None:
    """Make `deployment` the id of a state folder that has none. Raises `ConfigError` where it has another one.

    A store and the containers of its jobs carry one id, so a state folder of another deployment would leave this
    one's containers to nobody.
    """
    if not _DEPLOYMENT.fullmatch(deployment):
        raise ConfigError(f"{deployment!r} is no deployment id (16 hex digits)", "deployment-id")
    found = _keep_id(state_dir, deployment)
    if found != deployment:
        raise ConfigError(
            f"PI_STATE_DIR={state_dir} is of the deployment {found}, and the server's jobs are of {deployment}. Name "
            "the state folder of that deployment with PI_STATE_DIR, or another server or prefix (VALKEY_URL, "
            "PI_KEY_PREFIX)",
            "deployment-differs",
        )


def _keep_id(state_dir: Path, fresh: str) -> str:
    """The id in the state folder, which is `fresh` where there was none."""
    path = private_folder(state_dir, "PI_STATE_DIR") / _ID_FILE
    try:
        if not path.exists():
            _write_id(path, fresh)
    except OSError as error:
        raise InfraError(f"{path} cannot be made: {error.strerror}", "deployment-id") from None
    return _checked_id(path)


def _write_id(path: Path, fresh: str) -> None:
    # Written aside and linked into place, so that of two first programs both read one whole id.
    aside = path.with_name(f"{_ID_FILE}.{secrets.token_hex(4)}")
    aside.write_text(fresh)
    with contextlib.suppress(FileExistsError):
        os.link(aside, path)
    aside.unlink()


def _checked_id(path: Path) -> str:
    try:
        text = path.read_text(encoding="ascii", errors="replace").strip()
    except OSError as error:
        raise InfraError(f"{path} cannot be read: {error.strerror}", "deployment-id") from None
    if not _DEPLOYMENT.fullmatch(text):
        raise ConfigError(
            f"{path} does not hold a deployment id (16 hex digits). Move it away to have a new one made",
            "deployment-id",
        )
    return text
