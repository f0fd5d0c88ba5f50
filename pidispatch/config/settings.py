"""Every variable this version reads, one field each; docs/reference/settings.md is made from the fields.

A malformed value ends the process with exit code 2 and names the variable, the value and the remedy. It is never
replaced by a default in silence.
"""

import os
import re
import tempfile
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Annotated, Any, Final, Self

from pydantic import ValidationError, field_validator, model_validator
from pydantic_settings import BaseSettings, NoDecode, PydanticBaseSettingsSource, SettingsConfigDict

from pidispatch.config.field import setting
from pidispatch.config.file_settings import FileSettings
from pidispatch.config.github_settings import GitHubSettings
from pidispatch.config.kinds import (
    ImageReference,
    NameList,
    NonNegativeInt,
    OnUnlessZero,
    PlainText,
    PositiveInt,
    StrictOne,
    Switch,
    WeekHours,
)
from pidispatch.config.money_settings import MoneySettings
from pidispatch.config.poll_settings import PollSettings
from pidispatch.config.queue_settings import QueueSettings
from pidispatch.config.receiver_settings import ReceiverSettings
from pidispatch.config.text import printable
from pidispatch.values import names
from pidispatch.values.errors import ConfigError


def _account_tmp() -> Path:
    return Path(tempfile.gettempdir()) / f"pi-dispatch-{os.getuid()}"


def _default_state_dir() -> Path:
    try:
        return Path.home() / ".pi-dispatch"
    except RuntimeError:
        # An account without a home, as in a container under an arbitrary user.
        return _account_tmp() / "state"


def _default_agent_dir() -> Path:
    try:
        return Path.home() / ".pi" / "agent"
    except RuntimeError:
        return Path("/nonexistent")


_CONTAINER = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
#: Variables for which an empty value is refused instead of read as unset.
EMPTY_IS_A_VALUE: Final = (
    "PI_JOBS_DIR",
    "PI_GLOBAL_PI_DIR",
    "PI_PAUSE_WINDOWS_FILE",
    "GITHUB_AUTH_SOURCE",
    "POLL_REPOS",
)


#: Variables whose value is never repeated: secrets, and those in whose place people put one.
_SECRET = frozenset(
    {
        "VALKEY_PASSWORD",
        "WEBHOOK_SECRET",
        "GITHUB_APP_PRIVATE_KEY",
        "GITHUB_PAT_VAR",
        "GITHUB_API_URL",
        "GITHUB_URL",
    }
)


class Settings(FileSettings, MoneySettings, QueueSettings, ReceiverSettings, GitHubSettings, PollSettings):
    """The settings of one process, read once from its environment."""

    model_config = SettingsConfigDict(case_sensitive=True, extra="ignore", frozen=True, env_prefix="")

    provider: PlainText = setting(
        "anthropic",
        "PI_PROVIDER",
        "Model provider of a job that names none, as pi calls it.",
        unit="name",
        bound="one line of text",
        remedy="PI_PROVIDER=anthropic",
    )
    model: PlainText = setting(
        "claude-sonnet-4-5-20250929",
        "PI_MODEL",
        "Model of a job that names none: the provider's own exact id.",
        unit="name",
        bound="one line of text",
        remedy="PI_MODEL=claude-sonnet-4-5-20250929",
    )
    max_turns: PositiveInt = setting(
        30,
        "PI_MAX_TURNS",
        "Most model turns of a run. The run is stopped before the request that would go past it.",
        unit="turns",
        bound="1 or more",
        remedy="PI_MAX_TURNS=30",
    )
    max_tokens: PositiveInt | None = setting(
        None,
        "PI_MAX_TOKENS",
        "Most billed tokens of a run, cache included. Checked after each turn, so a run may pass it by one turn.",
        unit="tokens",
        bound="1 or more; unset or empty: no cap",
        remedy="PI_MAX_TOKENS=200000",
    )
    job_image: ImageReference = setting(
        "pi-job:latest",
        "PI_JOB_IMAGE",
        "Image of a job that names none. It must be on the engine; it is never pulled.",
        unit="image reference",
        bound="lower-case letters, digits and `. _ - /`, with a tag",
        remedy="PI_JOB_IMAGE=pi-job:latest",
    )
    jobs_dir: Path = setting(
        lambda: _default_state_dir() / "jobs",
        "PI_JOBS_DIR",
        "Folder for the inputs of running jobs, for what a killed run left to be settled, and for the kept versions of "
        "git files. Must belong to this account; made with mode 0700 when absent. Name none that is emptied when the "
        "machine starts.",
        unit="path",
        bound="absolute",
        remedy="PI_JOBS_DIR=/var/lib/pi-dispatch/jobs",
    )
    state_dir: Path = setting(
        _default_state_dir,
        "PI_STATE_DIR",
        "Folder for what must outlive a run: the id of this deployment, the locks of folders in use, and the data of "
        "pi-dispatch's own server. Made with "
        "mode 0700 when absent.",
        unit="path",
        bound="absolute",
        remedy="PI_STATE_DIR=/var/lib/pi-dispatch",
    )
    logs_dir: Path = setting(
        lambda: _default_state_dir() / "logs",
        "PI_LOGS_DIR",
        "Folder of the run records, one JSON file a run, and of the kept output of jobs. Made with mode 0700 when "
        "absent.",
        unit="path",
        bound="absolute",
        remedy="PI_LOGS_DIR=/var/lib/pi-dispatch/logs",
    )
    log_retention_days: NonNegativeInt = setting(
        30,
        "PI_LOG_RETENTION_DAYS",
        "Days that run records, kept output and kept versions of git files stay; older ones are removed when a "
        "worker begins, and then every PI_SWEEP_INTERVAL_HOURS. 0: for ever. Below 32 the windows of a month cannot be "
        "counted anew from the records, and a worker warns where that is asked for.",
        unit="days",
        bound="0 or more",
        remedy="PI_LOG_RETENTION_DAYS=30",
    )
    sweep_interval_hours: WeekHours = setting(
        24,
        "PI_SWEEP_INTERVAL_HOURS",
        "Hours between two looks of a worker for what is older than its retention. 0: only when it begins.",
        unit="hours",
        bound="0 to 168",
        remedy="PI_SWEEP_INTERVAL_HOURS=24",
    )
    capture_job_logs: StrictOne = setting(
        False,
        "PI_CAPTURE_JOB_LOGS",
        "1: keep the whole output of each job beside its record. It can hold whatever the agent printed.",
        unit="switch",
        bound="1 turns it on, anything else leaves it off",
        remedy="PI_CAPTURE_JOB_LOGS=1",
    )
    job_log_max_bytes: PositiveInt = setting(
        64 * 1024 * 1024,
        "PI_JOB_LOG_MAX_BYTES",
        "Most bytes kept of one job's output. Past it a marker line is written and no more.",
        unit="bytes",
        bound="1 or more",
        remedy="PI_JOB_LOG_MAX_BYTES=67108864",
    )
    auth_from_pi: OnUnlessZero = setting(
        True,
        "PI_AUTH_FROM_PI",
        "Whether a provider without a key in the environment takes the API key that pi itself keeps for it on this "
        "machine. A login that is no plain API key is never taken.",
        unit="switch",
        bound="0 turns it off, anything else leaves it on",
        remedy="PI_AUTH_FROM_PI=0",
    )
    agent_dir: Path = setting(
        _default_agent_dir,
        "PI_CODING_AGENT_DIR",
        "pi's own folder on this machine. Only its auth.json is read, for an API key.",
        unit="path",
        bound="absolute",
        remedy="PI_CODING_AGENT_DIR=/home/me/.pi/agent",
    )
    global_pi_dir: Path | None = setting(
        None,
        "PI_GLOBAL_PI_DIR",
        "Folder mounted read-only into every job as the agent's overlay. It may hold `models.json` and, in this "
        "version, nothing else; no credential may stand in it.",
        unit="path",
        bound="absolute and existing; unset: no overlay",
        remedy="PI_GLOBAL_PI_DIR=/etc/pi-dispatch/overlay",
    )
    egress: Switch = setting(
        True,
        "PI_EGRESS",
        "1: a job reaches one neighbour and nothing else. 0: a job has the engine's default network, and so "
        "whatever this machine can reach.",
        unit="switch",
        bound="0 or 1",
        remedy="PI_EGRESS=1",
    )
    egress_proxy: PlainText = setting(
        names.EGRESS_PROXY,
        "PI_EGRESS_PROXY",
        "Name of the running container that is every job's one neighbour: an HTTP proxy on port 3128.",
        unit="container name",
        bound="letters, digits, `_`, `.`, `-`; the first a letter or digit",
        remedy="PI_EGRESS_PROXY=pi-dispatch-egress-proxy",
    )
    egress_dir: Path = setting(
        lambda: _default_state_dir() / "egress",
        "PI_EGRESS_DIR",
        "Folder of the shipped proxy's lists, egress-allowlist.conf and egress-private.conf. It is mounted read-only "
        "into the proxy, which takes an edit over within seconds.",
        unit="path",
        bound="absolute",
        remedy="PI_EGRESS_DIR=/etc/pi-dispatch/egress",
    )
    forward_env: Annotated[NameList, NoDecode] = setting(
        (),
        "PI_FORWARD_ENV",
        "Names of further variables to hand to every job, comma-separated. The agent can read their values.",
        unit="names",
        bound="no name that the box writes itself and no credential minted per job",
        remedy="PI_FORWARD_ENV=NPM_CONFIG_REGISTRY,PIP_INDEX_URL",
    )

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],  # noqa: ARG003 - the signature is given
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,  # noqa: ARG003 - never read: a folder must not configure us
        file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003 - likewise
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Only arguments and the process's own environment; no file of the current folder is ever read."""
        return init_settings, env_settings

    @model_validator(mode="before")
    @classmethod
    def _empty_is_unset(cls, data: dict[str, Any]) -> dict[str, Any]:
        return {key: value for key, value in data.items() if value != "" or key in EMPTY_IS_A_VALUE}

    @field_validator("jobs_dir", "state_dir", "logs_dir", "agent_dir", "egress_dir", "global_pi_dir", mode="after")
    @classmethod
    def _absolute(cls, path: Path | None) -> Path | None:
        if path is not None and not path.is_absolute():
            raise ValueError("must be an absolute path")
        return path

    @field_validator("global_pi_dir", mode="after")
    @classmethod
    def _existing(cls, path: Path | None) -> Path | None:
        if path is not None and not path.is_dir():
            raise ValueError("must be an existing folder")
        return path

    @field_validator("egress_proxy", mode="after")
    @classmethod
    def _container_name(cls, name: str) -> str:
        if not _CONTAINER.fullmatch(name):
            raise ValueError("must be a container name: letters, digits, '_', '.', '-', the first a letter or digit")
        return name

    @model_validator(mode="after")
    def _forwardable(self) -> Self:
        refused = {*names.ALWAYS_WRITTEN, *names.SOMETIMES_WRITTEN, *names.RUNNER_INTERNAL, *names.RESERVED}
        refused -= {"HOME"}
        refused |= {*names.NEVER_FORWARDED, self.github_pat_var}
        if self.egress:
            refused |= {*names.PROXY_WRITTEN}
        offenders = [name for name in self.forward_env if name in refused]
        if offenders:
            raise ValueError(
                f"PI_FORWARD_ENV names {', '.join(offenders)}: the box writes these itself or they never enter it. "
                "Take them out of PI_FORWARD_ENV"
            )
        return self


def refuse_unserved_bounds(environ: Mapping[str, str]) -> None:
    """Refuse (`ConfigError`) what is set of later versions: bounds that nothing enforces, files that nothing reads.

    Whoever sets one relies on it; to run on without it would be a promise broken in silence.
    """
    found = [
        name
        for name in names.UNSERVED_BOUNDS
        if environ.get(name) or (name in names.UNSERVED_FILES and name in environ)
    ]
    if found:
        raise ConfigError(
            f"{', '.join(found)} {'is' if len(found) == 1 else 'are'} set, and this version serves nothing of that, "
            f"so nothing is run. Unset what nothing serves (unset {' '.join(found)}). What bounds runs is PI_DAILY_CAP "
            "and its like, PI_MAX_TURNS and PI_MAX_TOKENS for each, and a limit at the provider",
            "unserved-bound",
        )


class _Given(Settings):
    """The settings without the process's environment: from arguments alone."""

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],  # noqa: ARG003 - the signature is given
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,  # noqa: ARG003
        dotenv_settings: PydanticBaseSettingsSource,  # noqa: ARG003
        file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        return (init_settings,)


def load_settings() -> Settings:
    """The settings of this process. Raises `ConfigError` naming every malformed variable."""
    return _load(Settings, {})


def load_only(variables: Collection[str]) -> Settings:
    """Like `load_settings`, of these variables alone, so that others may be malformed; those stand at their defaults.

    Hand on what is typed as no more than the fields of these variables.
    """
    return _load(_Given, {name: os.environ[name] for name in variables if name in os.environ})


def _load(kind: type[Settings], given: dict[str, Any]) -> Settings:
    try:
        return kind(**given)
    except ValidationError as error:
        raise ConfigError("\n".join(_explain(error)), cause="setting") from None


def _explain(error: ValidationError) -> list[str]:
    remedies = {field.alias: field.json_schema_extra for field in Settings.model_fields.values()}
    lines = []
    for fault in error.errors():
        reason = str(fault["ctx"]["error"]) if "error" in fault.get("ctx", {}) else fault["msg"]
        if not fault["loc"]:
            lines.append(f"{reason}.")
            continue
        variable = str(fault["loc"][0])
        extra = remedies.get(variable)
        remedy = extra["remedy"] if isinstance(extra, dict) else variable
        shown = "" if variable in _SECRET else f"='{printable(str(fault['input']))}'"
        lines.append(f"{variable}{shown} {reason}. Write for example: {remedy}")
    return lines
