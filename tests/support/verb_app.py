"""The real `pi-dispatch` with a point at which it ends itself by SIGKILL, as `worker_app` understands it."""

from pidispatch.cli.main import main
from tests.support import worker_app

# The import of it is what puts the point there.
__all__ = ["worker_app"]

if __name__ == "__main__":
    main()
