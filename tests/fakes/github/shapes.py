"""The edge's values in GitHub's shapes: https://docs.github.com/en/rest, as `@octokit/openapi` describes them."""

from typing import Any

from tests.fakes.github.model import Comment, Issue, IssueEvent, Label, Pull, Repository, Review
from tests.fakes.github.shapes_accounts import node, shown
from tests.fakes.github.shapes_branches import Branches

__all__ = ["Shapes", "node", "shown"]

_NO_REACTIONS = ("+1", "-1", "laugh", "confused", "heart", "hooray", "eyes", "rocket")


class Shapes(Branches):
    """All of them; issues and pull requests are here."""

    def label(self, repository: Repository, label: Label) -> dict[str, Any]:
        """`label`."""
        return {
            "id": label.id,
            "node_id": node("LA", label.id),
            "url": f"{self.at(repository)}/labels/{label.name}",
            "name": label.name,
            "color": "ededed",
            "default": False,
            "description": None,
        }

    def issue(self, repository: Repository, issue: Issue) -> dict[str, Any]:
        """`issue`; of a pull request it is what that has of an issue."""
        url = f"{self.at(repository)}/issues/{issue.number}"
        of_pull = (
            {"draft": issue.draft, "pull_request": self._pull_links(repository, issue)}
            if isinstance(issue, Pull)
            else {}
        )
        return {
            "url": url,
            "repository_url": self.at(repository),
            "labels_url": f"{url}/labels{{/name}}",
            "comments_url": f"{url}/comments",
            "events_url": f"{url}/events",
            "html_url": self.page(repository, issue),
            "timeline_url": f"{url}/timeline",
            "id": issue.id,
            "node_id": node("PR" if isinstance(issue, Pull) else "I", issue.id),
            **self._said(repository, issue),
            "comments": len(issue.comments),
            "state_reason": "completed" if issue.closed and not isinstance(issue, Pull) else None,
            "performed_via_github_app": None,
            "reactions": self._reactions(url),
            **of_pull,
        }

    def comment(self, repository: Repository, issue: Issue, comment: Comment) -> dict[str, Any]:
        """`issue-comment`."""
        url = f"{self.at(repository)}/issues/comments/{comment.id}"
        return {
            "url": url,
            "html_url": f"{self.page(repository, issue)}#issuecomment-{comment.id}",
            "issue_url": f"{self.at(repository)}/issues/{issue.number}",
            "id": comment.id,
            "node_id": node("IC", comment.id),
            "user": self.user(comment.user),
            "created_at": shown(comment.created),
            "updated_at": shown(comment.updated),
            "author_association": repository.association(comment.user),
            "body": comment.body,
            "performed_via_github_app": None,
            "reactions": self._reactions(url),
        }

    def event(self, repository: Repository, event: IssueEvent) -> dict[str, Any]:
        """`issue-event`."""
        label = {} if event.label is None else {"label": {"name": event.label.name, "color": "ededed"}}
        return {
            "id": event.id,
            "node_id": node("E", event.id),
            "url": f"{self.at(repository)}/issues/events/{event.id}",
            "actor": self.user(event.actor),
            "event": event.event,
            "commit_id": None,
            "commit_url": None,
            "created_at": shown(event.created),
            **label,
            "issue": self.issue(repository, event.issue),
            "performed_via_github_app": None,
        }

    def pull(self, repository: Repository, pull: Pull) -> dict[str, Any]:
        """`pull-request-simple`."""
        url, page = f"{self.at(repository)}/pulls/{pull.number}", self.page(repository, pull)
        issue = f"{self.at(repository)}/issues/{pull.number}"
        links = {
            "self": url,
            "html": page,
            "issue": issue,
            "comments": f"{issue}/comments",
            "review_comments": f"{url}/comments",
            "review_comment": f"{self.at(repository)}/pulls/comments{{/number}}",
            "commits": f"{url}/commits",
            "statuses": f"{self.at(repository)}/statuses/{pull.sha}",
        }
        addresses = {f"{name}_url": address for name, address in links.items() if name not in ("self", "html")}
        return {
            "url": url,
            "id": pull.id,
            "node_id": node("PR", pull.id),
            "html_url": page,
            "diff_url": f"{page}.diff",
            "patch_url": f"{page}.patch",
            **addresses,
            **self._said(repository, pull),
            "merged_at": shown(pull.merged),
            "merge_commit_sha": pull.merge_commit,
            "requested_reviewers": [],
            "requested_teams": [],
            "head": self._end(repository, pull.head, pull.sha),
            "base": self._end(repository, pull.base, repository.git.branches()[pull.base]),
            "_links": {name: {"href": address} for name, address in links.items()},
            "auto_merge": None,
            "draft": pull.draft,
        }

    def whole_pull(self, repository: Repository, pull: Pull) -> dict[str, Any]:
        """`pull-request`."""
        base = repository.git.branches()[pull.base]
        changed = repository.git.changed(base, pull.sha)
        return {
            **self.pull(repository, pull),
            "merged": pull.merged is not None,
            "mergeable": None,
            "rebaseable": None,
            "mergeable_state": "unknown",
            "merged_by": self.user(pull.closed_by) if pull.merged and pull.closed_by else None,
            "comments": len(pull.comments),
            "review_comments": 0,
            "maintainer_can_modify": False,
            "commits": repository.git.count(base, pull.sha),
            "additions": sum(added for added, _, _ in changed),
            "deletions": sum(gone for _, gone, _ in changed),
            "changed_files": len(changed),
        }

    def review(self, repository: Repository, pull: Pull, review: Review) -> dict[str, Any]:
        """`pull-request-review`."""
        page = f"{self.page(repository, pull)}#pullrequestreview-{review.id}"
        url = f"{self.at(repository)}/pulls/{pull.number}"
        return {
            "id": review.id,
            "node_id": node("PRR", review.id),
            "user": self.user(review.user),
            "body": review.body,
            "state": review.state,
            "html_url": page,
            "pull_request_url": url,
            "author_association": repository.association(review.user),
            "_links": {"html": {"href": page}, "pull_request": {"href": url}},
            "submitted_at": shown(review.submitted),
            "commit_id": review.commit,
        }

    def page(self, repository: Repository, issue: Issue) -> str:
        """The page of an issue or a pull request."""
        return f"{self.home(repository)}/{'pull' if isinstance(issue, Pull) else 'issues'}/{issue.number}"

    def _said(self, repository: Repository, issue: Issue) -> dict[str, Any]:
        """What issues and pull requests have alike."""
        return {
            "number": issue.number,
            "title": issue.title,
            "user": self.user(issue.user),
            "labels": [self.label(repository, label) for label in issue.labels.values()],
            "state": issue.state,
            "locked": False,
            "active_lock_reason": None,
            "assignee": None,
            "assignees": [],
            "milestone": None,
            "created_at": shown(issue.created),
            "updated_at": shown(issue.updated),
            "closed_at": shown(issue.closed),
            "author_association": repository.association(issue.user),
            "body": issue.body,
        }

    def _pull_links(self, repository: Repository, pull: Pull) -> dict[str, Any]:
        page = self.page(repository, pull)
        return {
            "url": f"{self.at(repository)}/pulls/{pull.number}",
            "html_url": page,
            "diff_url": f"{page}.diff",
            "patch_url": f"{page}.patch",
            "merged_at": shown(pull.merged),
        }

    def _end(self, repository: Repository, ref: str, sha: str) -> dict[str, Any]:
        return {
            "label": f"{repository.owner.login}:{ref}",
            "ref": ref,
            "sha": sha,
            "user": self.user(repository.owner),
            "repo": self.repository(repository),
        }

    def _reactions(self, url: str) -> dict[str, Any]:
        return {"url": f"{url}/reactions", "total_count": 0, **dict.fromkeys(_NO_REACTIONS, 0)}
