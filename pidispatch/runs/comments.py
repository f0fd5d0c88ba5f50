"""What is left on the issue or pull request of a job that was refused or came to a bad end: one comment, our words.

Fixed sentences, numbers, and names that an operator chose. No text of a job, no path and no message of an error:
anybody may read the item (docs/reference/comments.md).
"""

import hashlib
import re
from typing import Final

from pidispatch.config.text import printable
from pidispatch.money.windows import Window
from pidispatch.values import names
from pidispatch.values.outcome import Outcome, Refused
from pidispatch.values.reason import Reason, RunnerReason
from pidispatch.values.record import RunRecord

#: Refusals of what the repository or the rule's skills hold, found while the workspace is made: nothing is said.
SILENT: Final = frozenset(
    {
        Reason.SHA_GONE,
        Reason.PI_TOO_MANY_FILES,
        Reason.PI_FILE_TOO_LARGE,
        Reason.PI_TOO_LARGE,
        Reason.PI_PATH_COLLISION,
        Reason.SKILLS_DIR_UNREADABLE,
        Reason.SKILLS_DIR_EMPTY,
        Reason.SKILLS_DIR_TOO_LARGE,
        Reason.SKILLS_DIR_TOO_MANY_FILES,
        Reason.SKILLS_DIR_TOO_DEEP,
    }
)
#: Refusals of which the sentence of the attempt is said: it has numbers, images and places in the triggers file in it,
#: and nothing else. Of all others the words of the table of reasons are.
EXACT: Final = frozenset(
    {
        Reason.ONCE_ALREADY_SPENT,
        Reason.JOB_IMAGE_MISSING,
        Reason.JOB_IMAGE_FORGE_UNSUPPORTED,
        Reason.JOB_IMAGE_REPLICAS_UNSUPPORTED,
        Reason.JOB_IMAGE_COMMANDS_UNSUPPORTED,
        Reason.JOB_IMAGE_ANY_UID_UNSUPPORTED,
        Reason.DAILY_TOKEN_CAP,
        Reason.OVER_BUDGET,
        Reason.SOFT_HOLD,
    }
)
_NO_MORE: Final = "It is not tried again."
#: Of a job that was ended by a rule after it was taken up.
ENDED: Final[dict[Reason, str]] = {
    Reason.WORKER_ABORT: f"The worker ended this job: its time was up, or the worker was told to stop. {_NO_MORE}",
    Reason.OPERATOR_CANCEL: f"An operator cancelled this job. {_NO_MORE}",
    Reason.RUNNER_POLICY: f"The run was ended inside its container, by one of its rules. {_NO_MORE}",
    Reason.PROVIDER_AUTH_REFUSED: "The model provider refused the worker's credential, which an operator has to check. "
    + _NO_MORE,
    Reason.WORKSPACE_NOT_WRITABLE: "The run could not write its workspace, and was ended before the model was asked. "
    + _NO_MORE,
    Reason.FLOW_NOT_LOADED: "The agent did not load the flow's skill, and was ended before the model was asked. "
    + _NO_MORE,
}
#: Ends inside the container that more can be done about than to look at them.
_BUDGETS: Final = (RunnerReason.TURN_BUDGET, RunnerReason.TOKEN_BUDGET)
#: Of a job that failed for the last time.
FAILED: Final = f"An error stopped this job. {_NO_MORE}"
_CAUSE: Final = "The record of the job tells the operator the cause."
#: Where the words of the table of reasons are for somebody at a terminal, with a folder.
_OWN_WORDS: Final[dict[Reason, tuple[str, str]]] = {
    Reason.CONFIG_REFUSED: ("The job, the repository or a setting of the worker cannot work as it stands.", _CAUSE),
    Reason.JOB_USER_UNMAPPABLE: (
        "No unprivileged user can be found on the worker's machine to run the job as.",
        _CAUSE,
    ),
    Reason.LOCAL_FOLDER_NO_COMMIT: (
        "The repository has no commit, so there is nothing to start from.",
        "Push a first commit to its default branch.",
    ),
    Reason.JOB_IMAGE_MISSING: (
        "The job image is not on the worker's engine. Images are never pulled.",
        "Build it there with pi-dispatch image build, or name another with PI_JOB_IMAGE or in the rule's run.image.",
    ),
    Reason.JOB_IMAGE_FORGE_UNSUPPORTED: (
        Reason.JOB_IMAGE_FORGE_UNSUPPORTED.meaning,
        "Name an image that serves this forge with PI_JOB_IMAGE or in the rule's run.image.",
    ),
}
_WINDOWS: Final[dict[Reason, str]] = {
    Reason.OVER_BUDGET: "All runs of this {} are used up.",
    Reason.SOFT_HOLD: "New starts are held, because the runs of this {} are nearly used up.",
}
#: Characters of an operator's words that are shown.
_MOST: Final = 500
_PLAIN_ID: Final = re.compile(r"[A-Za-z0-9._:-]{1,200}")
#: What would call somebody, or link another item; `image@sha256:...` calls nobody.
_CALLS: Final = re.compile(r"(?<![A-Za-z0-9])@|#(?=\d)")
#: What would begin a link, or take the meaning from what follows.
_MARKUP: Final = re.compile(r"[\\\[\]]")
#: A character without a width, at which a name ends.
_JOINER: Final = "\u2060"


def text(record: RunRecord, outcome: Outcome | None = None) -> str | None:
    """The comment on the end in `record`, which no further attempt follows; `None` where nothing is to be said.

    `outcome` is what the attempt returned, where that is known: a record has fewer words.
    """
    told = _told(record, outcome)
    if told is None:
        return None
    lines = (*told, marker(record.job_id))
    return "\n\n".join(lines)


def marker(job_id: str) -> str:
    """What the comment on a job is found again by; a reader of the item does not see it."""
    plain = job_id if _PLAIN_ID.fullmatch(job_id) else hashlib.sha256(job_id.encode("utf-8", "replace")).hexdigest()
    return f"{names.COMMENT_MARK}{plain} -->"


def _told(record: RunRecord, outcome: Outcome | None) -> tuple[str, ...] | None:
    if record.outcome == "completed":
        return None
    if record.outcome == "failed":
        return f"pi-dispatch: {FAILED}", *_for_operators(record)
    reason = next((one for one in Reason if one == record.reason), None)
    # One without a name here is of a later version.
    if reason is None or reason in SILENT:
        return None
    if (sentence := ENDED.get(reason)) is not None:
        return f"pi-dispatch (`{reason}`): {sentence}{_of_budget(reason, record)}", *_for_operators(record)
    sentence, remedy = _refusal(reason, record, outcome)
    not_run = "The job was not run again." if record.attempts else "The job was not run."
    return (
        f"pi-dispatch refused this job (`{reason}`). {sentence}",
        f"What helps: {remedy}",
        *_for_operators(record),
        not_run,
    )


def _refusal(reason: Reason, record: RunRecord, outcome: Outcome | None) -> tuple[str, str]:
    """What was found, and what can be done about it."""
    meaning, remedy = _OWN_WORDS.get(reason, (reason.meaning, reason.remedy))
    if reason in EXACT and isinstance(outcome, Refused) and outcome.reason is reason and outcome.detail:
        return _sentence(_harmless(outcome.detail)), _harmless(outcome.remedy) if outcome.remedy else remedy
    if (words := _WINDOWS.get(reason)) is not None and record.cause in tuple(Window):
        return words.format(record.cause), remedy
    return meaning, remedy


def _of_budget(reason: Reason, record: RunRecord) -> str:
    """The budget of the run that was used up, and what raises it."""
    if reason is not Reason.RUNNER_POLICY:
        return ""
    used_up = next((one for one in _BUDGETS if one == record.cause), None)
    return "" if used_up is None else f" {used_up.meaning} What helps: {used_up.remedy}"


def _for_operators(record: RunRecord) -> tuple[str, ...]:
    if not _PLAIN_ID.fullmatch(record.job_id):
        return ()
    return (f"For the operator: `pi-dispatch show {record.job_id}`",)


def _sentence(words: str) -> str:
    return words[:1].upper() + words[1:] + ("" if words.endswith((".", "!", "?")) else ".")


def _harmless(words: str) -> str:
    """An operator's words on one line, in which nothing calls anybody, links another item or hides what follows.

    https://docs.github.com/en/get-started/writing-on-github/getting-started-with-writing-and-formatting-on-github/basic-writing-and-formatting-syntax
    """
    line = printable(" ".join(words.split()))
    line = line if len(line) <= _MOST else line[:_MOST] + "…"
    line = line.replace("`", "'")
    line = _MARKUP.sub(lambda found: "\\" + found[0], line)
    line = line.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return _CALLS.sub(lambda found: found[0] + _JOINER, line)
