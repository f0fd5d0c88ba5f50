"""What a run changed in its workspace, as the host's own git sees it."""

from typing import Literal

from pidispatch.values.base import Value


class FileChange(Value):
    """One path that differs from the commit the run started at."""

    #: Path below the workspace, as text; undecodable bytes are replaced.
    path: str
    kind: Literal["added", "modified", "deleted"]
    #: Lines, `None` for a binary file or where they were not counted.
    added: int | None = None
    removed: int | None = None


class Change(Value):
    """Everything that differs after a run."""

    #: Whether tree, branches or commits differ from the moment before the run.
    changed: bool
    #: Commits on HEAD that were not there before.
    commits: int
    #: HEAD after the run: 40 or 64 hex digits, `None` where it cannot be read.
    head: str | None
    #: Differences between the commit the run started at and the tree as it stands.
    files: tuple[FileChange, ...]
    #: The tree already differed from its commit before the run.
    dirty_before: bool
    #: The list was cut at the bound of one git call's output.
    truncated: bool = False
