"""What one attempt works with, and what its checks have established so far."""

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import datetime

from pidispatch.box.abort import Abort
from pidispatch.box.engine import Engine, EngineFacts, ImageFacts
from pidispatch.box.host import host_facts
from pidispatch.box.run import Neighbour
from pidispatch.box.spec import JobUser
from pidispatch.box.user import HostFacts
from pidispatch.config.settings import Settings
from pidispatch.forges.protocol import Account, Branch, Token
from pidispatch.runs.records import RecordStore
from pidispatch.runs.seams import (
    Accounts,
    Book,
    Marked,
    Output,
    Spend,
    no_account,
    unbooked,
    uncounted,
    unmarked,
)
from pidispatch.values import names
from pidispatch.values.clock import Clock
from pidispatch.values.forge import JobKind
from pidispatch.values.job import ForgeJob, Job, LocalJob
from pidispatch.values.limits import Limits
from pidispatch.values.progress import ProgressSink
from pidispatch.workspace.changes import Snapshot
from pidispatch.workspace.folder import Folder
from pidispatch.workspace.git import HostGit
from pidispatch.workspace.jobdir import JobDir


@dataclass(frozen=True)
class Effective:
    """A job with everything it left open filled in from the settings."""

    provider: str
    model: str
    max_turns: int
    max_tokens: int | None
    image: str

    @classmethod
    def of(cls, job: Job, settings: Settings) -> "Effective":
        """What the job says, else what the settings say."""
        return cls(
            provider=job.provider or settings.provider,
            model=job.model or settings.model,
            max_turns=job.max_turns or settings.max_turns,
            max_tokens=job.max_tokens or settings.max_tokens,
            image=job.image or settings.job_image,
        )


# Without a representation: the environment in it holds credentials.
@dataclass(repr=False)
class Site:
    """One attempt under way. What is not in the constructor is set by the step that establishes it."""

    job: Job
    begun_at: datetime
    effective: Effective
    settings: Settings
    records: RecordStore
    connect: Callable[[], Engine]
    environ: Mapping[str, str]
    limits: Limits
    clock: Clock
    progress: ProgressSink
    abort: Abort
    #: What is undone, last first, when the attempt ends.
    cleanup: ExitStack
    #: Which attempt at the job it is, from 1.
    number: int = 1
    #: Asked for the store's mark of a rule that fires once.
    marked: Marked = unmarked
    #: Asked before money can be spent.
    spend: Spend = uncounted
    book: Book = unbooked
    output: Output | None = None
    accounts: Accounts = no_account

    #: Where the agent works: the operator's folder, or the clone.
    folder: Folder = field(init=False)
    engine: Engine = field(init=False)
    engine_facts: EngineFacts = field(init=False)
    image: ImageFacts = field(init=False)
    user: JobUser = field(init=False)
    #: The provider's key that pi keeps itself, where the environment holds none.
    stored: Mapping[str, str] = field(init=False)
    #: `None` for a job on an open network.
    neighbour: Neighbour | None = field(init=False, default=None)
    #: The account at the job's forge and what the job gets of it; of a job without a forge there is neither.
    account: Account = field(init=False)
    token: Token | None = field(init=False, default=None)
    #: What is cloned, as the forge said a moment ago; only of a job of a forge.
    branch: Branch = field(init=False)
    job_dir: JobDir = field(init=False)
    git: HostGit = field(init=False)
    before: Snapshot = field(init=False)
    #: When the attempt was counted, and what for: amounts by the key of a counter.
    counted_at: datetime = field(init=False)
    charged: dict[str, int] = field(init=False, default_factory=dict)
    #: Whether a container may have been started.
    spent: bool = field(init=False, default=False)
    #: Whether the job directory may be removed: nothing of the run is left to be put in order.
    settled: bool = field(init=False, default=True)

    @property
    def local(self) -> LocalJob:
        """The job, which is one on a folder."""
        assert isinstance(self.job, LocalJob)
        return self.job

    @property
    def forge(self) -> JobKind | None:
        """The forge that the job works at; `None` for one on a folder that asks for none."""
        if isinstance(self.job, ForgeJob):
            return self.job.kind
        return JobKind.GITHUB if self.local.github else None

    @property
    def host(self) -> HostFacts:
        """Engine, this process and the folder, as the choice of the job's user needs them.

        A clone is not there yet: it will belong to whoever works in it.
        """
        clone = isinstance(self.job, ForgeJob)
        uid, gid = (names.IMAGE_UID, names.IMAGE_UID) if clone else (self.folder.uid, self.folder.gid)
        return host_facts(self.engine_facts, uid, gid)
