"""What a module for a forge brings, the receiving half. The table of their differences is `values.forge`.

It fits all four of them, each of which needs something that the others do not:

* GitHub and Forgejo sign the raw body (`X-Hub-Signature-256`); GitLab signs id, time and body, or sends a shared token;
  Azure DevOps sends a credential and signs nothing. So `Wire` is asked twice: for the headers, before the body is read,
  and for headers, body and the time together.
* The id of a delivery stands in a header, on Azure DevOps in the body. So `Wire.delivery` may not know it, and
  `ForgeModule.event` may find that there is none.
* GitHub says in the payload whose word counts (`ForgeRow.says_association`) and is asked about who closed only; the
  others are asked about everybody: GitLab by two numbers, Forgejo by a name, Azure DevOps by a descriptor that is
  looked up first, of a GUID or an address. So `Account.authority` is given the whole event, and its answer has three
  values.
* An account is known by a number, on Azure DevOps by a GUID and an address (`Identity`).
* GitHub's credential can be another program's login. Programs are run by a room above this one (`workspace.process`),
  so whoever makes an account hands that in (`Programs`).
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from pidispatch.config.settings import Settings
from pidispatch.values.event import Authority, Event, Identity
from pidispatch.values.forge import ForgeRow


class Unverified(NamedTuple):
    """A request that is not taken for a delivery: the HTTP status, and the word its body carries."""

    status: int
    error: str


class Answer(NamedTuple):
    """Whether somebody's word counts; where that is unknown, why, as a fixed token."""

    authority: Authority
    reason: str | None = None
    #: Where the forge will not be asked more for now: until when.
    resets: datetime | None = None


class Wire(Protocol):
    """What comes from the forge. `headers` have lower-case names."""

    def missing(self, headers: Mapping[str, str]) -> Unverified | None:
        """What a request lacks that is no delivery of this forge; asked before its body is read."""
        ...

    def authentic(self, headers: Mapping[str, str], body: bytes, now: datetime) -> Unverified | None:
        """Why the request is not the forge's own; asked before anything of the body is understood."""
        ...

    def delivery(self, headers: Mapping[str, str]) -> str | None:
        """The id of the delivery; `None` where the body alone has it."""
        ...


#: Projects a payload, parsed from its JSON, whatever stands in it: an event, or why it is none. Never raises. It needs
#: no credential and asks nobody.
Project = Callable[[Mapping[str, str], Any], Event | Unverified]


class Ended(Protocol):
    """A program that ended."""

    @property
    def code(self) -> int:
        """Its exit code."""
        ...

    @property
    def output(self) -> bytes:
        """What it wrote to its standard output."""
        ...


class Programs(Protocol):
    """How programs of this machine are run; the module `workspace.process` is one."""

    def program(self, name: str) -> str:
        """The absolute path of a program. Raises `InfraError` where there is none."""
        ...

    def run_program(
        self, argv: Sequence[str], *, env: Mapping[str, str], cwd: Path, timeout_s: float, max_bytes: int
    ) -> Ended:
        """Run it to its end. Raises `InfraError`."""
        ...


class Account(Protocol):
    """This deployment's account at the forge. Several threads may ask at once."""

    def identity(self) -> Identity:
        """Who it is. Raises `ConfigError` where that can never be known, `InfraError` where it may be later."""
        ...

    def authority(self, event: Event) -> Answer:
        """Whether who did it may start jobs in the event's repository. One that cannot be asked about may not.

        Never raises: what the forge does not say is `Authority.UNKNOWN`.
        """
        ...


class ForgeModule(Protocol):
    """One forge."""

    row: ForgeRow
    #: What a receiver answers where `Account.authority` does not know.
    lookup_failed: str
    event: Project

    def configured(self, settings: Settings) -> bool:
        """Whether the settings say that the forge is served, whatever rules there are."""
        ...

    def wire(self, settings: Settings) -> Wire:
        """What verifies its requests. Raises `ConfigError` where a secret is missing."""
        ...

    def account(self, settings: Settings, environ: Mapping[str, str], programs: Programs) -> Account:
        """The account. Raises `ConfigError` for settings that cannot work; asks nobody and runs nothing."""
        ...
