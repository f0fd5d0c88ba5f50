"""pi-dispatch: runs the pi coding agent on repositories while nobody watches.

The rooms of this package, and which may import which, are described in docs/architecture.md.
"""

__version__ = "0.1.0"
