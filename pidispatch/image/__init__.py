"""Build contexts of the images, shipped as package data.

`base/` makes what needs a network (Node, Debian packages, the pi agent); `job/` puts the runner, the guardrails and the
user on any such base and needs none. The runner is a program of its own inside the image: it imports nothing of
this package, and nothing imports it. What an image must hold is described in docs/reference/job-image.md. `egress/` is
another image: the proxy that is every job's neighbour (docs/explanation/egress.md).
"""

from pathlib import Path
from typing import Final, Literal

Context = Literal["base", "job", "egress"]

#: Those that the job image is made from.
CONTEXTS: Final[tuple[Context, ...]] = ("base", "job")


def context_path(context: Context) -> Path:
    """The folder of a build context; its `Dockerfile` lies at the top."""
    return Path(__file__).resolve().parent / context
