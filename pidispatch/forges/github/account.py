"""This deployment's account at GitHub: who it is, and whose word counts where it is asked.

https://docs.github.com/en/rest/collaborators/collaborators#get-repository-permissions-for-a-user
"""

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote

from github.Auth import Auth

from pidispatch.config.settings import Settings
from pidispatch.forges.github.api import TIMEOUT_S, Api, Unanswered, token_auth
from pidispatch.forges.github.auth import App, GhLogin, PersonalToken, credential
from pidispatch.forges.github.payload import clean_segment
from pidispatch.forges.protocol import Answer, Programs
from pidispatch.values.clock import Clock
from pidispatch.values.errors import ConfigError, DispatchError, InfraError
from pidispatch.values.event import Authority, Event, Identity

#: What GitHub's words for a permission mean; `maintain` and `triage` are told as `write` and `read`.
_PERMISSIONS: Final[Mapping[str, Authority]] = {
    "admin": Authority.YES,
    "write": Authority.YES,
    "read": Authority.NO,
    "none": Authority.NO,
}
_MINT_FAILED: Final = "token-mint-failed"
_UNREADABLE: Final = "lookup-unreadable"


class GitHubAccount:
    """An account by one credential. Nothing is kept between two questions."""

    def __init__(self, api: Api, credential: PersonalToken | GhLogin | App) -> None:
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
    ) -> "GitHubAccount":
        """The one that the settings name. Raises `ConfigError`."""
        api = Api(settings.github_api_url, clock, timeout_s)
        return cls(api, credential(settings, environ, programs, clock))

    def identity(self) -> Identity:
        """Who it is: the token's user, or the App's own bot. Raises `ConfigError` or `InfraError`."""
        try:
            if isinstance(self._credential, App):
                return Identity(id=self._bot_id(self._credential))
            return Identity(id=_id(self._api.ask(self._credential.auth(), "GET", "/user")))
        except Unanswered as unanswered:
            raise self._explained(unanswered) from None

    def authority(self, event: Event) -> Answer:
        """Whether who did it may write to the repository, as GitHub says now."""
        owner, _, name = (event.repo or "").partition("/")
        login = event.actor.login
        if login is None or not all(map(clean_segment, (owner, name, login))):
            return Answer(Authority.NO)
        try:
            auth = self._reading(name)
        except Unanswered as unanswered:
            return Answer(Authority.UNKNOWN, _MINT_FAILED, unanswered.resets)
        except DispatchError:
            return Answer(Authority.UNKNOWN, _MINT_FAILED)
        path = f"/repos/{_part(owner)}/{_part(name)}/collaborators/{_part(login)}/permission"
        try:
            answer = self._api.ask(auth, "GET", path)
        except Unanswered as unanswered:
            if unanswered.status == 404:
                return Answer(Authority.NO)
            return Answer(Authority.UNKNOWN, unanswered.reason, unanswered.resets)
        permission = answer.get("permission")
        found = _PERMISSIONS.get(permission) if isinstance(permission, str) else None
        return Answer(Authority.UNKNOWN, _UNREADABLE) if found is None else Answer(found)

    def _reading(self, repository: str) -> Auth:
        """What a question about a repository is asked with: for an App a token that can do nothing else."""
        if isinstance(self._credential, App):
            return self._minted(self._credential, {"repositories": [repository]})
        return self._credential.auth()

    def _minted(self, app: App, scope: dict[str, Any]) -> Auth:
        """A new token of the installation that reads what is public about its repositories, or about those of `scope`.

        https://docs.github.com/en/rest/apps/apps#create-an-installation-access-token-for-an-app
        """
        answer = self._api.ask(
            app.auth(),
            "POST",
            f"/app/installations/{app.installation_id}/access_tokens",
            {**scope, "permissions": {"metadata": "read"}},
        )
        token = answer.get("token")
        if not isinstance(token, str) or not token.isascii() or not token.isprintable() or not token.strip():
            raise Unanswered(_UNREADABLE)
        return token_auth(token)

    def _bot_id(self, app: App) -> int:
        """The id of the user as which an App acts."""
        slug = self._api.ask(app.auth(), "GET", "/app").get("slug")
        if not isinstance(slug, str) or not clean_segment(slug):
            raise Unanswered(_UNREADABLE)
        return _id(self._api.ask(self._minted(app, {}), "GET", f"/users/{_part(f'{slug}[bot]')}"))

    def _explained(self, unanswered: Unanswered) -> DispatchError:
        """Why it is not known who this is, for the one who can mend it."""
        who, where = self._credential.shown, f"GitHub ({self._api.base_url})"
        if unanswered.reason == "lookup-refused":
            return ConfigError(
                f"{where} does not take {who}: HTTP {unanswered.status}. Check that it is valid, that it is for this "
                "address (GITHUB_API_URL), and that the clock of this machine is right",
                "forge-refused",
            )
        status = "" if unanswered.status is None else f", HTTP {unanswered.status}"
        until = "" if unanswered.resets is None else f", not before {unanswered.resets:%Y-%m-%dT%H:%M:%SZ}"
        return InfraError(
            f"{where} does not say who {who} is: {unanswered.reason}{status}. Try again{until}; check GITHUB_API_URL "
            "and the network",
            "forge-unanswered",
        )


def _id(user: dict[str, Any]) -> int:
    number = user.get("id")
    if type(number) is not int or number < 1:
        raise Unanswered(_UNREADABLE)
    return number


def _part(text: str) -> str:
    return quote(text, safe="")
