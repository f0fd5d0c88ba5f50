"""A token that GitHub makes for an App, for an hour.

https://docs.github.com/en/rest/apps/apps#create-an-installation-access-token-for-an-app
"""

import re
from collections.abc import Mapping
from typing import Any, Final

from pidispatch.forges.github.address import owner_and_name
from pidispatch.forges.github.api import Api
from pidispatch.forges.github.auth import App
from pidispatch.values.errors import ConfigError

#: Those of 2026 have some five hundred letters.
_TOKEN: Final = re.compile(r"[!-~]{1,4096}", re.ASCII)
#: What reads what is public about a repository, and nothing else.
METADATA: Final[Mapping[str, str]] = {"metadata": "read"}


def minted(api: Api, app: App, repository: str | None, permissions: Mapping[str, str] | None = None) -> str:
    """A new token of the installation: for the repository of that name (without its owner), else for all it sees.

    It may do what the installation may, or of that what `permissions` name. Raises `Unanswered`, and `ConfigError`
    where GitHub gives none.
    """
    return _token(api, app, _answer(api, app, repository, permissions))


def minted_for(api: Api, app: App, repo: str) -> str:
    """A new token for `repo` (`owner/name`) and nothing else, which may do what the installation may.

    GitHub is told the name without its owner, and sends an App the events of every account that it is installed on.
    So what the token is for is held against the whole name: else a job of somebody's repository would get the token of
    the installation's own one that has the same name. Raises like `minted`.
    """
    _, name = owner_and_name(repo)
    answer = _answer(api, app, name, None)
    token = _token(api, app, answer)
    if _repositories(answer) != [repo.lower()]:
        raise ConfigError(
            f"GitHub ({api.base_url}) gave {app.shown} a token that is not for {repo}: the installation "
            f"GITHUB_APP_INSTALLATION_ID={app.installation_id} is on another account, or the repository has another "
            "name by now. Check both; one deployment serves one installation",
            "repository-unseen",
        )
    return token


def _answer(api: Api, app: App, repository: str | None, permissions: Mapping[str, str] | None) -> dict[str, Any]:
    scope: dict[str, object] = {}
    if repository is not None:
        scope["repositories"] = [repository]
    if permissions is not None:
        scope["permissions"] = dict(permissions)
    return api.ask(app.auth(), "POST", f"/app/installations/{app.installation_id}/access_tokens", scope)


def _token(api: Api, app: App, answer: Mapping[str, Any]) -> str:
    token = answer.get("token")
    if not isinstance(token, str) or not _TOKEN.fullmatch(token):
        # Without one the agent would work as nobody, and be paid for.
        raise ConfigError(
            f"GitHub ({api.base_url}) gave {app.shown} a token that is blank or none. Check that GITHUB_API_URL is the "
            "address of GitHub's API",
            "forge-token-empty",
        )
    return token


def _repositories(answer: Mapping[str, Any]) -> list[str]:
    """What the token is for, by whole names: GitHub tells it wherever it was asked for some by name."""
    told = answer.get("repositories")
    listed = told if isinstance(told, list) else []
    return [str(one.get("full_name") if isinstance(one, dict) else one).lower() for one in listed]
