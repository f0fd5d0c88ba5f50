"""The host's own git on an operator's folder, with a git directory of its own.

A folder's configuration may have been written by an agent: filters, external diffs, hooks and remotes in it run
programs. So git is never pointed at it. One bare git directory is made per job, whose objects are the folder's and
whose configuration is ours, and the folder is only its work tree (docs/explanation/host-git.md).
"""

import hashlib
import os
import re
import shutil
import stat
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from pidispatch.config.text import scrub
from pidispatch.values.errors import ConfigError, DispatchError, InfraError
from pidispatch.values.limits import Limits
from pidispatch.workspace.folder import Folder
from pidispatch.workspace.process import Finished, program, run_program, search_path
from pidispatch.workspace.shape import check_shape, read_small

_OBJECT_ID = re.compile(rb"[0-9a-f]{40}(?:[0-9a-f]{24})?")
#: What is carried over from the folder's configuration, each with the values that mean something.
_CARRIED = {
    "core.autocrlf": ("true", "false", "input"),
    "core.eol": ("lf", "crlf", "native"),
    "core.fileMode": ("true", "false"),
    "core.ignoreCase": ("true", "false"),
    "core.precomposeUnicode": ("true", "false"),
    "core.symlinks": ("true", "false"),
}
#: The one filter that may run on the host, exactly as its own installer writes it.
_LFS = {
    "filter.lfs.clean": "git-lfs clean -- %f",
    "filter.lfs.smudge": "git-lfs smudge -- %f",
    "filter.lfs.process": "git-lfs filter-process",
    "filter.lfs.required": "true",
}


_LFS_SECTION: Final = "filter.lfs."
_EXCLUDES: Final = "core.excludesfile"
#: What is looked for in a configuration.
_COUNTING: Final = frozenset({_EXCLUDES, *(key.lower() for key in _CARRIED)})
#: What a git directory says of itself, by the digits of its ids (git's documentation, "repository-version").
_FORMAT: Final = {
    40: {"core.repositoryformatversion": "0"},
    64: {"core.repositoryformatversion": "1", "extensions.objectFormat": "sha256"},
}
#: What counts of configurations, by the digest of a file's content: most jobs find the file as the one before did.
_known_configs: Final[dict[bytes, Mapping[str, str]]] = {}
_MOST_CONFIGS: Final = 256


def git_environment() -> dict[str, str]:
    """The closed environment of every git call: no system, global or inherited configuration."""
    return {
        "PATH": search_path(),
        "HOME": "/nonexistent",
        "LC_ALL": "C",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_ATTR_NOSYSTEM": "1",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_NO_REPLACE_OBJECTS": "1",
        # A file may be called `*` or `:(exclude)x`; a name handed to git is always just a name.
        "GIT_LITERAL_PATHSPECS": "1",
    }


@dataclass(frozen=True)
class HostGit:
    """Git on one folder through a git directory of our own. Make one with `open_host_git`."""

    folder: Folder
    #: The bare git directory of this job.
    git_dir: Path
    #: The commit HEAD named before the run: 40 or 64 hex digits.
    sha: str
    limits: Limits
    #: The moment of the monotonic clock by which every call must have ended; `None` for the limit of each call alone.
    deadline: float | None = None

    def within(self, seconds: float) -> "HostGit":
        """The same, with at most `seconds` from now for all calls together."""
        return replace(self, deadline=time.monotonic() + seconds)

    def call(self, *arguments: str, stdin: bytes = b"", checked: bool = True, max_bytes: int | None = None) -> Finished:
        """One git call with our git directory and the folder as work tree.

        Of its output `max_bytes` are kept, `limits.git_output_bytes` unless said otherwise. Raises `InfraError` when it
        cannot be made, and when it fails unless `checked` is false.
        """
        limits = self._limits_now()
        if max_bytes is not None:
            limits = limits.model_copy(update={"git_output_bytes": max_bytes})
        done = _git(
            limits,
            self.git_dir,
            f"--git-dir={self.git_dir}",
            f"--work-tree={self.folder.path}",
            *arguments,
            stdin=stdin,
        )
        return _checked(done, arguments[0]) if checked else done

    def head(self) -> str | None:
        """The commit that the folder's HEAD names now, `None` where it names none or cannot be read."""
        try:
            return read_head(self.folder, self._limits_now())
        except DispatchError:
            return None

    def _limits_now(self) -> Limits:
        """The limits of the next call: no longer than what is left of all calls together."""
        if self.deadline is None:
            return self.limits
        left = max(0.1, min(self.limits.git_timeout_s, self.deadline - time.monotonic()))
        return self.limits.model_copy(update={"git_timeout_s": left})


def open_host_git(folder: Folder, git_dir: Path, limits: Limits, operator_home: Path | None = None) -> HostGit:
    """Prepare `git_dir` (must not exist) for `folder` and read the commit it stands at.

    `operator_home` is where the operator's own global configuration is read from; default: this account's home.
    Raises `ConfigError` (cause `no-commit` or `git-unusable`) for a repository that cannot work, else `InfraError`.
    """
    try:
        return _opened(folder, git_dir, limits, operator_home or _home())
    except OSError as error:
        raise InfraError(
            f"host git cannot be prepared: {error.strerror}. Check disk and PI_JOBS_DIR", "git-dir"
        ) from None


def _opened(folder: Folder, git_dir: Path, limits: Limits, operator_home: Path) -> HostGit:
    objects = check_shape(folder)
    sha = read_head(folder, limits)
    if sha is None:
        raise ConfigError(
            f"the repository in {folder.path.name!r} has no commit yet, so there is no state to come back to. "
            "Commit once: git add -A && git commit -m start",
            "no-commit",
        )
    git_dir.mkdir()
    (git_dir / "refs").mkdir()
    (git_dir / "HEAD").write_text(sha + "\n")
    _share_objects(objects, git_dir)
    _configure(folder, git_dir, sha, limits, operator_home)
    host_git = HostGit(folder, git_dir, sha, limits)
    # With the index it is seen whether the commit is there.
    done = host_git.call("read-tree", sha, checked=False)
    if done.code != 0:
        kind = host_git.call("cat-file", "-t", sha, checked=False)
        if kind.output.strip() != b"commit":
            raise ConfigError(
                f"HEAD of {folder.path.name!r} names a commit that is not in the repository. Check it with: git fsck",
                "git-unusable",
            )
        _checked(done, "read-tree")
    return host_git


def read_head(folder: Folder, limits: Limits) -> str | None:
    """The object id HEAD resolves to, `None` for a HEAD without a commit.

    Only names are resolved: looking an object up here could make git fetch it by a command of the folder's choice.
    """
    done = _git(
        limits,
        folder.path.parent,
        "-c",
        f"safe.directory={folder.path}",
        f"--git-dir={folder.git_dir}",
        "rev-parse",
        "--verify",
        "--quiet",
        "HEAD",
    )
    line = done.output.strip()
    if done.code == 0 and _OBJECT_ID.fullmatch(line):
        return line.decode("ascii")
    if done.code == 1 and not done.errors.strip():
        return None
    raise ConfigError(
        f"the repository in {folder.path.name!r} cannot be used by git. Check it with: git status",
        "git-unusable",
    )


def _home() -> Path:
    try:
        return Path.home()
    except RuntimeError:
        # An account without a home has no configuration of its own either.
        return Path("/nonexistent")


def _share_objects(objects: Path, git_dir: Path) -> None:
    alternates = git_dir / "objects" / "info" / "alternates"
    alternates.parent.mkdir(parents=True)
    # A quoted path keeps a folder whose name holds a line break or a quote from adding a second entry.
    escaped = str(objects).replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    alternates.write_bytes(os.fsencode(f'"{escaped}"\n'))


def _configure(folder: Folder, git_dir: Path, sha: str, limits: Limits, operator_home: Path) -> None:
    settings = {**_FORMAT[len(sha)], **_carried(folder, limits, operator_home)}
    (git_dir / "config").write_bytes(os.fsencode(_config_text(settings)))
    exclude = None if (folder.git_dir / "info").is_symlink() else read_small(folder.git_dir / "info" / "exclude")
    if exclude is not None:
        (git_dir / "info").mkdir()
        (git_dir / "info" / "exclude").write_bytes(exclude)


def _config_text(settings: Mapping[str, str]) -> str:
    """`settings` in the form of a configuration file (git's documentation, "git-config", "Syntax")."""
    lines = []
    for key, value in settings.items():
        section, _, name = key.rpartition(".")
        section, _, subsection = section.partition(".")
        escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
        heading = f'[{section} "{subsection}"]' if subsection else f"[{section}]"
        lines.append(f'{heading}\n\t{name} = "{escaped}"\n')
    return "".join(lines)


def _carried(folder: Folder, limits: Limits, operator_home: Path) -> Mapping[str, str]:
    settings = {"core.bigFileThreshold": "1m", "gc.auto": "0", "core.bare": "false", "core.protectNTFS": "false"}
    theirs = _read_config(folder.git_dir / "config", limits)
    for key, allowed in _CARRIED.items():
        value = theirs.get(key.lower(), "").lower()
        if value in allowed:
            settings[key] = value
    operators: dict[str, str] = {}
    for name in (".gitconfig", ".config/git/config"):
        operators = {**_read_config(operator_home / name, limits), **operators}
    if excludes := operators.get(_EXCLUDES):
        settings["core.excludesFile"] = os.path.join(operator_home, excludes.removeprefix("~/"))
    elif os.access(operator_home / ".config/git/ignore", os.R_OK):
        settings["core.excludesFile"] = str(operator_home / ".config/git/ignore")
    # Git LFS only as its installer writes it; anything else under that name is somebody's program.
    lfs = {key: value for key, value in {**operators, **theirs}.items() if key.startswith(_LFS_SECTION)}
    standard = bool(lfs) and all(_LFS.get(key) == value for key, value in lfs.items())
    # Where it is not installed, the work tree holds git's own pointers and needs no filter.
    if standard and shutil.which("git-lfs", path=search_path()):
        settings |= _LFS
    return settings


def _read_config(path: Path, limits: Limits) -> Mapping[str, str]:
    """What counts of one configuration file, later entries winning; includes are not followed."""
    content = _content(path)
    if content is None:
        return {}
    digest = hashlib.sha256(content).digest()
    if (known := _known_configs.get(digest)) is not None:
        return known
    done = _git(limits, Path("/"), "config", "--no-includes", "--file=-", "--null", "--list", stdin=content)
    if done.code != 0:
        return {}
    lines = (entry.split("\n", 1) for entry in done.output.decode("utf-8", "replace").split("\0") if entry)
    entries = {line[0]: line[1] if len(line) == 2 else "true" for line in lines}
    found = {key: value for key, value in entries.items() if key in _COUNTING or key.startswith(_LFS_SECTION)}
    if len(_known_configs) >= _MOST_CONFIGS:
        _known_configs.clear()
    _known_configs[digest] = found
    return found


def _content(path: Path) -> bytes | None:
    """Content of a regular file, links followed; `None` for anything else. Waits for no pipe."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            os.close(handle)
            return None
        with open(handle, "rb") as file:
            return file.read()
    except OSError:
        return None


def _git(limits: Limits, cwd: Path, *arguments: str, stdin: bytes = b"") -> Finished:
    argv = [
        program("git"),
        "--no-pager",
        "-c",
        "core.hooksPath=/dev/null",
        "-c",
        "core.fsmonitor=false",
        "-c",
        "protocol.allow=never",
        *arguments,
    ]
    return run_program(
        argv,
        env=git_environment(),
        cwd=cwd,
        timeout_s=limits.git_timeout_s,
        max_bytes=limits.git_output_bytes,
        stdin=stdin,
    )


def _checked(done: Finished, verb: str) -> Finished:
    if done.code != 0:
        said = scrub(done.error_text.strip().rpartition("\n")[2])
        raise InfraError(
            f"git {verb} failed on the host (exit {done.code}: {said}). Check the folder with: git fsck", "git-failed"
        )
    return done
