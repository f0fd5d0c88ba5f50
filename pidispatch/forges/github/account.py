"""This deployment's account at GitHub: who it is, whose word counts, and what a job works with.

https://docs.github.com/en/rest/collaborators/collaborators#get-repository-permissions-for-a-user
"""

import ipaddress
from collections.abc import Mapping
from contextlib import AbstractContextManager
from datetime import datetime
from typing import Any, Final
from urllib.parse import urlsplit

from github.Auth import Auth

from pidispatch.config.settings import Settings
from pidispatch.forges.github import comments
from pidispatch.forges.github.address import owner_and_name, part, plain_url
from pidispatch.forges.github.api import TIMEOUT_S, Api, token_auth
from pidispatch.forges.github.auth import App, GhLogin, PersonalToken, credential
from pidispatch.forges.github.connection import Unanswered
from pidispatch.forges.github.explaining import ALLOWED, Asked, explaining
from pidispatch.forges.github.minting import METADATA, minted, minted_for
from pidispatch.forges.github.payload import clean_segment
from pidispatch.forges.github.repository import default_branch
from pidispatch.forges.protocol import Answer, Branch, Programs, Token
from pidispatch.values.clock import Clock
from pidispatch.values.errors import ConfigError, DispatchError
from pidispatch.values.event import Authority, Event, Identity
from pidispatch.values.job import Target

#: What GitHub's words for a permission mean; `maintain` and `triage` are told as `write` and `read`.
_PERMISSIONS: Final[Mapping[str, Authority]] = {
    "admin": Authority.YES,
    "write": Authority.YES,
    "read": Authority.NO,
    "none": Authority.NO,
}
_MINT_FAILED: Final = "token-mint-failed"
_UNREADABLE: Final = "lookup-unreadable"
_PUBLIC_HOST: Final = "github.com"
_WHOLE: Final = (
    "Check that it is valid, that it is for this address (GITHUB_API_URL), and that the clock of this machine is right"
)
_INSTALLED: Final = (
    "Check GITHUB_APP_ID, GITHUB_APP_INSTALLATION_ID and the key, and that the App is installed on the repository"
)


class GitHubAccount:
    """An account by one credential. Between two questions nothing is kept but who it is: no token."""

    def __init__(self, api: Api, credential: PersonalToken | GhLogin | App, url: str) -> None:
        self._api = api
        self._credential = credential
        self._url = plain_url(url)
        self._identity: Identity | None = None

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
        return cls(api, credential(settings, environ, programs, clock), settings.github_url)

    def identity(self) -> Identity:
        """Who it is: the token's user, or the App's own bot; asked until it is known. Raises as `Account` says."""
        if self._identity is None:
            with self._explaining(f"take {self._credential.shown}", remedy=_WHOLE):
                self._identity = Identity(id=self._asked_id(), installation=_installation(self._credential))
        return self._identity

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
        path = f"/repos/{part(owner)}/{part(name)}/collaborators/{part(login)}/permission"
        try:
            answer = self._api.ask(auth, "GET", path)
        except Unanswered as unanswered:
            if unanswered.status == 404:
                return Answer(Authority.NO)
            return Answer(Authority.UNKNOWN, unanswered.reason, unanswered.resets)
        permission = answer.get("permission")
        found = _PERMISSIONS.get(permission) if isinstance(permission, str) else None
        return Answer(Authority.UNKNOWN, _UNREADABLE) if found is None else Answer(found)

    def mint(self, repo: str | None) -> Token:
        """An App's new token for that repository alone, which may do what the App may; else the credential itself."""
        if not isinstance(self._credential, App):
            return Token(self._credential.auth().token)
        if repo is None:
            raise ConfigError(
                "GITHUB_AUTH_SOURCE is app, which makes tokens for one repository each, and a job on a folder has "
                "none. For jobs on folders with GitHub's credential, choose GITHUB_AUTH_SOURCE=gh or pat",
                "setting",
            )
        with self._explaining(f"make {self._credential.shown} a token for {repo}", remedy=_INSTALLED):
            return Token(minted_for(self._api, self._credential, repo))

    def default_branch(self, repo: str, token: Token) -> Branch:
        """The repository's default branch now."""
        with self._explaining(f"show {repo} to {self._credential.shown}", repo):
            return default_branch(self._api, token_auth(token.value), repo)

    def acted(self, repo: str, target: Target, since: datetime, token: Token) -> bool:
        """Whether this account has written there since then."""
        me = self.identity().id
        with self._explaining(f"show {self._credential.shown} what is said on {repo}#{target.number}", repo):
            return comments.acted(self._api, token_auth(token.value), repo, target, since, me)

    def comment(self, repo: str, target: Target, text: str, marker: str, since: datetime) -> None:
        """Leave `text` there, once, by a token made for this alone."""
        assert marker in text, "it would not be found again"
        auth = token_auth(self.mint(repo).value)
        with self._explaining(f"take a comment of {self._credential.shown} on {repo}#{target.number}", repo):
            if not comments.said(self._api, auth, repo, target, marker, since, lambda: self.identity().id):
                comments.say(self._api, auth, repo, target, text)

    def clone_url(self, repo: str) -> str:
        """Where it is cloned from."""
        return "/".join((self._url, *map(part, owner_and_name(repo)))) + ".git"

    def variables(self, token: Token) -> Mapping[str, str]:
        """What gh needs for an Enterprise Server: https://cli.github.com/manual/gh_help_environment"""
        parts = urlsplit(self._url)
        if parts.hostname == _PUBLIC_HOST or _is_this_machine(parts.hostname or ""):
            # An address of this machine is another one in the box, so that it says nothing there.
            return {}
        return {"GH_HOST": parts.netloc, "GH_ENTERPRISE_TOKEN": token.value}

    def _explaining(self, what: str, repo: str | None = None, remedy: str = ALLOWED) -> AbstractContextManager[None]:
        """Says of what is not answered why, for the one who can mend it."""
        app = isinstance(self._credential, App)
        return explaining(Asked(self._api.base_url, self._credential.shown, app, what, repo, remedy))

    def _asked_id(self) -> int:
        if isinstance(self._credential, App):
            return self._bot_id(self._credential)
        return _id(self._api.ask(self._credential.auth(), "GET", "/user"))

    def _reading(self, repository: str) -> Auth:
        """What a question about a repository is asked with: for an App a token that can do nothing else."""
        if isinstance(self._credential, App):
            return token_auth(minted(self._api, self._credential, repository, METADATA))
        return self._credential.auth()

    def _bot_id(self, app: App) -> int:
        """The id of the user as which an App acts."""
        slug = self._api.ask(app.auth(), "GET", "/app").get("slug")
        if not isinstance(slug, str) or not clean_segment(slug):
            raise Unanswered(_UNREADABLE)
        auth = token_auth(minted(self._api, app, None, METADATA))
        return _id(self._api.ask(auth, "GET", f"/users/{part(f'{slug}[bot]')}"))


def _id(user: dict[str, Any]) -> int:
    number = user.get("id")
    if type(number) is not int or number < 1:
        raise Unanswered(_UNREADABLE)
    return number


def _is_this_machine(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _installation(credential: PersonalToken | GhLogin | App) -> int | None:
    return credential.installation_id if isinstance(credential, App) else None
