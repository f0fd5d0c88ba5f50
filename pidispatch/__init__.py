"""pi-dispatch: runs the pi coding agent on repositories while nobody watches.

The rooms of this package, and which may import which, are described in docs/architecture.md.
"""

from typing import Any

__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    """`app`, the Celery application, made when `celery -A pidispatch` asks for it and not before."""
    if name == "app":
        from pidispatch.worker.app import make_app

        globals()["app"] = app = make_app()
        return app
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
