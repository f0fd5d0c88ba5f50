"""Whose credential GitHub is asked with: gh's login, a token in a variable, or an App's key.

A token is fetched for each question and kept nowhere. No message repeats one.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from github.Auth import Auth
from jwt.exceptions import PyJWTError

from pidispatch.config.github_settings import GitHubAuthSource, GitHubSettings, is_pem, unescaped
from pidispatch.forges.github.api import app_jwt, token_auth
from pidispatch.forges.protocol import Programs
from pidispatch.values.clock import Clock
from pidispatch.values.errors import ConfigError, InfraError

_TOKEN: Final = re.compile(r"[!-~]{1,1000}", re.ASCII)
_GH_TIMEOUT_S: Final = 10.0
_GH_BYTES: Final = 4096
#: What gh finds its login by: its own variables, its files, or the keyring of a desktop.
_GH_ENVIRONMENT: Final = (
    "PATH",
    "HOME",
    "XDG_CONFIG_HOME",
    "XDG_STATE_HOME",
    "XDG_DATA_HOME",
    "XDG_RUNTIME_DIR",
    "DBUS_SESSION_BUS_ADDRESS",
    "GH_CONFIG_DIR",
    "GH_TOKEN",
    "GITHUB_TOKEN",
    "GH_ENTERPRISE_TOKEN",
    "GITHUB_ENTERPRISE_TOKEN",
)
_LARGEST_PEM: Final = 65536


@dataclass(frozen=True)
class PersonalToken:
    """A token in a variable."""

    variable: str
    value: str = field(repr=False)

    def auth(self) -> Auth:
        """What it is sent with."""
        return token_auth(self.value)

    @property
    def shown(self) -> str:
        """What it is called in a message, and where it is mended."""
        return f"the token in {self.variable}"


@dataclass(frozen=True)
class GhLogin:
    """The login of the program gh, asked for each time: it can be renewed while a receiver runs."""

    host: str
    programs: Programs
    environment: Mapping[str, str] = field(repr=False)

    def auth(self) -> Auth:
        """What its token is sent with. Raises `ConfigError` without a login, `InfraError` where gh does not end."""
        try:
            gh = self.programs.program("gh")
        except InfraError:
            raise ConfigError(
                "GITHUB_AUTH_SOURCE is gh, and the program gh is not on the PATH. Install it, or choose a credential: "
                "GITHUB_AUTH_SOURCE=pat or app",
                "setting",
            ) from None
        ended = self.programs.run_program(
            [gh, "auth", "token", "--hostname", self.host],
            env=self.environment,
            cwd=Path("/"),
            timeout_s=_GH_TIMEOUT_S,
            max_bytes=_GH_BYTES,
        )
        token = ended.output.decode("ascii", "replace").strip()
        if ended.code != 0 or not _TOKEN.fullmatch(token):
            raise ConfigError(
                f"GITHUB_AUTH_SOURCE is gh, and gh has no login for {self.host} under this account. Log in with: "
                f"gh auth login --hostname {self.host}; or choose a credential: GITHUB_AUTH_SOURCE=pat or app",
                "setting",
            )
        return token_auth(token)

    @property
    def shown(self) -> str:
        """What it is called in a message."""
        return f"gh's login for {self.host}"


@dataclass(frozen=True)
class App:
    """A GitHub App, as one of its installations."""

    app_id: int
    installation_id: int
    private_key: str = field(repr=False)
    clock: Clock = field(repr=False)

    def auth(self) -> Auth:
        """What the App itself is known by, for some minutes."""
        return app_jwt(self.app_id, self.private_key, self.clock.now())

    @property
    def shown(self) -> str:
        """What it is called in a message."""
        return f"the App of GITHUB_APP_ID={self.app_id}"


def credential(
    settings: GitHubSettings, environ: Mapping[str, str], programs: Programs, clock: Clock
) -> PersonalToken | GhLogin | App:
    """What the settings name. Raises `ConfigError` where it cannot be one; asks nobody and runs nothing."""
    if settings.github_auth_source is GitHubAuthSource.PAT:
        return _personal_token(settings, environ)
    if settings.github_auth_source is GitHubAuthSource.APP:
        return _app(settings, clock)
    environment = {name: environ[name] for name in _GH_ENVIRONMENT if name in environ}
    return GhLogin(urlsplit(settings.github_url).hostname or "", programs, environment)


def _personal_token(settings: GitHubSettings, environ: Mapping[str, str]) -> PersonalToken:
    variable = settings.github_pat_var
    token = environ.get(variable, "").strip()
    if not token:
        raise ConfigError(
            f"GITHUB_AUTH_SOURCE is pat, and {variable} is not set or blank. Put the token into {variable}, or name "
            "the variable that has it: GITHUB_PAT_VAR=NAME",
            "setting",
        )
    if not _TOKEN.fullmatch(token):
        raise ConfigError(f"{variable} holds no token: it must be one word of printable ASCII characters", "setting")
    return PersonalToken(variable, token)


def _app(settings: GitHubSettings, clock: Clock) -> App:
    app_id, installation_id = settings.github_app_id, settings.github_app_installation_id
    if app_id is None or installation_id is None:
        missing = [
            name
            for name, value in (("GITHUB_APP_ID", app_id), ("GITHUB_APP_INSTALLATION_ID", installation_id))
            if value is None
        ]
        raise ConfigError(
            f"GITHUB_AUTH_SOURCE is app, and {' and '.join(missing)} {'are' if len(missing) > 1 else 'is'} not set. "
            "Both are numbers: the App's id from its page, and the one at the end of its installation's address",
            "setting",
        )
    app = App(app_id, installation_id, _private_key(settings), clock)
    try:
        app.auth()
    except (ValueError, TypeError, PyJWTError):
        # The library's own words can quote the key.
        raise ConfigError(
            "GitHub's App needs an RSA private key, and the one that is given is none that can be used. Generate one "
            "on the App's page, and name its file: GITHUB_APP_PRIVATE_KEY_PATH=/etc/pi-dispatch/github-app.pem",
            "setting",
        ) from None
    return app


def _private_key(settings: GitHubSettings) -> str:
    path, inline = settings.github_app_private_key_path, settings.github_app_private_key
    if (path is None) == (inline is None):
        found = "neither" if path is None else "both"
        raise ConfigError(
            "GITHUB_AUTH_SOURCE is app, which needs one of GITHUB_APP_PRIVATE_KEY_PATH and GITHUB_APP_PRIVATE_KEY, "
            f"and {found} is set. Write for example: GITHUB_APP_PRIVATE_KEY_PATH=/etc/pi-dispatch/github-app.pem",
            "setting",
        )
    if inline is not None:
        return inline.get_secret_value()
    assert path is not None
    try:
        with path.open("rb") as file:
            text = unescaped(file.read(_LARGEST_PEM).decode("ascii", "replace"))
    except OSError as error:
        raise ConfigError(
            f"GITHUB_APP_PRIVATE_KEY_PATH names a file that cannot be read: {error.strerror}. Name the App's key, and "
            "make it readable for this account alone",
            "setting",
        ) from None
    if not is_pem(text):
        raise ConfigError(
            "GITHUB_APP_PRIVATE_KEY_PATH names a file that is no private key in PEM. Name the one that GitHub made "
            "for the App",
            "setting",
        )
    return text
