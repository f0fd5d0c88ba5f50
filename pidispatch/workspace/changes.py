"""What a run changed, read by the host's own git: the tree, the commits, the branches."""

import hashlib
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pidispatch.values.change import Change, FileChange
from pidispatch.values.errors import InfraError
from pidispatch.workspace.git import HostGit

_DIFF = ("--no-ext-diff", "--no-textconv", "--no-color", "--ignore-submodules=all", "--no-renames")
_REF_FILES = 20_000
_REF_BYTES = 16 * 1024 * 1024


@dataclass(frozen=True)
class Snapshot:
    """The state of a folder at one moment, good for comparing with another."""

    #: Digest of every difference between the commit and the tree, untracked files included.
    tree: str
    #: Digest of all branches, tags and HEAD.
    refs: str
    dirty: bool


def snapshot(git: HostGit) -> Snapshot:
    """Take the state of the folder now. Raises `InfraError` where git cannot read it."""
    digest = hashlib.sha256()
    tracked = git.call("diff", *_DIFF, "--raw", "-z", "--no-abbrev", git.sha).output
    digest.update(tracked)
    # Each change is two entries: its modes and object ids, then its name.
    changed = tracked.split(b"\0")[1::2]
    untracked = _untracked(git)
    for name in [*changed, *untracked]:
        digest.update(name + b"\0" + _stamp(git.folder.path, name) + b"\0")
    return Snapshot(digest.hexdigest(), _refs_digest(git.folder.git_dir), bool(changed or untracked))


def read_change(git: HostGit, before: Snapshot) -> Change:
    """Compare the folder with `before` and with the commit the run started at."""
    after = snapshot(git)
    head = git.head()
    untracked = _untracked(git)
    if untracked:
        # Our own index, so that new files have lines to count; the folder's index is not touched. A nested
        # repository is left out, because adding it would read it; so is a name that git refuses, such as `.GIT`.
        git.call(
            "add",
            "--intent-to-add",
            "--pathspec-from-file=-",
            "--pathspec-file-nul",
            "--ignore-errors",
            stdin=b"\0".join(name for name in untracked if not name.endswith(b"/")),
            checked=False,
        )
    done = git.call("diff", *_DIFF, "--numstat", "-z", git.sha)
    kinds = git.call("diff", *_DIFF, "--name-status", "-z", git.sha)
    files = tuple(_files(done.output, kinds.output, untracked))
    return Change(
        changed=after != before or (head is not None and head != git.sha),
        commits=_commits(git, head),
        head=head,
        files=files,
        dirty_before=before.dirty,
        truncated=done.truncated or kinds.truncated,
    )


def diff_text(git: HostGit) -> str:
    """The unified diff between the commit the run started at and the tree now; call after `read_change`."""
    return git.call("diff", *_DIFF, git.sha).output.decode("utf-8", "replace")


def _untracked(git: HostGit) -> list[bytes]:
    """Names of what is not in the commit and not ignored; one that ends with `/` is a repository nested in it."""
    listed = git.call("ls-files", "--others", "--exclude-standard", "-z").output
    return listed.split(b"\0")[:-1]


def _commits(git: HostGit, head: str | None) -> int:
    if head is None or head == git.sha:
        return 0
    try:
        return int(git.call("rev-list", "--count", f"{git.sha}..{head}").output)
    except InfraError:
        return 0


def _files(numstat: bytes, name_status: bytes, untracked: list[bytes]) -> Iterator[FileChange]:
    fields = name_status.split(b"\0")
    kinds = dict(zip(fields[1::2], fields[0::2], strict=False))
    uncounted = dict.fromkeys(untracked)
    # What follows the last separator is nothing, or an entry that was cut.
    for entry in numstat.split(b"\0")[:-1]:
        parts = entry.split(b"\t", 2)
        uncounted.pop(parts[2], None)
        kind = {b"A": "added", b"D": "deleted"}.get(kinds.get(parts[2], b"M"), "modified")
        yield FileChange.model_validate(
            {
                "path": parts[2].decode("utf-8", "replace"),
                "kind": kind,
                "added": int(parts[0]) if parts[0].isdigit() else None,
                "removed": int(parts[1]) if parts[1].isdigit() else None,
            }
        )
    for name in uncounted:
        yield FileChange(path=name.decode("utf-8", "replace"), kind="added")


def _stamp(root: Path, name: bytes) -> bytes:
    """What tells one state of a file from the next without reading it."""
    try:
        facts = os.lstat(os.path.join(os.fsencode(root), name))
    except OSError:
        return b"absent"
    return f"{facts.st_mode}:{facts.st_size}:{facts.st_mtime_ns}:{facts.st_ino}".encode()


def _refs_digest(git_dir: Path) -> str:
    """Digest of the files that hold references. They are read as bytes: asking git would use its configuration."""
    digest = hashlib.sha256()
    budget = _REF_BYTES
    for path in _ref_files(git_dir):
        try:
            facts = path.lstat()
            if not stat.S_ISREG(facts.st_mode) or facts.st_size > budget:
                continue
            digest.update(os.fsencode(path) + b"\0" + path.read_bytes() + b"\0")
        except OSError:
            continue
        budget -= facts.st_size
    return digest.hexdigest()


def _ref_files(git_dir: Path) -> Iterator[Path]:
    yield git_dir / "HEAD"
    yield git_dir / "packed-refs"
    count = 0
    for base in ("refs", "reftable"):
        for folder, folders, names in os.walk(git_dir / base):
            folders.sort()
            for name in sorted(names):
                count += 1
                if count > _REF_FILES:
                    return
                yield Path(folder) / name
