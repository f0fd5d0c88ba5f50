"""How often a server is asked: what a program sends to it, a command or a whole pipeline at a time."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from redis.connection import AbstractConnection


class Asked:
    """Counts from its beginning on."""

    def __init__(self) -> None:
        self.times = 0


@contextmanager
def round_trips() -> Iterator[Asked]:
    """Count what all connections of this process send meanwhile."""
    asked = Asked()
    send: Any = AbstractConnection.send_packed_command

    def counted(self: AbstractConnection, *arguments: Any, **options: Any) -> None:
        asked.times += 1
        send(self, *arguments, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(AbstractConnection, "send_packed_command", counted)
        yield asked
