"""What is measured while a soak goes on: memory of workers and server, and keys by their kind."""

import os
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from redis.exceptions import RedisError

from pidispatch.jobs.keys import KEYS
from tests.soak.place import PREFIX, Place

#: Keys whose memory is asked for in one command.
_CHUNK: Final = 500
#: Kinds of keys of which each job leaves one or more, until they expire.
PER_JOB: Final = frozenset({"job:<id>", "job:progress:<id>", "job:told:<id>", "cancel:req:<id>", "cancel:ack:<id>"})
#: Kinds that Celery's transport has, by the beginning of their names.
_TRANSPORT: Final = ("unacked", "pi-jobs", "_kombu.binding", "celeryev", "celery.")
#: The most special ones first, as `job:<id>` begins like others.
_HEADS: Final = sorted(((key.name.partition("<")[0], key.name) for key in KEYS), key=lambda one: -len(one[0]))


@dataclass(frozen=True)
class Sample:
    """One look. Seconds are since 1970; a server that is away tells nothing."""

    at: float
    #: KiB that each process of a worker holds, and the files and sockets that it has open, by worker and pid.
    resident_kib: dict[tuple[str, int], int]
    open_files: dict[tuple[str, int], int] = field(default_factory=dict)
    #: Bytes that the server holds, and those of them that belong to single jobs.
    used: int | None = None
    of_jobs: int | None = None
    keys: Counter[str] = field(default_factory=Counter)

    @property
    def rest(self) -> int | None:
        """Bytes of the server that no job explains."""
        return None if self.used is None or self.of_jobs is None else self.used - self.of_jobs

    @property
    def other_keys(self) -> int:
        """Keys that are none of a single job's."""
        return sum(count for kind, count in self.keys.items() if kind not in PER_JOB)


def kind_of(name: str) -> str | None:
    """The kind of a key by its name after the prefix; `None` for one that nobody declared."""
    for head, kind in _HEADS:
        if name == head or (name.startswith(head) and "<" in kind):
            return kind
    # A reply to a control command has the id of its asker in front.
    if name.startswith(_TRANSPORT) or name.endswith(".reply.celery.pidbox"):
        return "celery"
    return None


def look(place: Place) -> Sample:
    """Look at everything."""
    pids = [(worker.name, pid) for worker in place.workers if (pid := worker.pid) is not None]
    resident = {life: kib for life in pids if (kib := _resident(life[1])) is not None}
    files = {life: count for life in pids if (count := _open_files(life[1])) is not None}
    try:
        client = place.server.client()
        try:
            names = sorted(client.scan_iter(f"{PREFIX}*", count=1000))
            kinds = {name: kind_of(name.removeprefix(PREFIX)) or "unknown" for name in names}
            of_jobs = sum(_sizes(client, (name for name in names if kinds[name] in PER_JOB)))
            info: Any = client.info("memory")
        finally:
            client.close()
    except (RedisError, OSError):
        return Sample(time.time(), resident, files)
    return Sample(time.time(), resident, files, int(info["used_memory"]), of_jobs, Counter(kinds.values()))


def _resident(pid: int) -> int | None:
    """KiB that a process holds; `None` where it is gone."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return None
    found = [line.split()[1] for line in lines if line.startswith("VmRSS:")]
    return int(found[0]) if found else None


def _open_files(pid: int) -> int | None:
    """The descriptors of a process; `None` where it is gone."""
    try:
        return len(os.listdir(f"/proc/{pid}/fd"))
    except OSError:
        return None


def _sizes(client: Any, names: Iterable[str]) -> Iterator[int]:
    asked = list(names)
    for first in range(0, len(asked), _CHUNK):
        with client.pipeline(transaction=False) as questions:
            for name in asked[first : first + _CHUNK]:
                questions.memory_usage(name, samples=0)
            # One that expired meanwhile has none.
            yield from (size or 0 for size in questions.execute())


def unexplained(client: Any, ids: set[str]) -> Iterator[str]:
    """Keys that are of no declared kind, or a single job's without an end or without a job; for the quiet end."""
    for name in sorted(client.scan_iter(f"{PREFIX}*", count=1000)):
        plain = name.removeprefix(PREFIX)
        kind = kind_of(plain)
        if kind is None:
            yield f"key {plain}: of no kind that is declared"
        elif kind == "job:lock:<id>" or kind.startswith("dedup"):
            yield f"key {plain}: nothing runs any more"
        elif kind in PER_JOB:
            if plain.removeprefix(kind.partition("<")[0]) not in ids:
                yield f"key {plain}: of no job that was handed in"
            if client.pttl(name) < 0:
                yield f"key {plain}: stays for ever"
        elif kind.startswith("jobs:") and kind != "jobs:failed":
            yield f"key {plain}: an index that should be empty holds {client.zrange(name, 0, 4)}"
