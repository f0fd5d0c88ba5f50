"""This deployment's account at GitHub, as far as it looks for what is new where no webhook tells it."""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from github.Auth import Auth

from pidispatch.config.settings import Settings
from pidispatch.forges.github.account import GitHubAccount
from pidispatch.forges.github.address import repository
from pidispatch.forges.github.api import TIMEOUT_S, Api, Page, token_auth
from pidispatch.forges.github.auth import App, GhLogin, PersonalToken, credential
from pidispatch.forges.github.connection import Unanswered
from pidispatch.forges.github.explaining import Asked, explaining
from pidispatch.forges.github.minting import METADATA, minted
from pidispatch.forges.github.watching import GitHubWatch
from pidispatch.forges.protocol import Programs, Token
from pidispatch.values.clock import Clock

T = TypeVar("T")
#: How long an App's token is used, which lasts an hour. With another one GitHub answers in full what it would else say
#: nothing is new of: its etags are of a token, too (`Vary: Authorization`).
_TOKEN_FOR_S: Final = 1800.0
#: Repositories of an installation that are told at once, and the most that are looked at.
_PER_PAGE: Final = 50
_MOST_LISTED: Final = 1000
#: An object that was there: deleted, or moved to another repository.
_GONE: Final = (301, 404, 410)
#: Why a list is not shown to this account, or by this server.
_CLOSED: Final = ("lookup-refused", "lookup-redirected")


@dataclass(frozen=True)
class _Kept:
    token: Token
    #: When it was made, by the monotonic clock.
    at: float


class GitHubPolling:
    """An account that looks by itself."""

    def __init__(
        self, api: Api, account: GitHubAccount, credential: PersonalToken | GhLogin | App, clock: Clock
    ) -> None:
        self._api = api
        self._account = account
        self._credential = credential
        self._clock = clock
        self._kept: dict[str, _Kept] = {}
        #: How GitHub spells the repositories.
        self._names: dict[str, str] = {}

    @classmethod
    def of(
        cls,
        settings: Settings,
        environ: Mapping[str, str],
        programs: Programs,
        clock: Clock,
        timeout_s: float = TIMEOUT_S,
    ) -> "GitHubPolling":
        """The one that the settings name. Raises `ConfigError`."""
        account = GitHubAccount.of(settings, environ, programs, clock, timeout_s)
        api = Api(settings.github_api_url, clock, timeout_s)
        return cls(api, account, credential(settings, environ, programs, clock), clock)

    def repositories(self) -> list[str] | None:
        """Those of an App's installation: https://docs.github.com/en/rest/apps/installations"""
        app = self._credential
        if not isinstance(app, App):
            return None
        with self._explaining("say on which repositories the App is installed"):
            auth, found, page = token_auth(minted(self._api, app, None, METADATA)), list[str](), 1
            while True:
                path = f"/installation/repositories?per_page={_PER_PAGE}&page={page}"
                names = _names(self._api.ask(auth, "GET", path).get("repositories"))
                found, page = [*found, *names], page + 1
                if len(names) < _PER_PAGE or len(found) >= _MOST_LISTED:
                    return found

    def watch(self, repo: str) -> GitHubWatch:
        """What looks at a repository."""
        return GitHubWatch(repo, _Questions(self, repo, token_auth(self._token(repo).value)))

    def name(self, repo: str, auth: Auth) -> str:
        """How GitHub spells a repository, asked for once."""
        if repo not in self._names:
            name = self.answered(repo, lambda api: api.ask(auth, "GET", repository(repo))).get("full_name")
            # No other one: a name in which only the case differs.
            same = isinstance(name, str) and name.lower() == repo.lower()
            self._names[repo] = str(name) if same else repo
        return self._names[repo]

    def answered(self, repo: str, ask: Callable[[Api], T]) -> T:
        """What is answered about a repository, or why nothing is. Raises `ConfigError` or `InfraError`."""
        with self._explaining(f"show {repo} to {self._credential.shown}", repo):
            try:
                return ask(self._api)
            except Unanswered as unanswered:
                if unanswered.status == 401:
                    # It may have been taken back.
                    self._kept.pop(repo, None)
                raise

    def _token(self, repo: str) -> Token:
        if not isinstance(self._credential, App):
            return self._account.mint(repo)
        now, kept = self._clock.monotonic(), self._kept.get(repo)
        if kept is None or now - kept.at > _TOKEN_FOR_S:
            kept = self._kept[repo] = _Kept(self._account.mint(repo), now)
        return kept.token

    def _explaining(self, what: str, repo: str | None = None) -> AbstractContextManager[None]:
        app = isinstance(self._credential, App)
        return explaining(Asked(self._api.base_url, self._credential.shown, app, what, repo))


class _Questions:
    """Asks about one repository with one token."""

    def __init__(self, polling: GitHubPolling, repo: str, auth: Auth) -> None:
        self._polling = polling
        self._repo = repo
        self._auth = auth

    def name(self) -> str:
        return self._polling.name(self._repo, self._auth)

    def found(self, path: str) -> dict[str, Any] | None:
        def ask(api: Api) -> dict[str, Any] | None:
            try:
                return api.ask(self._auth, "GET", path)
            except Unanswered as unanswered:
                if unanswered.status in _GONE:
                    return None
                raise

        return self._polling.answered(self._repo, ask)

    def listed(self, path: str, etag: str | None = None) -> Page:
        return self._polling.answered(self._repo, lambda api: api.listed(self._auth, path, etag))

    def seen(self, path: str) -> list[dict[str, Any]]:
        def ask(api: Api) -> list[dict[str, Any]]:
            try:
                return api.listed(self._auth, path).items
            except Unanswered as unanswered:
                if unanswered.reason in _CLOSED and unanswered.status != 401:
                    return []
                raise

        return self._polling.answered(self._repo, ask)


def _names(repositories: object) -> list[str]:
    items = repositories if isinstance(repositories, list) else [None]
    names = [one.get("full_name") if isinstance(one, dict) else None for one in items]
    found = [name for name in names if isinstance(name, str)]
    if len(found) < len(names):
        raise Unanswered("lookup-unreadable")
    return found
