"""What this deployment's account at a forge may do, told for whoever sets it up. No receiver and no job asks for it."""

from dataclasses import dataclass
from typing import NamedTuple, Protocol


class Flaw(NamedTuple):
    """Something about an account that can be mended: what it is and what comes of it, and what mends it."""

    found: str
    remedy: str


@dataclass(frozen=True)
class Standing:
    """How an account stands, as sentences for a person. None of them holds a credential."""

    #: The permissions it has, as the forge calls them; or that the forge does not tell.
    holds: str
    #: What it lacks for the work of a job.
    lacks: tuple[Flaw, ...] = ()
    #: What a job's token can do beyond that work.
    cautions: tuple[Flaw, ...] = ()


class Rights(Protocol):
    """What is asked about the account. Raises like `Account.mint`."""

    def account(self) -> tuple[str, Standing]:
        """Which account it is, by which credential, and how it stands as far as that is the same everywhere."""
        ...

    def repository(self, repo: str) -> Standing:
        """How it stands in one repository, as far as that is special about it."""
        ...
