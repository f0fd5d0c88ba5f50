"""Branches, their protection, commits and contents in GitHub's shapes."""

import base64
from typing import Any

from tests.fakes.github.model import Repository
from tests.fakes.github.shapes_accounts import Accounts, node


class Branches(Accounts):
    """What git has of a repository. A row is one of `GitRepository.tree`."""

    def branch(self, repository: Repository, name: str, sha: str) -> dict[str, Any]:
        """`short-branch`."""
        kept = name in repository.git.protected() or name in repository.ruled
        commit = {"sha": sha, "url": f"{self.at(repository)}/commits/{sha}"}
        return {"name": name, "commit": commit, "protected": kept}

    def whole_branch(self, repository: Repository, name: str, sha: str) -> dict[str, Any]:
        """`branch-with-protection`."""
        url = f"{self.at(repository)}/branches/{name}"
        checks: dict[str, Any] = {"enforcement_level": "off", "contexts": [], "checks": []}
        return {
            **self.branch(repository, name, sha),
            "commit": self.commit(repository, sha),
            "_links": {"self": url, "html": f"{self.home(repository)}/tree/{name}"},
            "protection": {"enabled": name in repository.git.protected(), "required_status_checks": checks},
            "protection_url": f"{url}/protection",
        }

    def rules(self, repository: Repository, name: str) -> list[dict[str, Any]]:
        """Those of rulesets that hold for a branch: `repository-rule-detailed`."""
        ruleset = {
            "ruleset_source_type": "Repository",
            "ruleset_source": repository.full_name,
            "ruleset_id": repository.id,
        }
        asked = {
            "required_approving_review_count": 1,
            "dismiss_stale_reviews_on_push": False,
            "require_code_owner_review": False,
            "require_last_push_approval": False,
            "required_review_thread_resolution": False,
        }
        rule = {"type": "pull_request", "parameters": asked, **ruleset}
        return [rule] if name in repository.ruled else []

    def commit(self, repository: Repository, sha: str) -> dict[str, Any]:
        """`commit`, of somebody who has no account."""
        told = repository.git.told(sha)
        url = f"{self.at(repository)}/commits/{sha}"
        who = {"name": told["name"], "email": told["email"], "date": told["date"]}
        tree = f"{self.at(repository)}/git/trees/{told['tree']}"
        inner = {
            "author": who,
            "committer": who,
            "message": told["message"],
            "tree": {"sha": told["tree"], "url": tree},
            "url": f"{self.at(repository)}/git/commits/{sha}",
            "comment_count": 0,
        }
        parents = [{"sha": one, "url": f"{self.at(repository)}/commits/{one}"} for one in told["parents"].split()]
        return {
            "sha": sha,
            "node_id": f"C_{sha}",
            "commit": inner,
            "url": url,
            "html_url": f"{self.home(repository)}/commit/{sha}",
            "comments_url": f"{url}/comments",
            "author": None,
            "committer": None,
            "parents": parents,
        }

    def reference(self, repository: Repository, branch: str, sha: str) -> dict[str, Any]:
        """`git-ref`."""
        url = self.at(repository)
        return {
            "ref": f"refs/heads/{branch}",
            "node_id": node("REF", repository.id) + branch,
            "url": f"{url}/git/refs/heads/{branch}",
            "object": {"type": "commit", "sha": sha, "url": f"{url}/git/commits/{sha}"},
        }

    def content(self, repository: Repository, path: str, row: tuple[str, str, str, int], ref: str) -> dict[str, Any]:
        """One entry of `content-directory`."""
        kind, sha, name, size = row
        url = f"{self.at(repository)}/contents/{path}?ref={ref}"
        page = f"{self.home(repository)}/{kind}/{ref}/{path}"
        git = f"{self.at(repository)}/git/{kind}s/{sha}"
        return {
            "name": name,
            "path": path,
            "sha": sha,
            "size": size,
            "url": url,
            "html_url": page,
            "git_url": git,
            "download_url": f"{self.pages}/raw/{repository.full_name}/{ref}/{path}" if kind == "blob" else None,
            "type": "file" if kind == "blob" else "dir",
            "_links": {"self": url, "git": git, "html": page},
        }

    def file(self, repository: Repository, path: str, row: tuple[str, str, str, int], ref: str) -> dict[str, Any]:
        """`content-file`."""
        data = repository.git.read(ref, path)
        told = {"content": base64.encodebytes(data).decode(), "encoding": "base64"}
        return {**self.content(repository, path, row, ref), **told}
