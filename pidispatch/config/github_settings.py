"""The settings of GitHub: where it is, what its deliveries are signed with, and which account asks it."""

import ipaddress
import re
from enum import StrEnum
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from pydantic import SecretStr, field_validator
from pydantic_settings import BaseSettings

from pidispatch.config.field import setting
from pidispatch.config.kinds import PositiveInt

_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_PEM: Final = re.compile(r"-----BEGIN (?:RSA )?PRIVATE KEY-----\n[A-Za-z0-9+/=\n]+\n-----END (?:RSA )?PRIVATE KEY-----")


class GitHubAuthSource(StrEnum):
    """Where the credential for GitHub comes from."""

    #: The login of the program `gh`.
    GH = "gh"
    #: A personal access token in a variable.
    PAT = "pat"
    #: A GitHub App's private key.
    APP = "app"


class GitHubSettings(BaseSettings):
    """Part of `Settings`."""

    webhook_secret: SecretStr | None = setting(
        None,
        "WEBHOOK_SECRET",
        "What GitHub signs its deliveries with: the secret of the webhook, letter by letter. A receiver that serves "
        "GitHub does not start without.",
        unit="text",
        bound="not blank",
        remedy="WEBHOOK_SECRET=$(openssl rand -hex 32)",
    )
    github_auth_source: GitHubAuthSource = setting(
        GitHubAuthSource.GH,
        "GITHUB_AUTH_SOURCE",
        "Where the credential for GitHub comes from. `gh`: the login of the program gh. `pat`: a token in the variable "
        "that GITHUB_PAT_VAR names. `app`: a GitHub App. A receiver with this variable set serves GitHub whatever "
        "rules there are.",
        unit="name",
        bound="gh, pat or app",
        remedy="GITHUB_AUTH_SOURCE=app",
    )
    github_pat_var: str = setting(
        "GITHUB_PAT",
        "GITHUB_PAT_VAR",
        "Name of the variable that holds the token, where GITHUB_AUTH_SOURCE is `pat`.",
        unit="name",
        bound="letters, digits and `_`, the first no digit",
        remedy="GITHUB_PAT_VAR=GITHUB_PAT",
    )
    github_app_id: PositiveInt | None = setting(
        None,
        "GITHUB_APP_ID",
        "The App's id, from its page. Needed where GITHUB_AUTH_SOURCE is `app`.",
        unit="id",
        bound="1 or more",
        remedy="GITHUB_APP_ID=123456",
    )
    github_app_installation_id: PositiveInt | None = setting(
        None,
        "GITHUB_APP_INSTALLATION_ID",
        "The id of its installation: the number at the end of the address of the installation's page. Needed where "
        "GITHUB_AUTH_SOURCE is `app`.",
        unit="id",
        bound="1 or more",
        remedy="GITHUB_APP_INSTALLATION_ID=7890123",
    )
    github_app_private_key_path: Path | None = setting(
        None,
        "GITHUB_APP_PRIVATE_KEY_PATH",
        "The file of the App's private key. This or GITHUB_APP_PRIVATE_KEY is needed where GITHUB_AUTH_SOURCE is "
        "`app`, and not both.",
        unit="path",
        bound="absolute; existing where it is used",
        remedy="GITHUB_APP_PRIVATE_KEY_PATH=/etc/pi-dispatch/github-app.pem",
    )
    github_app_private_key: SecretStr | None = setting(
        None,
        "GITHUB_APP_PRIVATE_KEY",
        "The App's private key itself, where no file can be mounted.",
        unit="PEM",
        bound=r"a private key in PEM; `\n` stands for a line's end",
        remedy="GITHUB_APP_PRIVATE_KEY=$(cat github-app.pem)",
    )
    github_api_url: str = setting(
        "https://api.github.com",
        "GITHUB_API_URL",
        "Where GitHub's API answers. For GitHub Enterprise Server: `https://HOST/api/v3`.",
        unit="URL",
        bound="https; http only to this machine",
        remedy="GITHUB_API_URL=https://api.github.com",
    )
    github_url: str = setting(
        "https://github.com",
        "GITHUB_URL",
        "Where GitHub itself is: whose login of gh is taken, and what is cloned from.",
        unit="URL",
        bound="https; http only to this machine",
        remedy="GITHUB_URL=https://github.com",
    )

    @field_validator("webhook_secret", mode="after")
    @classmethod
    def _not_blank(cls, secret: SecretStr | None) -> SecretStr | None:
        if secret is not None and not secret.get_secret_value().strip():
            raise ValueError("must not be blank")
        return secret

    @field_validator("github_auth_source", mode="before")
    @classmethod
    def _source(cls, text: object) -> object:
        if text not in list(GitHubAuthSource):
            raise ValueError("must be gh, pat or app")
        return text

    @field_validator("github_pat_var", mode="after")
    @classmethod
    def _variable(cls, name: str) -> str:
        if not _VARIABLE.fullmatch(name):
            # What stands here is often the token itself.
            raise ValueError("must be the name of a variable: letters, digits and '_', the first no digit")
        return name

    @field_validator("github_app_private_key_path", mode="after")
    @classmethod
    def _absolute_key(cls, path: Path | None) -> Path | None:
        if path is not None and not path.is_absolute():
            raise ValueError("must be an absolute path")
        return path

    @field_validator("github_app_private_key", mode="after")
    @classmethod
    def _pem(cls, key: SecretStr | None) -> SecretStr | None:
        if key is None:
            return None
        text = unescaped(key.get_secret_value())
        if not is_pem(text):
            raise ValueError("must be a private key in PEM, from its BEGIN to its END line")
        return SecretStr(text)

    @field_validator("github_api_url", "github_url", mode="after")
    @classmethod
    def _url(cls, text: str) -> str:
        refuse_url(text)
        return text.rstrip("/")


def unescaped(text: str) -> str:
    r"""A key as one writes it into a variable, with its lines: `\n` for their ends, blanks around it dropped."""
    return text.replace("\\n", "\n").replace("\r\n", "\n").strip()


def is_pem(text: str) -> bool:
    """Whether `text` looks like an unencrypted private key."""
    return _PEM.fullmatch(text) is not None


def refuse_url(text: str) -> None:
    """Raise `ValueError` where `text` is no address that a token may be sent to."""
    try:
        parts = urlsplit(text)
        host, odd = parts.hostname, parts.port == 0
    except ValueError:
        raise ValueError("must be a URL") from None
    if not text.isascii() or not text.isprintable() or " " in text or not host or odd:
        raise ValueError("must be a URL with a host")
    if parts.username is not None or parts.password is not None or "?" in text or "#" in text:
        raise ValueError("must be a URL without a user, a query or a fragment")
    if parts.scheme == "http" and _here(host):
        return
    if parts.scheme != "https":
        # Tokens would travel in clear text.
        raise ValueError("must begin with https://")


def _here(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
