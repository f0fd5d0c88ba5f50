"""The settings of the queue: which server, whose keys, how many jobs, under which name."""

import re
from pathlib import Path

from pydantic import field_validator
from pydantic_settings import BaseSettings

from pidispatch.config.field import setting
from pidispatch.config.host import host_name
from pidispatch.config.kinds import NonNegativeInt, PlainText, PositiveInt

_PASSWORD = re.compile(r"[A-Za-z0-9_-]{16,}")
_PREFIX = re.compile(r"[A-Za-z0-9_.:-]{0,63}:")
_WORKER = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


class QueueSettings(BaseSettings):
    """Part of `Settings`."""

    valkey_url: str | None = setting(
        None,
        "VALKEY_URL",
        "The server of the queue: Redis 7 or newer, or Valkey. Unset: pi-dispatch's own, which it starts in "
        "PI_STATE_DIR and ends with its last user. `redis://`, `rediss://` (the certificate is checked), "
        "`unix:///path`, or `sentinel://host:26379,host:26379/0?master=NAME`. A Redis Cluster cannot serve.",
        unit="URL",
        bound="redis, rediss, unix or sentinel",
        remedy="VALKEY_URL=redis://127.0.0.1:6379/0",
    )
    valkey_password: PlainText | None = setting(
        None,
        "VALKEY_PASSWORD",
        "Password for the server of VALKEY_URL. One that stands in the URL itself wins.",
        unit="text",
        bound="letters, digits, `_` and `-`; 16 or more",
        remedy="VALKEY_PASSWORD=$(openssl rand -hex 24)",
    )
    key_prefix: str = setting(
        "pi:",
        "PI_KEY_PREFIX",
        "What every key on the server begins with, so that others can use the server too. Workers, `run` and Flower "
        "must have the same.",
        unit="text",
        bound="letters, digits, `_`, `-`, `.`, `:`; it ends with `:`",
        remedy="PI_KEY_PREFIX=pi:",
    )
    concurrency: PositiveInt = setting(
        3,
        "PI_CONCURRENCY",
        "Jobs that run at the same time on this machine.",
        unit="jobs",
        bound="1 or more",
        remedy="PI_CONCURRENCY=3",
    )
    breaker_runs: NonNegativeInt = setting(
        5,
        "PI_BREAKER_RUNS",
        "So many runs of one trigger, one after the other, that fail, are refused or change nothing pause it, until "
        "`pi-dispatch triggers resume`. 0: no trigger is paused.",
        unit="runs",
        bound="0 or more",
        remedy="PI_BREAKER_RUNS=5",
    )
    worker_name: str = setting(
        host_name,
        "PI_WORKER_NAME",
        "Name of this worker and of its own queue, `pi-jobs@NAME`; `run` of the same environment sends its jobs there.",
        unit="name",
        bound="letters, digits, `.`, `_`, `-`, at most 64, the first a letter or digit",
        remedy="PI_WORKER_NAME=build-1",
    )
    celery_config: Path | None = setting(
        None,
        "PI_CELERY_CONFIG",
        "A file of Celery settings of your own, merged over pi-dispatch's. Unset: `celeryconfig.py` in PI_STATE_DIR, "
        "where there is one. Never read from the current folder.",
        unit="path",
        bound="absolute and existing",
        remedy="PI_CELERY_CONFIG=/etc/pi-dispatch/celeryconfig.py",
    )

    @field_validator("celery_config", mode="after")
    @classmethod
    def _existing_file(cls, path: Path | None) -> Path | None:
        if path is not None and not path.is_absolute():
            raise ValueError("must be an absolute path")
        if path is not None and not path.is_file():
            raise ValueError("must be an existing file")
        return path

    @field_validator("valkey_password", mode="after")
    @classmethod
    def _password(cls, text: str | None) -> str | None:
        if text is not None and not _PASSWORD.fullmatch(text):
            # Never repeated: it is a secret.
            raise ValueError("must be 16 or more letters, digits, '_' and '-'")
        return text

    @field_validator("key_prefix", mode="after")
    @classmethod
    def _prefix(cls, text: str) -> str:
        if not _PREFIX.fullmatch(text):
            raise ValueError("must be letters, digits, '_', '-', '.' and ':', and end with ':'")
        return text

    @field_validator("worker_name", mode="after")
    @classmethod
    def _worker(cls, name: str) -> str:
        if name.endswith((".json", ".log")):
            raise ValueError("must not end with .json or .log")
        if not _WORKER.fullmatch(name):
            raise ValueError("must be letters, digits, '.', '_' and '-', at most 64, the first a letter or digit")
        return name
