"""The scripts that move jobs, a closed table. Each is atomic and one round trip (https://valkey.io/topics/eval-intro/)."""

from functools import cache
from importlib import resources
from typing import Final

#: Every script, `lua/<name>.lua`.
SCRIPTS: Final[tuple[str, ...]] = (
    "submit",
    "acquire",
    "renew",
    "defer",
    "spend",
    "book",
    "finish",
    "fail",
    "cancel",
    "acknowledge",
    "settle",
    "sweep",
    "recorded",
    "open",
    "dealt",
)
#: What is put before each of them.
PRELUDE: Final = "prelude"


@cache
def source(name: str) -> str:
    """The text of a script as the server is given it."""
    if name not in SCRIPTS:
        raise KeyError(name)
    return _file(PRELUDE) + _file(name)


def _file(name: str) -> str:
    return (resources.files("pidispatch.jobs") / "lua" / f"{name}.lua").read_text(encoding="utf-8")
