"""What a module for a forge brings: to hear it, and to work there. The table of their differences is `values.forge`.

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
* GitHub's Apps make a token for each job and one repository; every other account hands out its own. So a job's token is
  asked for by repository (`Account.mint`), and nothing is said of how narrow it is.
* GitHub's credential can be another program's login. Programs are run by a room above this one (`workspace.process`),
  so whoever makes an account hands that in (`Programs`).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from pidispatch.config.settings import Settings
from pidispatch.forges.polling import Polling
from pidispatch.forges.rights import Rights
from pidispatch.values.event import Authority, Event, Identity
from pidispatch.values.forge import ForgeRow
from pidispatch.values.job import Target


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


@dataclass(frozen=True)
class Token:
    """The credential of one job. It goes into the box, to the program that clones, and nowhere else."""

    value: str = field(repr=False)

    def __str__(self) -> str:
        # In case it gets into a message.
        return "[token]"


class Branch(NamedTuple):
    """The default branch of a repository as the forge has it now."""

    name: str
    #: The commit it names.
    sha: str
    #: Whether the forge keeps it from being pushed to by whoever may write to the repository.
    protected: bool


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

    def mint(self, repo: str | None) -> Token:
        """The credential of one job: for `repo` alone where the account can make such a one.

        `None` is for a job on a folder, which has no repository that it could be kept to. Raises `ConfigError` where
        there can be none, `InfraError` where there may be one later, `RateLimited` where that is known to be then.
        """
        ...

    def default_branch(self, repo: str, token: Token) -> Branch:
        """The repository's default branch now. Raises like `mint`."""
        ...

    def acted(self, repo: str, target: Target, since: datetime, token: Token) -> bool:
        """Whether this account has written a comment or a review there since then. Raises like `mint`."""
        ...

    def comment(self, repo: str, target: Target, text: str, marker: str, since: datetime) -> None:
        """Leave `text` there, unless a comment of since then holds `marker`, which must be a part of `text`.

        Raises like `mint`.
        """
        ...

    def clone_url(self, repo: str) -> str:
        """Where it is cloned from, without a credential."""
        ...

    def variables(self, token: Token) -> Mapping[str, str]:
        """What the forge's own programs in the box need beside the variables of the table to find it."""
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

    def rights(self, settings: Settings, environ: Mapping[str, str], programs: Programs) -> Rights:
        """What tells what the account may do. Raises `ConfigError`, like `account`."""
        ...

    def polling(self, settings: Settings, environ: Mapping[str, str], programs: Programs) -> Polling:
        """What looks for what is new where no webhook tells it. Raises `ConfigError`, like `account`."""
        ...
