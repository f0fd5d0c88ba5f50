"""The tables of the index. A change of any of them is a new `SCHEMA`, which begins an index of its own."""

from typing import Final

from sqlalchemy import BigInteger, Boolean, Column, ForeignKey, Index, MetaData, Table, Text, text

#: Kept as the file's `user_version`.
SCHEMA: Final = 1

metadata = MetaData()

#: What the index is of.
about = Table("about", metadata, Column("key", Text, primary_key=True), Column("value", Text, nullable=False))
#: The key of the records' folder, by its real path.
FOLDER: Final = "folder"

#: Every file that was read, with what told its content apart then.
files = Table(
    "files",
    metadata,
    Column("file", Text, primary_key=True),
    # Of its name: whoever has a list of names can tell by a sum whether all of them stand here.
    Column("crc", BigInteger, nullable=False),
    Column("stamp", Text, nullable=False),
    # Whether its record stands in `attempts`. The others are read by whoever looks.
    Column("holds", Boolean, nullable=False),
    sqlite_with_rowid=False,
)


def _of_file() -> Column[str]:
    return Column("file", Text, ForeignKey(files.c.file, ondelete="CASCADE"), primary_key=True)


def _columns(kind: type[Text | BigInteger | Boolean], *names: str) -> list[Column[object]]:
    return [Column(name, kind) for name in names]


attempts = Table(
    "attempts",
    metadata,
    _of_file(),
    Column("place", BigInteger, primary_key=True),
    Column("last", Boolean, nullable=False),
    Column("job_id", Text, nullable=False),
    *_columns(Text, "kind", "target", "flow", "command", "outcome", "reason", "cause"),
    *_columns(Text, "provider", "model", "host", "image_digest", "parent_job_id", "trigger_type", "trace_id"),
    *_columns(BigInteger, "attempt", "started_us", "ended_us", "at_us", "exit_code", "turns"),
    *_columns(BigInteger, "tokens_input", "tokens_output", "tokens_total", "calls", "unresolved", "unpriced"),
    *_columns(BigInteger, "cost_micros", "usage_truncated", "context_tokens", "context_window", "git_restored"),
    *_columns(BigInteger, "chain_depth", "chain_enqueued", "chain_refused", "replica", "replicas", "trigger_index"),
    *_columns(Boolean, "changed", "budget_reserved", "metered"),
    sqlite_with_rowid=False,
)

usage = Table(
    "usage",
    metadata,
    _of_file(),
    Column("place", BigInteger, primary_key=True),
    Column("number", BigInteger, primary_key=True),
    *_columns(Text, "provider", "model"),
    *_columns(BigInteger, "calls", "input", "output", "cache_read", "cache_write", "cache_write1h"),
    *_columns(BigInteger, "reasoning", "total", "unpriced", "cost_micros"),
    sqlite_with_rowid=False,
)

# Newest first, as they are listed. With outcome and reason in it, what is not wanted is passed over without a look at
# its row.
Index("newest", attempts.c.last, attempts.c.at_us.desc(), attempts.c.file, attempts.c.outcome, attempts.c.reason)
# In the words of the query, with which SQLite compares them.
Index("unheld", files.c.file, sqlite_where=text("holds = 0"))
Index("by_job", attempts.c.job_id, attempts.c.attempt)
