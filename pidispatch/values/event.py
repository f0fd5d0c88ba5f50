"""What happened on a forge, in the same words for all of them, and what the receiver says to it."""

from enum import StrEnum
from typing import Literal

from pydantic import Field

from pidispatch.values.base import Value
from pidispatch.values.forge import ForgeKind
from pidispatch.values.job import Comment, Review, Target


class Occasion(StrEnum):
    """Which rules an event can fire."""

    #: Label rules: an issue with labels.
    LABEL = "label"
    #: The comment rule.
    COMMENT = "comment"
    #: Rules for pull requests.
    PULL_REQUEST = "pull_request"
    #: Those of them that name reviews.
    REVIEW = "review"
    #: Rules for closing, of an issue or of a pull request by the type of the target.
    CLOSE = "close"


class Drop(StrEnum):
    """Why an authentic event starts no job; the log, the delivery log and `explain-event` say it."""

    meaning: str

    def __new__(cls, token: str, meaning: str) -> "Drop":
        member = str.__new__(cls, token)
        member._value_ = token
        member.meaning = meaning
        return member

    MISSING_SENDER_ID = "missing-sender-id", "The event does not say who did it."
    SELF = "self", "This deployment's own account did it; it would answer itself for ever."
    AUTHOR_NOT_ALLOWED = "author-not-allowed", "Who did it, or wrote the comment, may not start jobs."
    PR_AUTHOR_NOT_ALLOWED = "pr-author-not-allowed", "Who opened the pull request may not start jobs."
    REVIEW_AUTHOR_NOT_ALLOWED = "review-author-not-allowed", "Who reviewed may not start jobs."
    CLOSER_NOT_ALLOWED = "closer-not-allowed", "Who closed it may not write to the repository."
    OTHER_INSTALLATION = "other-installation", "It comes from somebody else's installation of the App."
    UNHANDLED_EVENT = "unhandled-event", "No rule is about such events."
    ACTION_NOT_ACTIONABLE = "action-not-actionable", "The forge tells of it, and no rule is about it."
    MISSING_REPOSITORY = "missing-repository", "The event names no repository that a job could work on."
    MISSING_ISSUE_NUMBER = "missing-issue-number", "The event names no issue."
    MISSING_PULL_REQUEST = "missing-pull-request", "The event names no pull request."
    NO_LABEL_CHANGE = "no-label-change", "The event added no label."
    NO_ALLOWLISTED_LABEL = "no-allowlisted-label", "The labels fit no label rule."
    NO_TRIGGER_PHRASE = "no-trigger-phrase", "The comment does not hold the phrase, or no rule is about comments."
    NO_FLOW = "no-flow", "The comment names no flow, and its rule has none."
    NO_MATCHING_PR_TRIGGER = "no-matching-pr-trigger", "No rule for pull requests fits."
    NO_REVIEW_BODY = "no-review-body", "The review is a comment without text."
    REVIEW_STATE_NOT_MATCHED = "review-state-not-matched", "A rule fits but for the verdict of the review."
    CLOSE_NUMBER_NOT_MATCHED = "close-number-not-matched", "Rules for closing are about other numbers."
    NO_MATCHING_CLOSE_TRIGGER = "no-matching-close-trigger", "No armed rule is about closing this."
    NO_REPOSITORY = "no-repository", "Neither event nor rule names the repository."
    TRIGGER_PAUSED = "trigger-paused", "The rule's last runs all came to nothing: pi-dispatch triggers resume INDEX"


class Authority(StrEnum):
    """Whether somebody's word counts in a repository, as far as its forge can tell."""

    #: It does.
    YES = "yes"
    #: It does not, or there is nobody or nothing to ask about.
    NO = "no"
    #: The forge did not answer, or not in words that are known. Never taken for a yes or a no.
    UNKNOWN = "unknown"


class Actor(Value):
    """Who did it."""

    #: The forge's id; `None` where the event says none.
    id: int | str | None = None
    #: Another name of the same account by which it is told from this deployment's, such as an address.
    alias: str | None = Field(default=None, repr=False)
    #: Its name, only to ask the forge about it. Never logged, stored or handed to a job.
    login: str | None = Field(default=None, repr=False, exclude=True)


class Identity(Value):
    """This deployment's own account at a forge."""

    id: int | str | None
    alias: str | None = Field(default=None, repr=False)
    #: The installation of an app as which it acts; others of the same app are other people's.
    installation: int | None = None

    def did(self, actor: Actor) -> bool:
        """Whether it is `actor`; what one side lacks is never the same."""
        same = self.id is not None and self.id == actor.id
        return same or (self.alias is not None and self.alias == actor.alias)


class Event(Value):
    """One delivery, projected: what rules and jobs may see of it, and nothing else. Never logged whole."""

    forge: ForgeKind
    #: The forge's id of the delivery.
    delivery: str
    #: The forge's own words for what happened.
    event: str
    action: str = ""
    #: The installation of an app that the forge sent it for, where it says so.
    installation: int | None = None
    #: Which rules it can fire, in the order in which they are tried; none of them: see `unhandled`.
    occasions: tuple[Occasion, ...] = ()
    unhandled: Literal[Drop.UNHANDLED_EVENT, Drop.ACTION_NOT_ACTIONABLE] = Drop.UNHANDLED_EVENT
    actor: Actor = Actor()
    #: What the forge says of whose word counts on this occasion, where it says that.
    association: str | None = None
    #: `owner/name`; `None` where there is none that can be named.
    repo: str | None = None
    #: What a repository that a rule names is in, where the event is of none.
    project: str | None = None
    #: The forge's own id of it, where asking needs one.
    repo_id: int | str | None = None
    #: `None` where the event has none.
    target: Target | None = None
    #: What label rules are held against: all labels of the item, or those that the event added (`ForgeRow`).
    labels: tuple[str, ...] = ()
    #: For a forge that tells of what was added: whether anything was.
    labels_added: bool = True
    comment: Comment | None = None
    review: Review | None = None
