"""What a run changed, read by the host's own git: the tree, the commits, the branches.

Which files differ is told by their content's own hash against our index, made before the run: an object that the
agent rewrites can spoil the text of a diff, and hide no change.
"""

import hashlib
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pidispatch.values.change import Change, FileChange
from pidispatch.values.errors import InfraError
from pidispatch.workspace.git import HostGit
from pidispatch.workspace.shape import check_shape, references

_DIFF = ("--no-ext-diff", "--no-textconv", "--no-color", "--ignore-submodules=all", "--no-renames")
#: New files whose lines are counted and shown; adding more to our index would take minutes.
COUNTED = 2_000
_KINDS: dict[bytes, Literal["added", "modified", "deleted"]] = {b"A": "added", b"D": "deleted"}


@dataclass(frozen=True)
class Snapshot:
    """The state of a folder at one moment, good for comparing with another."""

    #: Digest of every difference between the commit and the tree, untracked files included.
    tree: str
    #: Digest of all branches, tags and HEAD.
    refs: str
    #: Names and kinds of tracked files that differ from the commit.
    tracked: dict[bytes, bytes]
    #: Names of what is neither in the commit nor ignored; one that ends with `/` is a repository nested in it.
    untracked: list[bytes]
    #: Something was too deep or too much for git to list.
    partial: bool

    @property
    def dirty(self) -> bool:
        """Whether the tree differs from its commit."""
        return bool(self.tracked or self.untracked)


def snapshot(git: HostGit) -> Snapshot:
    """Take the state of the folder now. Raises `InfraError` where git cannot read it."""
    # Notes what each file looks like now: only files that look otherwise the next time are read again.
    git.call("update-index", "-q", "--refresh", checked=False)
    differing = git.call("diff-files", "--raw", "-z", "--ignore-submodules=all", "--no-abbrev")
    # Each change is two entries: its modes, object ids and kind, then its name.
    fields = differing.output.split(b"\0")
    tracked = {name: about[-1:] for about, name in zip(fields[0::2], fields[1::2], strict=False)}
    listed = git.call("ls-files", "--others", "--exclude-standard", "-z")
    untracked = listed.output.split(b"\0")[:-1]
    digest = hashlib.sha256()
    for name in [*tracked, *untracked]:
        digest.update(tracked.get(name, b"?") + name + b"\0" + _stamp(git.folder.path, name) + b"\0")
    refs = hashlib.sha256()
    for part in references(git.folder.git_dir):
        refs.update(part)
    partial = differing.truncated or listed.truncated or b"could not open" in listed.errors
    return Snapshot(digest.hexdigest(), refs.hexdigest(), tracked, untracked, partial)


def read_change(git: HostGit, before: Snapshot) -> tuple[Change, str | None]:
    """Compare the folder with `before` and with the commit the run started at; the change and its unified diff.

    The diff is `None` where it cannot be read. Raises `ConfigError` where the repository is no longer one that host
    git may open, `InfraError` where it cannot be read, both within `limits.reading_s` seconds.
    """
    check_shape(git.folder)
    git = git.within(git.limits.reading_s)
    after = snapshot(git)
    head = git.head()
    _add_new_files(git, after.untracked)
    lines = _line_counts(git)
    change = Change(
        changed=(after.tree, after.refs) != (before.tree, before.refs) or (head is not None and head != git.sha),
        commits=_commits(git, head),
        head=head,
        files=tuple(_files(after, lines)),
        dirty_before=before.dirty,
        truncated=after.partial,
    )
    return change, _diff_text(git)


def _add_new_files(git: HostGit, untracked: Iterable[bytes]) -> None:
    """Add new files to our own index, so that they have lines to count; the folder's index is not touched.

    A nested repository is left out, because adding it would read it; so is a name that git refuses, such as `.GIT`.
    """
    names = [name for name in untracked if not name.endswith(b"/")][:COUNTED]
    if not names:
        return
    command = ("add", "--intent-to-add", "--pathspec-from-file=-", "--pathspec-file-nul", "--ignore-errors")
    _tried(git, *command, stdin=b"\0".join(names))


def _line_counts(git: HostGit) -> dict[bytes, tuple[int | None, int | None]]:
    """Lines added and removed by name, `None` for a binary file; what follows a cut is left out."""
    counts = {}
    for entry in _tried(git, "diff", *_DIFF, "--numstat", "-z", git.sha).split(b"\0")[:-1]:
        added, removed, name = entry.split(b"\t", 2)
        counts[name] = (_count(added), _count(removed))
    return counts


def _count(text: bytes) -> int | None:
    return int(text) if text.isdigit() else None


def _diff_text(git: HostGit) -> str | None:
    try:
        return git.call("diff", *_DIFF, git.sha).output.decode("utf-8", "replace")
    except InfraError:
        return None


def _tried(git: HostGit, *arguments: str, stdin: bytes = b"") -> bytes:
    """Output of a call that only adds detail: one that fails or takes too long adds none."""
    try:
        done = git.call(*arguments, stdin=stdin, checked=False)
    except InfraError:
        return b""
    return done.output if done.code == 0 else b""


def _commits(git: HostGit, head: str | None) -> int:
    if head is None or head == git.sha:
        return 0
    counted = _tried(git, "rev-list", "--count", f"{git.sha}..{head}").strip()
    return int(counted) if counted.isdigit() else 0


def _files(after: Snapshot, lines: dict[bytes, tuple[int | None, int | None]]) -> Iterator[FileChange]:
    kinds = after.tracked | dict.fromkeys(after.untracked, b"A")
    for name in sorted(kinds):
        added, removed = lines.get(name, (None, None))
        kind = _KINDS.get(kinds[name], "modified")
        yield FileChange(path=name.decode("utf-8", "replace"), kind=kind, added=added, removed=removed)


def _stamp(root: Path, name: bytes) -> bytes:
    """What tells one state of a file from the next without reading it."""
    try:
        facts = os.lstat(os.path.join(os.fsencode(root), name))
    except OSError:
        return b"absent"
    return f"{facts.st_mode}:{facts.st_size}:{facts.st_mtime_ns}:{facts.st_ino}".encode()
