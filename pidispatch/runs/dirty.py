"""The refusal of a folder with uncommitted changes, said in the same words by the one who asks and by the one who runs.

A job edits in place and there is no undo, so what was not committed could not be told from the agent's work.
"""

from pidispatch.config.text import printable
from pidispatch.values.outcome import Refused
from pidispatch.values.reason import Reason
from pidispatch.workspace.changes import Snapshot

#: Names shown of a tree that differs from its commit.
_SHOWN = 5


def dirty_tree(before: Snapshot) -> Refused:
    """The refusal of a folder in the state `before`."""
    found = [name.decode("utf-8", "replace") for name in [*before.tracked, *before.untracked]]
    shown = ", ".join(printable(name) for name in found[:_SHOWN]) + (", ..." if len(found) > _SHOWN else "")
    return Refused(
        reason=Reason.CONFIG_REFUSED,
        cause="dirty-tree",
        detail=f"the folder has {len(found)} uncommitted change(s), which the agent's would mix with: {shown}",
        remedy="commit or stash them (git stash -u), or run with --force: there is no undo",
    )
