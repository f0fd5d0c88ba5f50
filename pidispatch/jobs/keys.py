"""Every key of the store, declared once; docs/reference/keys.md is made from this table.

All of them begin with `PI_KEY_PREFIX`, as do those of Celery's transport, so that others can use the server too.
"""

from collections.abc import Callable
from typing import Final, NamedTuple


class Key(NamedTuple):
    """One kind of key."""

    #: Its name after the prefix; the part in angle brackets varies.
    name: str
    type: str
    holds: str
    expires: str


JOB: Final = Key(
    "job:<id>", "hash", "the row of a job: its state, its task as JSON, its record", "24 hours or 7 days after its end"
)
LOCK: Final = Key(
    "job:lock:<id>", "string", "the run lease of an active job: `<worker>#<engine id>#<nonce>`", "a lease after renewal"
)
PROGRESS: Final = Key("job:progress:<id>", "hash", "turns and tokens of a run so far; advice only", "after an hour")
TOLD: Final = Key(
    "job:told:<id>", "string", "the end of a run as JSON, for the one who waits for it; never recorded", "after an hour"
)
DUE: Final = Key("jobs:due", "sorted set", "every deferred job, by the instant it wakes", "never")
QUEUED: Final = Key(
    "jobs:queued:<queue>", "sorted set", "every queued job of a queue, by when its ticket was published", "never"
)
ACTIVE: Final = Key("jobs:active", "sorted set", "every active job, by the end of its lease", "never")
FAILED_JOBS: Final = Key("jobs:failed", "sorted set", "failed jobs, by their end", "each with its row")
UNRECORDED: Final = Key(
    "jobs:unrecorded", "sorted set", "jobs whose record is still to be written, by since when", "never"
)
QUEUES: Final = Key("queues", "set", "every queue that ever had a job", "never")
DEDUP: Final = Key(
    "dedup:<semantic key>", "string", "id of the job that took the semantic key; never extended", "after 10 minutes"
)
CANCEL_REQUEST: Final = Key("cancel:req:<id>", "string", "a request to cancel an active job", "after a minute")
CANCEL_ANSWER: Final = Key("cancel:ack:<id>", "string", "name of the worker that heard the request", "after 5 minutes")
PAUSED: Final = Key(
    "queue:paused:<queue>",
    "string",
    "since when no job of the queue is started, in milliseconds since 1970; `*` stands for every queue",
    "never",
)
BUDGET: Final = Key(
    "budget:<window>",
    "string",
    "runs counted in a day (`2026-01-31`), a week (`w:` and its Monday) or a month (`m:2026-01`), all UTC",
    "2, 9 or 40 days after its first run",
)
BUDGET_TOKENS: Final = Key("budget:t:<day>", "string", "tokens used on a day, UTC", "2 days after its first run")
CRON_LAST: Final = Key(
    "cron:last:<id>",
    "string",
    "up to when the occurrences of a schedule are dealt with, in milliseconds since 1970; it only grows",
    "400 days after it last did",
)
SCHED_STALLS: Final = Key(
    "sched-stalls:<id>",
    "string",
    "how many jobs of a schedule were lost with their worker",
    "24 hours after the last one",
)
TRIGGER_RUNS: Final = Key(
    "trigger:runs:<trigger>",
    "string",
    "how many runs of a trigger came to nothing, one after the other",
    "400 days after the last of them",
)
TRIGGER_PAUSED: Final = Key(
    "trigger:paused:<trigger>", "string", "since when and why a trigger is paused, as JSON", "never"
)
TRIGGER_RESUMED: Final = Key(
    "trigger:resumed:<trigger>",
    "string",
    "when its pause was lifted, in milliseconds since 1970; runs of jobs handed in before do not count",
    "after 31 days",
)
TRIGGERS_PAUSED: Final = Key("triggers:paused", "set", "names of the paused triggers", "never")
TRIGGERS_TRIPPED: Final = Key("triggers:tripped", "list", "names of those of which no worker told as yet", "never")
ONESHOT: Final = Key("oneshot:<rule>", "string", "when and by which job a rule that fires once was spent", "never")
DELIVERIES: Final = Key(
    "deliveries:<forge>", "stream", "what became of the last 1,000 events of a forge; nothing of their payload", "never"
)
SOURCE: Final = Key(
    "source:<forge>",
    "hash",
    "since when receivers hear a forge, and whether the one that spoke last has a broken triggers file",
    "after 14 days",
)
COMMENT: Final = Key(
    "comment:<id>",
    "hash",
    "what is to be said of the end of a job on its issue or pull request; once it is said, that it was",
    "31 days after the end",
)
COMMENT_LOCK: Final = Key("comment:lock:<id>", "string", "name of the worker that posts a comment", "after a minute")
COMMENTS: Final = Key("comments:due", "sorted set", "jobs of which something is to be said, by when", "never")
POLL_CURSOR: Final = Key(
    "poll:<repo>:cursor:<what>",
    "string",
    "up to where the poller has dealt with a repository's events, comments, prs (pull requests) or reviews, as JSON",
    "35 days after the last good poll",
)
POLL_PULLS: Final = Key(
    "poll:<repo>:prs",
    "hash",
    "the commit at the head of each pull request that the poller knows, by number; `closed` once it is not open",
    "35 days after the last good poll",
)
POLL_ETAG: Final = Key(
    "poll:<repo>:etag:<what>",
    "string",
    "what a list of a repository's, events, comments or pulls, is asked for with to hear whether it is new",
    "35 days after the last good poll",
)
POLL_REVIEW_ETAGS: Final = Key(
    "poll:<repo>:etag:reviews",
    "hash",
    "the same for the reviews of each pull request, by number",
    "35 days after the last good poll",
)
WORKER: Final = Key("worker:<name>", "hash", "how a worker describes itself", "90 seconds after it last did")
WORKERS: Final = Key("workers", "set", "names of the workers that did not say that they end", "never")
SWEPT: Final = Key(
    "swept", "hash", "when the store was last swept, and since when without a pause in which leases ran out", "never"
)
SCHEMA: Final = Key("schema", "string", "number of the format of all of this", "never")
DEPLOYMENT: Final = Key("deployment", "string", "id of the deployment that the store belongs to", "never")

#: All of them.
KEYS: Final[tuple[Key, ...]] = (
    JOB,
    LOCK,
    PROGRESS,
    TOLD,
    DUE,
    QUEUED,
    ACTIVE,
    FAILED_JOBS,
    UNRECORDED,
    QUEUES,
    DEDUP,
    CANCEL_REQUEST,
    CANCEL_ANSWER,
    PAUSED,
    BUDGET,
    BUDGET_TOKENS,
    CRON_LAST,
    SCHED_STALLS,
    TRIGGER_RUNS,
    TRIGGER_PAUSED,
    TRIGGER_RESUMED,
    TRIGGERS_PAUSED,
    TRIGGERS_TRIPPED,
    ONESHOT,
    DELIVERIES,
    SOURCE,
    COMMENT,
    COMMENT_LOCK,
    COMMENTS,
    POLL_CURSOR,
    POLL_PULLS,
    POLL_ETAG,
    POLL_REVIEW_ETAGS,
    WORKER,
    WORKERS,
    SWEPT,
    SCHEMA,
    DEPLOYMENT,
)
#: Beginnings of an id that would make the key of its row that of another thing.
TAKEN: Final = ("lock:", "progress:", "told:")


def named(prefix: str) -> Callable[..., str]:
    """A function that makes the whole name of a key: `named("pi:")(JOB, "local-1")` is `pi:job:local-1`."""

    def name(key: Key, part: str = "") -> str:
        head, variable, _ = key.name.partition("<")
        return f"{prefix}{head}{part if variable else ''}"

    return name
