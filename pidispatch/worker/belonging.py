"""Whether a store and a state folder belong together: both carry the id of their deployment."""

from pathlib import Path

from pidispatch.jobs.store import JobStore
from pidispatch.workspace.jobdir import adopt_deployment_id, read_deployment_id


def join_deployment(store: JobStore, state_dir: Path) -> str:
    """Check the store's format and that both belong together; their id, which either takes over from the other.

    Raises `ConfigError` where they do not, and `InfraError`.
    """
    found = store.open(read_deployment_id(state_dir))
    adopt_deployment_id(state_dir, found)
    return found
