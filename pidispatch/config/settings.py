"""Every variable this version reads, one field each; docs/reference/settings.md is made from the fields.

A malformed value ends the process with exit code 2 and names the variable, the value and the remedy. It is never
replaced by a default in silence.
"""

import os
import re
import tempfile
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import Field, ValidationError, field_validator, model_validator
from pydantic_settings import BaseSettings, NoDecode, PydanticBaseSettingsSource, SettingsConfigDict

from pidispatch.config.kinds import ImageReference, NameList, PlainText, PositiveInt, Switch
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


def _setting(default: Any, variable: str, description: str, *, unit: str, bound: str, remedy: str) -> Any:
    extra: dict[str, Any] = {"unit": unit, "bound": bound, "remedy": remedy}
    if callable(default):
        return Field(default_factory=default, alias=variable, description=description, json_schema_extra=extra)
    return Field(default=default, alias=variable, description=description, json_schema_extra=extra)


_CONTAINER = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
#: Variables for which an empty value is refused instead of read as unset.
_EMPTY_IS_A_VALUE = frozenset({"PI_JOBS_DIR", "PI_GLOBAL_PI_DIR"})


class Settings(BaseSettings):
    """The settings of one process, read once from its environment."""

    model_config = SettingsConfigDict(case_sensitive=True, extra="ignore", frozen=True, env_prefix="")

    provider: PlainText = _setting(
        "anthropic",
        "PI_PROVIDER",
        "Model provider of a job that names none, as pi calls it.",
        unit="name",
        bound="one line of text",
        remedy="PI_PROVIDER=anthropic",
    )
    model: PlainText = _setting(
        "claude-sonnet-4-5-20250929",
        "PI_MODEL",
        "Model of a job that names none: the provider's own exact id.",
        unit="name",
        bound="one line of text",
        remedy="PI_MODEL=claude-sonnet-4-5-20250929",
    )
    max_turns: PositiveInt = _setting(
        30,
        "PI_MAX_TURNS",
        "Most model turns of a run. The run is stopped before the request that would go past it.",
        unit="turns",
        bound="1 or more",
        remedy="PI_MAX_TURNS=30",
    )
    max_tokens: PositiveInt | None = _setting(
        None,
        "PI_MAX_TOKENS",
        "Most billed tokens of a run, cache included. Checked after each turn, so a run may pass it by one turn.",
        unit="tokens",
        bound="1 or more; unset or empty: no cap",
        remedy="PI_MAX_TOKENS=200000",
    )
    job_image: ImageReference = _setting(
        "pi-job:latest",
        "PI_JOB_IMAGE",
        "Image of a job that names none. It must be on the engine; it is never pulled.",
        unit="image reference",
        bound="lower-case letters, digits and `. _ - /`, with a tag",
        remedy="PI_JOB_IMAGE=pi-job:latest",
    )
    jobs_dir: Path = _setting(
        lambda: _account_tmp() / "jobs",
        "PI_JOBS_DIR",
        "Folder for the inputs of running jobs. Must belong to this account; made with mode 0700 when absent.",
        unit="path",
        bound="absolute",
        remedy="PI_JOBS_DIR=/var/lib/pi-dispatch/jobs",
    )
    state_dir: Path = _setting(
        _default_state_dir,
        "PI_STATE_DIR",
        "Folder for what must outlive a run: the id of this deployment. Made with mode 0700 when absent.",
        unit="path",
        bound="absolute",
        remedy="PI_STATE_DIR=/var/lib/pi-dispatch",
    )
    global_pi_dir: Path | None = _setting(
        None,
        "PI_GLOBAL_PI_DIR",
        "Folder mounted read-only into every job as the agent's overlay. It may hold `models.json` and, in this "
        "version, nothing else; no credential may stand in it.",
        unit="path",
        bound="absolute and existing; unset: no overlay",
        remedy="PI_GLOBAL_PI_DIR=/etc/pi-dispatch/overlay",
    )
    egress: Switch = _setting(
        True,
        "PI_EGRESS",
        "1: a job reaches one neighbour and nothing else. 0: a job has the engine's default network, and so "
        "whatever this machine can reach.",
        unit="switch",
        bound="0 or 1",
        remedy="PI_EGRESS=1",
    )
    egress_proxy: PlainText = _setting(
        "pi-dispatch-egress-proxy",
        "PI_EGRESS_PROXY",
        "Name of the running container that is every job's one neighbour: an HTTP proxy on port 3128.",
        unit="container name",
        bound="letters, digits, `_`, `.`, `-`; the first a letter or digit",
        remedy="PI_EGRESS_PROXY=pi-dispatch-egress-proxy",
    )
    forward_env: Annotated[NameList, NoDecode] = _setting(
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
        return {key: value for key, value in data.items() if value != "" or key in _EMPTY_IS_A_VALUE}

    @field_validator("jobs_dir", "state_dir", "global_pi_dir", mode="after")
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
        refused |= {*names.NEVER_FORWARDED}
        if self.egress:
            refused |= {*names.PROXY_WRITTEN}
        offenders = [name for name in self.forward_env if name in refused]
        if offenders:
            raise ValueError(
                f"PI_FORWARD_ENV names {', '.join(offenders)}: the box writes these itself or they never enter it. "
                "Take them out of PI_FORWARD_ENV"
            )
        return self


def load_settings() -> Settings:
    """The settings of this process. Raises `ConfigError` naming every malformed variable."""
    try:
        return Settings()
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
        lines.append(f"{variable}='{printable(str(fault['input']))}' {reason}. Write for example: {remedy}")
    return lines
