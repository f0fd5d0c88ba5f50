"""The forges: what is different about each, in one table. Everything that depends on a forge is made from it.

docs/reference/forges.md shows it.
"""

from enum import StrEnum
from typing import Final, Literal, NamedTuple


class JobKind(StrEnum):
    """Where the job's workspace comes from."""

    #: A folder on this machine, edited in place.
    LOCAL = "local"
    #: A fresh clone of a repository of one of these forges.
    GITHUB = "github"
    GITLAB = "gitlab"
    FORGEJO = "forgejo"
    AZURE = "azure"


#: Kinds of jobs that an event on a forge starts.
ForgeKind = Literal[JobKind.GITHUB, JobKind.GITLAB, JobKind.FORGEJO, JobKind.AZURE]
#: The word that rules have for a review, where the forge itself says `submitted`.
REVIEW_ACTION: Final = "review_submitted"
#: What the number of an issue is set off with; also that of a pull request, where the table says nothing else.
_SEPARATOR: Final = "#"


class ForgeRow(NamedTuple):
    """One forge."""

    kind: ForgeKind
    #: As it calls itself.
    title: str
    #: What the ids of its jobs begin with.
    prefix: str
    #: Path at which the receiver hears it.
    route: str
    #: What the number of a pull request is set off with.
    pull_separator: str
    #: Variables in which a job finds its token, and the one in which it finds the forge.
    token_variables: tuple[str, ...]
    host_variable: str | None
    #: Words that a rule for pull requests may name, in the forge's own spelling.
    pull_actions: tuple[str, ...]
    #: The one of them that tells of a change of labels.
    pull_label_action: str | None
    #: The one that tells that it was closed, of issues too.
    close_word: str | None
    #: Whether an event carries whose word counts; else the forge is asked for every event.
    says_association: bool
    #: Whether rules are held against the labels that an event added, and not against all of the item.
    added_labels: bool
    #: Whether an event of a pull request tells of labels.
    pull_labels: bool
    #: Whether its issues are in no repository, so that a rule about them names one.
    names_repository: bool


FORGES: Final[dict[JobKind, ForgeRow]] = {
    row.kind: row
    for row in (
        ForgeRow(
            kind=JobKind.GITHUB,
            title="GitHub",
            prefix="gh-",
            route="/",
            pull_separator=_SEPARATOR,
            token_variables=("GITHUB_TOKEN", "GH_TOKEN"),
            host_variable=None,
            pull_actions=("labeled", "opened", "synchronize", "reopened", REVIEW_ACTION, "closed"),
            pull_label_action="labeled",
            close_word="closed",
            says_association=True,
            added_labels=False,
            pull_labels=True,
            names_repository=False,
        ),
        ForgeRow(
            kind=JobKind.GITLAB,
            title="GitLab",
            prefix="gl-",
            route="/gitlab",
            pull_separator="!",
            token_variables=("GITLAB_TOKEN", "GL_TOKEN"),
            host_variable="GITLAB_HOST",
            pull_actions=("open", "update", "reopen", "approved", "close"),
            pull_label_action=None,
            close_word="close",
            says_association=False,
            added_labels=True,
            pull_labels=True,
            names_repository=False,
        ),
        ForgeRow(
            kind=JobKind.FORGEJO,
            title="Forgejo",
            prefix="fj-",
            route="/forgejo",
            pull_separator=_SEPARATOR,
            token_variables=("FORGEJO_TOKEN", "GITEA_SERVER_TOKEN"),
            host_variable="FORGEJO_HOST",
            pull_actions=("label_updated", "opened", "synchronized", "reopened", "closed"),
            pull_label_action="label_updated",
            close_word="closed",
            says_association=False,
            added_labels=False,
            pull_labels=True,
            names_repository=False,
        ),
        ForgeRow(
            kind=JobKind.AZURE,
            title="Azure DevOps",
            prefix="az-",
            route="/azure",
            pull_separator="!",
            token_variables=("AZURE_DEVOPS_EXT_PAT", "SYSTEM_ACCESSTOKEN"),
            host_variable="AZURE_DEVOPS_ORG_URL",
            pull_actions=("created", "updated"),
            pull_label_action=None,
            close_word=None,
            says_association=False,
            added_labels=True,
            pull_labels=False,
            names_repository=True,
        ),
    )
}


def separator(kind: str, target: str) -> str:
    """What sets off the number of a target of type `target`, `issue` or `pull_request`; `#` for an unknown forge."""
    row = next((row for row in FORGES.values() if row.kind == kind), None)
    return row.pull_separator if row is not None and target == "pull_request" else _SEPARATOR
