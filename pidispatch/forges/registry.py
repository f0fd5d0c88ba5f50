"""The forges that this version serves. A rule of another one loads, and nothing hears its events."""

from typing import Final

from pidispatch.forges.github.module import GITHUB
from pidispatch.forges.protocol import ForgeModule
from pidispatch.values.forge import JobKind

MODULES: Final[dict[JobKind, ForgeModule]] = {JobKind.GITHUB: GITHUB}
