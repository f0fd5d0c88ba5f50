"""Users, repositories and installations in GitHub's shapes, and how it writes instants and addresses."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from tests.fakes.github.model import RANK, Installation, Repository, Token, User

_OF_A_USER = {
    "followers": "/followers",
    "following": "/following{/other_user}",
    "gists": "/gists{/gist_id}",
    "starred": "/starred{/owner}{/repo}",
    "subscriptions": "/subscriptions",
    "organizations": "/orgs",
    "repos": "/repos",
    "events": "/events{/privacy}",
    "received_events": "/received_events",
}
_OF_A_REPOSITORY = {
    "archive": "/{archive_format}{/ref}",
    "assignees": "/assignees{/user}",
    "blobs": "/git/blobs{/sha}",
    "branches": "/branches{/branch}",
    "collaborators": "/collaborators{/collaborator}",
    "comments": "/comments{/number}",
    "commits": "/commits{/sha}",
    "compare": "/compare/{base}...{head}",
    "contents": "/contents/{+path}",
    "contributors": "/contributors",
    "deployments": "/deployments",
    "downloads": "/downloads",
    "events": "/events",
    "forks": "/forks",
    "git_commits": "/git/commits{/sha}",
    "git_refs": "/git/refs{/sha}",
    "git_tags": "/git/tags{/sha}",
    "hooks": "/hooks",
    "issue_comment": "/issues/comments{/number}",
    "issue_events": "/issues/events{/number}",
    "issues": "/issues{/number}",
    "keys": "/keys{/key_id}",
    "labels": "/labels{/name}",
    "languages": "/languages",
    "merges": "/merges",
    "milestones": "/milestones{/number}",
    "notifications": "/notifications{?since,all,participating}",
    "pulls": "/pulls{/number}",
    "releases": "/releases{/id}",
    "stargazers": "/stargazers",
    "statuses": "/statuses/{sha}",
    "subscribers": "/subscribers",
    "subscription": "/subscription",
    "tags": "/tags",
    "teams": "/teams",
    "trees": "/git/trees{/sha}",
}
_COUNTS = ("forks", "forks_count", "watchers", "watchers_count", "stargazers_count", "size")
_ROOT = """
current_user current_user_authorizations_html authorizations code_search commit_search emails emojis events feeds
followers following gists issue_search issues keys label_search notifications organization organization_repositories
organization_teams public_gists rate_limit repository repository_search current_user_repositories starred starred_gists
user user_organizations user_repositories user_search
"""


def shown(instant: datetime | None) -> str | None:
    """An instant as GitHub writes it."""
    return None if instant is None else instant.strftime("%Y-%m-%dT%H:%M:%SZ")


def node(kind: str, number: int) -> str:
    """What GraphQL knows a thing by."""
    return f"{kind}_{number}"


@dataclass(frozen=True)
class Accounts:
    """With the addresses by which whoever asks knows the edge: of the API and of the pages, without a slash."""

    api: str
    pages: str

    def root(self) -> dict[str, Any]:
        """What there is at all."""
        return {f"{name}_url": f"{self.api}/{name}" for name in _ROOT.split()}

    def user(self, user: User) -> dict[str, Any]:
        """`simple-user`."""
        url = f"{self.api}/users/{user.login}"
        return {
            "login": user.login,
            "id": user.id,
            "node_id": node("U", user.id),
            "avatar_url": f"{self.pages}/avatars/{user.id}",
            "gravatar_id": "",
            "url": url,
            "html_url": f"{self.pages}/{user.login}",
            **{f"{name}_url": url + rest for name, rest in _OF_A_USER.items()},
            "type": user.type,
            "site_admin": False,
        }

    def whole_user(self, user: User) -> dict[str, Any]:
        """`public-user`."""
        unsaid = dict.fromkeys(("name", "company", "location", "email", "hireable", "bio"))
        counts = dict.fromkeys(("public_repos", "public_gists", "followers", "following"), 0)
        dates = dict.fromkeys(("created_at", "updated_at"), "2020-01-01T00:00:00Z")
        return {**self.user(user), **unsaid, "blog": "", **counts, **dates}

    def repository(self, repository: Repository, viewer: Token | None = None) -> dict[str, Any]:
        """`repository`; with what `viewer` may do."""
        url, page = self.at(repository), self.home(repository)
        there = [issue for issue in repository.issues.values() if issue.closed is None]
        may = {} if viewer is None else {"permissions": self.allowed(repository.permission(viewer.user.login))}
        return {
            "id": repository.id,
            "node_id": node("R", repository.id),
            "name": repository.name,
            "full_name": repository.full_name,
            "private": repository.private,
            "owner": self.user(repository.owner),
            "html_url": page,
            "description": None,
            "fork": False,
            "url": url,
            **{f"{name}_url": url + rest for name, rest in _OF_A_REPOSITORY.items()},
            "clone_url": f"{page}.git",
            "git_url": f"git:{page.partition(':')[2]}.git",
            "ssh_url": f"git@github.com:{repository.full_name}.git",
            "svn_url": page,
            **dict.fromkeys(("mirror_url", "homepage", "language", "license")),
            **dict.fromkeys(_COUNTS, 0),
            "default_branch": repository.default,
            "open_issues": len(there),
            "open_issues_count": len(there),
            **dict.fromkeys(("has_issues", "has_projects", "has_wiki", "has_downloads", "allow_forking"), True),
            **dict.fromkeys(("has_pages", "has_discussions", "archived", "disabled", "is_template"), False),
            "web_commit_signoff_required": False,
            "topics": [],
            "visibility": "private" if repository.private else "public",
            **dict.fromkeys(("created_at", "updated_at", "pushed_at"), shown(repository.created)),
            **may,
        }

    def allowed(self, level: str) -> dict[str, bool]:
        """What a permission stands for, by GitHub's five words."""
        named = {"admin": "admin", "maintain": "admin", "push": "write", "triage": "write", "pull": "read"}
        return {name: RANK[level] >= RANK[needed] for name, needed in named.items()}

    def whole_repository(self, repository: Repository, viewer: Token) -> dict[str, Any]:
        """`full-repository`."""
        merges = ("allow_squash_merge", "allow_merge_commit", "allow_rebase_merge")
        return {
            **self.repository(repository, viewer),
            **dict.fromkeys(merges, True),
            "network_count": 0,
            "subscribers_count": 0,
        }

    def installation(self, installation: Installation, app_id: int, slug: str) -> dict[str, Any]:
        """`installation`."""
        url = f"{self.api}/app/installations/{installation.id}"
        return {
            "id": installation.id,
            "account": self.user(installation.account),
            "repository_selection": "selected",
            "access_tokens_url": f"{url}/access_tokens",
            "repositories_url": f"{self.api}/installation/repositories",
            "html_url": f"{self.pages}/settings/installations/{installation.id}",
            "app_id": app_id,
            "app_slug": slug,
            "target_id": installation.account.id,
            "target_type": installation.account.type,
            "permissions": installation.permissions,
            "events": ["issues", "issue_comment", "pull_request", "pull_request_review"],
            **dict.fromkeys(("created_at", "updated_at"), "2020-01-01T00:00:00Z"),
            **dict.fromkeys(("single_file_name", "suspended_by", "suspended_at")),
        }

    def at(self, repository: Repository) -> str:
        """Where the API has a repository."""
        return f"{self.api}/repos/{repository.full_name}"

    def home(self, repository: Repository) -> str:
        """Its page."""
        return f"{self.pages}/{repository.full_name}"
