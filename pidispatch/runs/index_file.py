"""The file of the index: one SQLite database beside the state, opened only where it is ours, whole and of this folder.

Nothing in it is the only copy of anything, so what is broken is replaced by an empty one. It is replaced whole and
under a lock: whoever opens it sees the old one, none, or the new one.
"""

import contextlib
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Final
from urllib.parse import quote

from filelock import FileLock, Timeout
from sqlalchemy import Connection, Engine, NullPool, create_engine, event, insert, select
from sqlalchemy.exc import DBAPIError

from pidispatch.config.private import private_folder
from pidispatch.runs.index import IndexFault, index_path
from pidispatch.runs.index_schema import FOLDER, SCHEMA, about, metadata
from pidispatch.values.errors import DispatchError

#: Seconds to wait for another one who writes; no write of ours takes a hundredth of it.
BUSY_S: Final = 2.0
_BESIDE: Final = ("-wal", "-shm")
_CAUSES: Final = {
    "SQLITE_BUSY": "locked",
    "SQLITE_CANTOPEN": "unopenable",
    "SQLITE_CORRUPT": "corrupt",
    # No such table or column: a database of somebody else's, or half of ours.
    "SQLITE_ERROR": "corrupt",
    "SQLITE_FULL": "disk-full",
    "SQLITE_IOERR": "unreadable",
    "SQLITE_NOTADB": "corrupt",
    "SQLITE_READONLY": "read-only",
}
#: Device and inode.
Identity = tuple[int, int]
#: Faults of the content, which an empty index does not have.
REPLACED: Final = ("corrupt", "older", "absent")


@contextmanager
def faults() -> Iterator[None]:
    """Turns whatever the database or the disk says into an `IndexFault`."""
    try:
        yield
    except DBAPIError as error:
        raise IndexFault(_cause(error.orig)) from None
    except sqlite3.Error as error:
        raise IndexFault(_cause(error)) from None
    except Timeout:
        raise IndexFault("locked") from None
    except DispatchError as error:
        raise IndexFault(error.cause or "unopenable") from None
    except OSError:
        raise IndexFault("unopenable") from None


def _cause(error: BaseException | None) -> str:
    # Extended codes are a base code and a further word.
    name = "_".join(str(getattr(error, "sqlite_errorname", None)).split("_")[:2])
    return _CAUSES.get(name, name.lower().replace("_", "-"))


def open_to_read(state_dir: Path, folder: Path) -> Connection:
    """The index of the records in `folder`, which is not changed. Raises `IndexFault`."""
    with faults():
        return _judged(_connection(index_path(state_dir), "ro"), folder)


def open_to_write(state_dir: Path, folder: Path) -> Connection:
    """The index of the records in `folder`; an empty one where there was none or a broken one. Raises `IndexFault`."""
    with faults(), _alone(state_dir):
        try:
            with faults():
                return _judged(_connection(index_path(state_dir), "rw"), folder)
        except IndexFault as fault:
            if fault.cause not in REPLACED:
                raise
        _begin(state_dir, folder)
        return _judged(_connection(index_path(state_dir), "rw"), folder)


def replace(state_dir: Path, folder: Path, broken: Identity | None) -> None:
    """Begin an empty index of the records in `folder` in the place of `broken`. Raises `IndexFault`."""
    with faults(), _alone(state_dir):
        # Another one may have found it broken, too, and have gone on with a new one.
        if identity(index_path(state_dir)) == broken:
            _begin(state_dir, folder)


def identity(path: Path) -> Identity | None:
    """Which file lies there; `None` where there is none."""
    try:
        facts = path.stat()
    except OSError:
        return None
    return facts.st_dev, facts.st_ino


@contextmanager
def _alone(state_dir: Path) -> Iterator[None]:
    """One at a time opens the index to write, or puts another one in its place."""
    private_folder(state_dir, "PI_STATE_DIR")
    lock = FileLock(state_dir / "index.lock", timeout=BUSY_S, thread_local=False)
    with lock:
        yield


def _connection(path: Path, mode: str) -> Connection:
    if not path.exists():
        raise IndexFault("absent")
    engine = _engine(path, mode)
    return engine.connect()


def _engine(path: Path, mode: str) -> Engine:
    def connect() -> sqlite3.Connection:
        # Transactions are begun by hand: the module itself would begin one only before it writes.
        # https://docs.sqlalchemy.org/en/20/dialects/sqlite.html#pysqlite-serializable
        uri = f"file:{quote(os.fsencode(path))}?mode={mode}"
        made = sqlite3.connect(uri, uri=True, timeout=BUSY_S, isolation_level=None, check_same_thread=False)
        try:
            made.execute("PRAGMA synchronous = NORMAL")
            made.execute("PRAGMA foreign_keys = ON")
        except BaseException:
            made.close()
            raise
        return made

    engine = create_engine("sqlite://", creator=connect, poolclass=NullPool)
    # Whoever writes later than it reads would find its snapshot outdated, which no waiting mends.
    begin = "BEGIN" if mode == "ro" else "BEGIN IMMEDIATE"
    event.listen(engine, "begin", lambda connection: connection.connection.driver_connection.execute(begin))
    return engine


def _judged(connection: Connection, folder: Path) -> Connection:
    """`connection`, where it is of this version and this folder; closed where not."""
    try:
        with faults():
            version = connection.exec_driver_sql("PRAGMA user_version").scalar_one()
            if version != SCHEMA:
                raise IndexFault("newer" if version > SCHEMA else "older" if version else "corrupt")
            of = connection.execute(select(about.c.value).where(about.c.key == FOLDER)).scalar_one_or_none()
            if of != _real(folder):
                raise IndexFault("corrupt" if of is None else "other-folder")
            connection.rollback()
    except BaseException:
        connection.close()
        raise
    return connection


def _real(folder: Path) -> str:
    # A path need not be text.
    return os.fsencode(os.path.realpath(folder)).decode(errors="backslashreplace")


def _begin(state_dir: Path, folder: Path) -> None:
    """Put an empty index in place. Made aside, so that nobody meets a half of it."""
    path = index_path(state_dir)
    fresh = path.with_name(f"{path.name}.new")
    _remove(fresh)
    os.close(os.open(fresh, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600))
    with closing(sqlite3.connect(fresh)) as made:
        # Kept in the file; within a transaction it could not be set. Where the file system cannot do it the old way
        # stays, and all holds but that readers and writers wait for each other.
        made.execute("PRAGMA journal_mode = WAL")
    with _engine(fresh, "rw").connect() as connection, connection.begin():
        metadata.create_all(connection, checkfirst=False)
        connection.execute(insert(about), [{"key": FOLDER, "value": _real(folder)}])
        connection.exec_driver_sql(f"PRAGMA user_version = {SCHEMA}")
    # Never a log beside a database that is not its own.
    _remove(path)
    fresh.rename(path)


def _remove(path: Path) -> None:
    path.unlink(missing_ok=True)
    for suffix in _BESIDE:
        with contextlib.suppress(FileNotFoundError):
            path.with_name(path.name + suffix).unlink()
