"""GraphQL as far as the program `gh` asks it: by the name of the operation, cut to the fields that it asks for.

https://docs.github.com/en/graphql; the operations are those of gh 2.23 (`pr`, `issue`, `auth status`).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from tests.fakes.github.faults import BAD_CREDENTIALS, Reply
from tests.fakes.github.model import Comment, Issue, Level, Pull, Repository, Review, Token, User
from tests.fakes.github.rest_pulls import STATES
from tests.fakes.github.selection import Document, Field, Unfit, read
from tests.fakes.github.shapes import Shapes, node, shown
from tests.fakes.github.state import Refused, State, may, sees

_NO_MORE = {"hasNextPage": False, "hasPreviousPage": False, "startCursor": None, "endCursor": None}
_WRITE: dict[str, Level] = {"issues": "write", "pull_requests": "write"}


class GraphError(Exception):
    """An error of GraphQL's, which is told with status 200."""

    def __init__(self, kind: str, text: str) -> None:
        super().__init__(text)
        self.kind = kind


@dataclass(frozen=True)
class Asked:
    """One operation and its variables."""

    state: State
    shapes: Shapes
    token: Token
    document: Document
    variables: Mapping[str, Any]

    @property
    def given(self) -> Mapping[str, Any]:
        """What a mutation is given."""
        found: Mapping[str, Any] = self.variables["input"]
        return found

    def repository(self) -> Repository:
        """The one that the variables name."""
        told = {**self.document.first().arguments, **self.variables}
        owner = told.get("repo_owner") or told.get("owner")
        name = told.get("repo_name") or told.get("repo") or told.get("name")
        found = self.state.repositories.get(f"{owner}/{name}".lower())
        if found is None or not sees(self.token, found):
            raise GraphError("NOT_FOUND", f"Could not resolve to a Repository with the name '{owner}/{name}'.")
        return found

    def numbered(self) -> tuple[Repository, Issue]:
        """The issue or pull request that they name."""
        repository = self.repository()
        number = next(
            self.variables[name] for name in ("number", "pr_number", "issue_number") if name in self.variables
        )
        found = repository.issues.get(int(number))
        if found is None:
            raise GraphError("NOT_FOUND", f"Could not resolve to an issue or pull request with the number of {number}.")
        return repository, found

    def subject(self, identity: str) -> tuple[Repository, Issue]:
        """What a node is, to write to."""
        for repository in self.state.repositories.values():
            for issue in repository.issues.values():
                if identity in (node("I", issue.id), node("PR", issue.id)) and sees(self.token, repository):
                    self.require(repository, _WRITE)
                    return repository, issue
        raise GraphError("NOT_FOUND", f"Could not resolve to a node with the global id of '{identity}'")

    def require(self, repository: Repository, wanted: Mapping[str, Level]) -> None:
        """Raise what GitHub says where the token may not."""
        if not may(self.token, repository, wanted):
            who = "integration" if self.token.installation is not None else "personal access token"
            raise GraphError("FORBIDDEN", f"Resource not accessible by {who}")


Operation: TypeAlias = Callable[[Asked], Any]


def answer(state: State, shapes: Shapes, token: Token | None, body: Mapping[str, Any]) -> Reply:
    """What GraphQL says. Raises `Unfit` for what the edge does not have."""
    if token is None:
        return BAD_CREDENTIALS
    document = read(body["query"])
    if document.name not in OPERATIONS:
        raise Unfit(f"the edge knows no operation {document.name}; it knows {', '.join(OPERATIONS)}")
    try:
        with state.lock:
            asked = Asked(state, shapes, token, document, body.get("variables") or {})
            return Reply(200, {"data": document.cut(OPERATIONS[document.name](asked))})
    except GraphError as error:
        return failed(error.kind, str(error))
    except Refused as refused:
        return failed("UNPROCESSABLE", str(refused))


def failed(kind: str, text: str) -> Reply:
    """An error, which comes with status 200."""
    return Reply(200, {"data": None, "errors": [{"type": kind, "path": [], "message": text}]})


def _viewer(asked: Asked) -> Any:
    return {"viewer": {"login": asked.token.user.login, "id": node("U", asked.token.user.id)}}


def _repository_info(asked: Asked) -> Any:
    return {"repository": _repository(asked, asked.repository())}


def _pull_for_branch(asked: Asked) -> Any:
    repository, head = asked.repository(), asked.variables["headRefName"]
    found = [one for one in reversed(repository.pulls) if one.head == head]
    nodes = [_pull(asked, repository, one) for one in found]
    branch = {"name": repository.default}
    return {"repository": {"pullRequests": {"nodes": nodes}, "defaultBranchRef": branch}}


def _pull_list(asked: Asked) -> Any:
    repository, head = asked.repository(), asked.variables.get("headBranch")
    wanted = {*asked.variables.get("state", ["OPEN"])}
    found = [one for one in reversed(repository.pulls) if head in (None, one.head) and _pull_state(one) in wanted]
    nodes = [_pull(asked, repository, one) for one in found]
    return {"repository": {"pullRequests": {"totalCount": len(nodes), "nodes": nodes, "pageInfo": _NO_MORE}}}


def _pull_by_number(asked: Asked) -> Any:
    repository, found = asked.numbered()
    if not isinstance(found, Pull):
        raise GraphError("NOT_FOUND", f"Could not resolve to a PullRequest with the number of {found.number}.")
    return {"repository": {"pullRequest": _pull(asked, repository, found)}}


def _issue_by_number(asked: Asked) -> Any:
    repository, found = asked.numbered()
    shape = _pull(asked, repository, found) if isinstance(found, Pull) else _issue(asked, repository, found)
    return {"repository": {"hasIssuesEnabled": True, "issue": shape}}


def _comments_for(asked: Asked) -> Any:
    repository, found = asked.subject(asked.variables["id"])
    nodes = [_comment(asked, repository, found, one) for one in found.comments]
    return {"node": {"comments": {"nodes": nodes, "totalCount": len(nodes), "pageInfo": _NO_MORE}}}


def _metadata(asked: Asked) -> Any:
    labels = asked.repository().labels
    wanted = [one for one in asked.document.first().inside if isinstance(one, Field)]
    found = {one.key: labels.get(one.arguments["name"]) for one in wanted if one.name == "label"}
    return {"repository": {key: one and {"id": node("LA", one.id), "name": one.name} for key, one in found.items()}}


def _labels(asked: Asked) -> Any:
    nodes = [{"id": node("LA", one.id), "name": one.name} for one in asked.repository().labels.values()]
    return {"repository": {"labels": {"nodes": nodes, "pageInfo": _NO_MORE}}}


def _create_pull(asked: Asked) -> Any:
    given = asked.given
    repository = next(one for one in asked.state.repositories.values() if node("R", one.id) == given["repositoryId"])
    asked.require(repository, {"pull_requests": "write"})
    made = asked.state.pull(
        repository,
        asked.token.user,
        given["title"],
        given.get("body"),
        given["headRefName"],
        given["baseRefName"],
        bool(given.get("draft")),
    )
    return {"createPullRequest": {"pullRequest": _pull(asked, repository, made)}}


def _change_pull(asked: Asked) -> Any:
    repository, found = asked.subject(asked.given["pullRequestId"])
    names = {node("LA", one.id): one.name for one in repository.labels.values()}
    for one in asked.given.get("labelIds") or ():
        asked.state.label(repository, found, asked.token.user, names[one])
    return {"updatePullRequest": {"__typename": "UpdatePullRequestPayload"}}


def _create_comment(asked: Asked) -> Any:
    repository, found = asked.subject(asked.given["subjectId"])
    made = asked.state.comment(repository, found, asked.token.user, asked.given["body"])
    return {"addComment": {"commentEdge": {"node": _comment(asked, repository, found, made)}}}


def _create_review(asked: Asked) -> Any:
    repository, found = asked.subject(asked.given["pullRequestId"])
    assert isinstance(found, Pull)
    asked.state.review(repository, found, asked.token.user, STATES[asked.given["event"]], asked.given.get("body") or "")
    return {"addPullRequestReview": {"clientMutationId": ""}}


def _close(asked: Asked) -> Any:
    repository, found = asked.subject(asked.given.get("issueId") or asked.given["pullRequestId"])
    asked.state.close(repository, found, asked.token.user)
    return {"closeIssue": {"issue": {"id": node("I", found.id)}}, "closePullRequest": {"pullRequest": {"id": ""}}}


#: By the name that gh gives them.
OPERATIONS: dict[str, Operation] = {
    "UserCurrent": _viewer,
    "RepositoryInfo": _repository_info,
    "PullRequestForBranch": _pull_for_branch,
    "PullRequestList": _pull_list,
    "PullRequestByNumber": _pull_by_number,
    "IssueByNumber": _issue_by_number,
    "CommentsForIssue": _comments_for,
    "CommentsForPullRequest": _comments_for,
    "RepositoryResolveMetadataIDs": _metadata,
    "RepositoryLabelList": _labels,
    "PullRequestCreate": _create_pull,
    "PullRequestCreateMetadata": _change_pull,
    "CommentCreate": _create_comment,
    "PullRequestReviewAdd": _create_review,
    "IssueClose": _close,
    "PullRequestClose": _close,
}


def _actor(user: User) -> dict[str, Any]:
    return {
        "login": user.login.removesuffix("[bot]"),
        "id": node("U", user.id),
        "name": None,
        "is_bot": user.type == "Bot",
    }


def _repository(asked: Asked, repository: Repository) -> dict[str, Any]:
    level = "ADMIN" if asked.token.installation is None else "WRITE"
    merges = ("mergeCommitAllowed", "rebaseMergeAllowed", "squashMergeAllowed")
    return {
        "id": node("R", repository.id),
        "name": repository.name,
        "nameWithOwner": repository.full_name,
        "owner": _actor(repository.owner),
        "description": None,
        "hasIssuesEnabled": True,
        "hasWikiEnabled": False,
        "viewerPermission": level,
        "isPrivate": repository.private,
        "defaultBranchRef": {"name": repository.default},
        "url": f"{asked.shapes.pages}/{repository.full_name}",
        "parent": None,
        **dict.fromkeys(merges, True),
    }


def _issue(asked: Asked, repository: Repository, issue: Issue) -> dict[str, Any]:
    labels = [{"id": node("LA", one.id), "name": one.name, "color": "ededed"} for one in issue.labels.values()]
    comments = [_comment(asked, repository, issue, one) for one in issue.comments]
    return {
        "__typename": "Issue",
        "id": node("I", issue.id),
        "number": issue.number,
        "title": issue.title,
        "body": issue.body or "",
        "state": issue.state.upper(),
        "stateReason": "COMPLETED" if issue.closed else None,
        "url": asked.shapes.page(repository, issue),
        "author": _actor(issue.user),
        "createdAt": shown(issue.created),
        "updatedAt": shown(issue.updated),
        "closedAt": shown(issue.closed),
        "labels": {"nodes": labels, "totalCount": len(labels)},
        "assignees": {"nodes": [], "totalCount": 0},
        "projectCards": {"nodes": [], "totalCount": 0},
        "reactionGroups": [],
        "milestone": None,
        "comments": {"nodes": comments, "totalCount": len(comments), "pageInfo": _NO_MORE},
    }


def _pull_state(pull: Pull) -> str:
    return "MERGED" if pull.merged else pull.state.upper()


def _pull(asked: Asked, repository: Repository, pull: Pull) -> dict[str, Any]:
    reviews = [_review(asked, repository, pull, one) for one in pull.reviews]
    return {
        **_issue(asked, repository, pull),
        "__typename": "PullRequest",
        "id": node("PR", pull.id),
        "state": _pull_state(pull),
        "baseRefName": pull.base,
        "headRefName": pull.head,
        "headRefOid": pull.sha,
        "headRepository": {"id": node("R", repository.id), "name": repository.name},
        "headRepositoryOwner": _actor(repository.owner),
        "isCrossRepository": False,
        "isDraft": pull.draft,
        "maintainerCanModify": False,
        "mergeable": "UNKNOWN",
        "mergeStateStatus": "UNKNOWN",
        "reviewDecision": "",
        "reviews": {"nodes": reviews, "totalCount": len(reviews), "pageInfo": _NO_MORE},
        "reviewRequests": {"nodes": [], "totalCount": 0},
    }


def _comment(asked: Asked, repository: Repository, issue: Issue, comment: Comment) -> dict[str, Any]:
    return {
        "id": node("IC", comment.id),
        "author": _actor(comment.user),
        "authorAssociation": repository.association(comment.user),
        "body": comment.body,
        "createdAt": shown(comment.created),
        "includesCreatedEdit": False,
        "isMinimized": False,
        "minimizedReason": "",
        "reactionGroups": [],
        "viewerDidAuthor": comment.user == asked.token.user,
        "url": f"{asked.shapes.page(repository, issue)}#issuecomment-{comment.id}",
    }


def _review(asked: Asked, repository: Repository, pull: Pull, review: Review) -> dict[str, Any]:
    return {
        "id": node("PRR", review.id),
        "author": _actor(review.user),
        "authorAssociation": repository.association(review.user),
        "body": review.body,
        "state": review.state,
        "submittedAt": shown(review.submitted),
        "includesCreatedEdit": False,
        "reactionGroups": [],
        "url": f"{asked.shapes.page(repository, pull)}#pullrequestreview-{review.id}",
    }
