"""A repository's default branch: its name, its commit, and whether it is kept from being pushed to.

https://docs.github.com/en/rest/repos/repos#get-a-repository and
https://docs.github.com/en/rest/branches/branches#get-a-branch
"""

import re
from typing import Any, Final

from github.Auth import Auth

from pidispatch.forges.github.address import part, repository
from pidispatch.forges.github.api import Api
from pidispatch.forges.github.connection import Unanswered
from pidispatch.forges.github.pages import each
from pidispatch.forges.protocol import Branch
from pidispatch.values.errors import ConfigError

#: What git takes as a branch, and no more of it: https://git-scm.com/docs/git-check-ref-format
_BRANCH: Final = re.compile(r"[^\x00-\x20\x7f~^:?*\[\\\ud800-\udfff-][^\x00-\x20\x7f~^:?*\[\\\ud800-\udfff]{0,254}")
_SHA: Final = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}", re.ASCII)
#: Rules that let nothing onto a branch but by a pull request, or nothing at all. Others say how a commit must look, or
#: which checks it must have passed somewhere else first, and then it can be pushed.
#: https://docs.github.com/en/repositories/configuring-branches-and-merges-in-your-repository/managing-rulesets/available-rules-for-rulesets
_KEEPS_AWAY: Final = frozenset({"pull_request", "update", "merge_queue"})
_UNREADABLE: Final = "lookup-unreadable"


def default_branch(api: Api, auth: Auth, repo: str) -> Branch:
    """It as GitHub has it now. Raises `Unanswered`, and `ConfigError` for a repository without a commit."""
    path = repository(repo)
    name = _text(api.ask(auth, "GET", path).get("default_branch"), _BRANCH)
    try:
        answer = api.ask(auth, "GET", f"{path}/branches/{part(name)}")
    except Unanswered as unanswered:
        if unanswered.status != 404:
            raise
        raise ConfigError(
            f"{repo} has no commit on its default branch {name}, so there is nothing to work on. Push one first",
            "repository-empty",
        ) from None
    sha = _text(_dict(answer.get("commit")).get("sha"), _SHA)
    return Branch(
        name, sha, answer.get("protected") is True or _ruled(api, auth, f"{path}/rules/branches/{part(name)}")
    )


def _ruled(api: Api, auth: Auth, path: str) -> bool:
    """Whether a ruleset keeps it, the organisation's included; a server that has none to tell of says no.

    https://docs.github.com/en/rest/repos/rules#get-rules-for-a-branch
    """
    try:
        return any(rule.get("type") in _KEEPS_AWAY for rule in each(api, auth, path))
    except Unanswered as unanswered:
        # Repository and branch were shown a moment ago, so what is not there, or not in the owner's plan, are rulesets.
        if unanswered.status != 404 and not _not_in_plan(unanswered):
            raise
        return False


def _not_in_plan(unanswered: Unanswered) -> bool:
    """Whether GitHub says that the owner of a private repository would have to pay for rules: so there are none."""
    return unanswered.status == 403 and (unanswered.said or "").startswith("Upgrade to ")


def _dict(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _text(value: object, form: re.Pattern[str]) -> str:
    if not isinstance(value, str) or not form.fullmatch(value):
        raise Unanswered(_UNREADABLE)
    return value
