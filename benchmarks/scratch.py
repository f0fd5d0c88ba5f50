"""Folders of a benchmark that stay until the run is over: ext4 makes files slowly for minutes where many went."""

import atexit
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def scratch() -> Iterator[str]:
    """A fresh folder for as long as this process lives; its path is short, as that of a unix socket is bounded."""
    path = tempfile.mkdtemp(prefix="pi-bench-", dir="/tmp")
    atexit.register(shutil.rmtree, path, ignore_errors=True)
    yield path
