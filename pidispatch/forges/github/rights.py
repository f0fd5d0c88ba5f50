"""What this deployment's account may do, as far as GitHub tells: an App what its installation may; a token what its
scopes are for, and in a repository what its owner may do.

https://docs.github.com/en/rest/apps/apps#get-an-installation-for-the-authenticated-app and
https://docs.github.com/en/apps/oauth-apps/building-oauth-apps/scopes-for-oauth-apps
"""

import json
import re
from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Any, Final

from github.Auth import Auth

from pidispatch.config.settings import Settings
from pidispatch.forges.github.address import repository
from pidispatch.forges.github.api import TIMEOUT_S, Api
from pidispatch.forges.github.auth import App, GhLogin, PersonalToken, credential
from pidispatch.forges.github.connection import Unanswered
from pidispatch.forges.github.explaining import Asked, explaining
from pidispatch.forges.github.needs import SCOPE, lacking, lent, missing_scope, more_than_needed, told_needs
from pidispatch.forges.github.payload import clean_segment
from pidispatch.forges.protocol import Programs
from pidispatch.forges.rights import Flaw, Standing
from pidispatch.values.clock import Clock

#: Bytes of a repository or an account, which are far shorter.
_MOST_BYTES: Final = 1024 * 1024
_UNREADABLE: Final = "lookup-unreadable"
_SCOPES: Final = re.compile(r"[a-z][a-z_]*(?::[a-z_]+)?", re.ASCII)
_REMEDY: Final = (
    "Check GITHUB_AUTH_SOURCE and what belongs to it, GITHUB_API_URL, and that the clock of this machine is right"
)


class GitHubRights:
    """Asked of one credential. Several threads may ask at once."""

    def __init__(self, api: "_Scoped", credential: PersonalToken | GhLogin | App) -> None:
        self._api = api
        self._credential = credential

    @classmethod
    def of(
        cls,
        settings: Settings,
        environ: Mapping[str, str],
        programs: Programs,
        clock: Clock,
        timeout_s: float = TIMEOUT_S,
    ) -> "GitHubRights":
        """Those of the account that the settings name. Raises `ConfigError`."""
        api = _Scoped(settings.github_api_url, clock, timeout_s)
        return cls(api, credential(settings, environ, programs, clock))

    def account(self) -> tuple[str, Standing]:
        """Of an App: its installation. Of a token: its owner and its scopes."""
        with self._explaining(f"say what {self._credential.shown} may do"):
            return self._app(self._credential) if isinstance(self._credential, App) else self._token(self._credential)

    def repository(self, repo: str) -> Standing:
        """Of an App: whether it is installed there. Of a token: what its owner may do there."""
        with self._explaining(f"show {repo} to {self._credential.shown}", repo):
            if isinstance(self._credential, App):
                return self._installed(self._credential, repo)
            return self._role(self._credential, repo)

    def _app(self, app: App) -> tuple[str, Standing]:
        answer = self._api.ask(app.auth(), "GET", f"/app/installations/{app.installation_id}")
        found = answer.get("permissions")
        if not isinstance(found, dict):
            raise Unanswered(_UNREADABLE)
        selection = "chosen" if answer.get("repository_selection") == "selected" else "all"
        who = f"{app.shown}, installed on {selection} repositories of {_login(answer.get('account'))}"
        lacks = (*_suspended(answer), *lacking(found))
        return who, Standing(told_needs(found), lacks, more_than_needed(found))

    def _installed(self, app: App, repo: str) -> Standing:
        """https://docs.github.com/en/rest/apps/apps#get-a-repository-installation-for-the-authenticated-app"""
        answer = self._api.ask(app.auth(), "GET", f"{repository(repo)}/installation")
        number = answer.get("id")
        if type(number) is not int or number < 1:
            raise Unanswered(_UNREADABLE)
        holds = "the App is installed on it"
        if number == app.installation_id:
            return Standing(holds, _suspended(answer))
        other = Flaw(
            f"{holds} as {number}, and GITHUB_APP_INSTALLATION_ID is {app.installation_id}, an installation on another "
            "account: there is no token for this repository",
            f"GITHUB_APP_INSTALLATION_ID={number}; one deployment serves one installation",
        )
        return Standing(holds, (other,))

    def _token(self, lender: PersonalToken | GhLogin) -> tuple[str, Standing]:
        user, scopes = self._api.scoped(lender.auth(), "/user")
        who = f"{lender.shown}, of {_login(user)}"
        cautions = lent(scopes or (), login=isinstance(lender, GhLogin))
        if scopes is None:
            return who, Standing(f"GitHub does not tell; see that the token's page says {told_needs()}", (), cautions)
        return who, Standing(f"scopes: {', '.join(scopes) or 'none'}", missing_scope(scopes), cautions)

    def _role(self, lender: PersonalToken | GhLogin, repo: str) -> Standing:
        """https://docs.github.com/en/rest/repos/repos#get-a-repository"""
        found, scopes = self._api.scoped(lender.auth(), repository(repo))
        role = found.get("permissions")
        if not isinstance(role, dict):
            raise Unanswered(_UNREADABLE)
        if role.get("push") is not True:
            lack = Flaw(
                f"the account of {lender.shown} may not write to it: no branch can be pushed",
                "give that account the role Write there, or use another one",
            )
            return Standing("the account sees it", (lack,))
        # A fine-grained token has what its owner may do only where that was ticked.
        lifts = role.get("admin") is True and scopes is not None and SCOPE in scopes
        admin = Flaw(
            "the account administers it, so that a job's token can take away the protection of its branch",
            "use an App, or an account with the role Write there",
        )
        return Standing("the account may write to it", (), (admin,) if lifts else ())

    def _explaining(self, what: str, repo: str | None = None) -> AbstractContextManager[None]:
        app = isinstance(self._credential, App)
        return explaining(Asked(self._api.base_url, self._credential.shown, app, what, repo, _REMEDY))


class _Scoped(Api):
    """The API, which says of a token that has scopes which these are."""

    def scoped(self, auth: Auth, path: str) -> tuple[dict[str, Any], tuple[str, ...] | None]:
        """The object there, and the scopes; `None` for a token of another sort. Raises `Unanswered`."""
        response, text = self._answer(auth, "GET", path, {}, None, _MOST_BYTES)
        try:
            item = json.loads(text)
        except (ValueError, RecursionError):
            item = None
        if not isinstance(item, dict):
            raise Unanswered(_UNREADABLE, response.status_code)
        told = response.headers.get("x-oauth-scopes")
        return item, None if told is None else tuple(_SCOPES.findall(told))


def _suspended(installation: dict[str, Any]) -> tuple[Flaw, ...]:
    if installation.get("suspended_at") is None:
        return ()
    return (
        Flaw(
            "the App's installation is suspended: there is no token",
            "lift that where it is installed: Settings, GitHub Apps, Configure, at the end of the page",
        ),
    )


def _login(account: object) -> str:
    """The name of an account; a whole enterprise has none."""
    login = account.get("login") if isinstance(account, dict) else None
    return login if isinstance(login, str) and clean_segment(login) else "an account without a name"
