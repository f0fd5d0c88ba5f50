"""Every reason a run can end with, its meaning and its remedy; docs/reference/reasons.md is made from this."""

from enum import StrEnum
from typing import Final


class Reason(StrEnum):
    """Why a run did not complete. The token is what logs, records and exit messages carry."""

    meaning: str
    remedy: str

    def __new__(cls, token: str, meaning: str, remedy: str) -> "Reason":
        member = str.__new__(cls, token)
        member._value_ = token
        member.meaning = meaning
        member.remedy = remedy
        return member

    # Refused before anything was spent.
    CONFIG_REFUSED = (
        "config-refused",
        "The job, its folder or a setting cannot work as it stands.",
        "See the cause; the message of the run is more exact, and running again shows it. Nothing was spent.",
    )
    LOCAL_FOLDER_NO_COMMIT = (
        "local-folder-no-commit",
        "The folder is a git repository without a commit, so there is no state to come back to.",
        "Commit once in the folder: git add -A && git commit -m start",
    )
    ONCE_ALREADY_SPENT = (
        "once-already-spent",
        "The rule fires once, and another job has spent it: that close has had its run.",
        "Arm it again with: pi-dispatch triggers rearm INDEX",
    )
    JOB_IMAGE_MISSING = (
        "job-image-missing",
        "The job image is not on this engine. Images are never pulled.",
        "Build it with: pi-dispatch image build, or name another with PI_JOB_IMAGE or --image.",
    )
    JOB_IMAGE_FORGE_UNSUPPORTED = (
        "job-image-forge-unsupported",
        "The job image lists the forges it serves, and the job's forge is not among them.",
        "Name an image that serves this forge with --image or PI_JOB_IMAGE.",
    )
    JOB_IMAGE_REPLICAS_UNSUPPORTED = (
        "job-image-replicas-unsupported",
        "The rule starts several jobs for one event, and the image does not say that its guardrails keep them apart.",
        "Use an image with the capability replicas (pi-dispatch image build makes one).",
    )
    JOB_IMAGE_COMMANDS_UNSUPPORTED = (
        "job-image-commands-unsupported",
        "The job is a command, and the image does not say that it has any.",
        "Name an image with the capability commands in the rule's `image`, or give the rule a flow.",
    )
    JOB_IMAGE_ANY_UID_UNSUPPORTED = (
        "job-image-any-uid-unsupported",
        "The job runs as the folder's owner, and the image does not say that it can run as any user.",
        "Use an image with the capability anyUid (pi-dispatch image build makes one).",
    )
    JOB_USER_UNMAPPABLE = (
        "job-user-unmappable",
        "No unprivileged user can be found for the job that may also write the folder.",
        "See the cause: chown the folder to an ordinary user, or run as an ordinary user.",
    )
    PROVIDER_UNCONFIGURED = (
        "provider-unconfigured",
        "There is no credential for the model provider.",
        "Export the provider's key in the environment of the worker and start it anew, or choose another provider.",
    )
    EGRESS_PROXY_MISSING = (
        "egress-proxy-missing",
        "The container named by PI_EGRESS_PROXY, the job's only way out, does not exist.",
        "Bring it up: pi-dispatch egress up; name another one with PI_EGRESS_PROXY; or set PI_EGRESS=0 to open the "
        "network.",
    )
    EGRESS_PROXY_STOPPED = (
        "egress-proxy-stopped",
        "The container named by PI_EGRESS_PROXY, the job's only way out, is not running.",
        "Start it again: pi-dispatch egress up; a container of your own: docker start NAME",
    )
    PI_TOO_MANY_FILES = (
        "pi-too-many-files",
        "The repository's .pi holds more files than a job may bring along.",
        "Take files out of .pi in the commit; docs/reference/limits.md has the bounds.",
    )
    PI_FILE_TOO_LARGE = (
        "pi-file-too-large",
        "A file of the repository's .pi is larger than a job may bring along.",
        "Make the file smaller in the commit; docs/reference/limits.md has the bounds.",
    )
    PI_TOO_LARGE = (
        "pi-too-large",
        "The files of the repository's .pi are larger together than a job may bring along.",
        "Take files out of .pi in the commit; docs/reference/limits.md has the bounds.",
    )
    PI_PATH_COLLISION = (
        "pi-path-collision",
        "Two files of the repository's .pi would have the same name where case does not count.",
        "Rename one of them in the commit.",
    )
    DAILY_TOKEN_CAP = (
        "daily-token-cap",
        "The tokens of the day are used up (PI_DAILY_TOKEN_CAP).",
        "Wait for the next day (UTC), or raise PI_DAILY_TOKEN_CAP and start the worker anew.",
    )
    SKILLS_DIR_MISSING = (
        "skills-dir-missing",
        "The rule's `skillsDir` is no folder on the worker's machine; a link to one is none.",
        "Make the folder there, or name another one in the rule.",
    )
    UNPROTECTED_BRANCH = (
        "unprotected-branch",
        "The repository's default branch is not protected, so an agent with a token could push to it.",
        'Protect the branch at the forge: docs/how-to/github.md, "Protect the default branch".',
    )
    SHA_GONE = (
        "sha-gone",
        "The commit that the default branch had a moment ago is not at the forge any more.",
        "Somebody pushed over it. Start the job again.",
    )
    SKILLS_DIR_UNREADABLE = (
        "skills-dir-unreadable",
        "The rule's `skillsDir` cannot be read by the worker.",
        "Make it readable for the worker's account.",
    )
    SKILLS_DIR_EMPTY = (
        "skills-dir-empty",
        "The rule's `skillsDir` holds no folder that is a skill.",
        "Put each skill into a folder of its own there, with a SKILL.md.",
    )
    SKILLS_DIR_TOO_LARGE = (
        "skills-dir-too-large",
        "The rule's `skillsDir` holds more skills, or more bytes, than travel (docs/reference/limits.md).",
        "Name a folder that holds only the skills of this rule.",
    )
    SKILLS_DIR_TOO_MANY_FILES = (
        "skills-dir-too-many-files",
        "The rule's `skillsDir` holds more files than travel (docs/reference/limits.md).",
        "Name a folder that holds only the skills of this rule.",
    )
    SKILLS_DIR_TOO_DEEP = (
        "skills-dir-too-deep",
        "Folders of the rule's `skillsDir` lie deeper in one another than travels (docs/reference/limits.md).",
        "Move what lies deepest further up.",
    )
    OVER_BUDGET = (
        "over-budget",
        "The runs of a day, a week or a month are used up; the cause names the window.",
        "Wait for the next window (UTC), or raise PI_DAILY_CAP, PI_WEEKLY_CAP or PI_MONTHLY_CAP and start the worker "
        "anew.",
    )
    SOFT_HOLD = (
        "soft-hold",
        "A window is as full as PI_SOFT_HOLD_PCT allows, so that nothing new is started; the cause names the window.",
        "Wait for the next window (UTC), or raise PI_SOFT_HOLD_PCT or the window's cap and start the worker anew.",
    )
    # Ended by policy; never retried.
    WORKER_ABORT = (
        "worker-abort",
        "The run was stopped by pi-dispatch: its time was up, or the program was told to stop.",
        "Split the task if time was up; what the agent had done is in the folder.",
    )
    OPERATOR_CANCEL = (
        "operator-cancel",
        "The operator cancelled the job, before it ran or while it did.",
        "Nothing to mend; what the agent had done is in the folder.",
    )
    RUNNER_POLICY = (
        "runner-policy",
        "The runner inside the box ended the run on a rule: a budget was used up, or its input was wrong.",
        "See the cause: raise --max-turns or PI_MAX_TOKENS, or split the task.",
    )
    PROVIDER_AUTH_REFUSED = (
        "provider-auth-refused",
        "The model provider refused the credential.",
        "Check the provider's key in the environment of the worker.",
    )
    WORKSPACE_NOT_WRITABLE = (
        "workspace-not-writable",
        "The job's user cannot write the workspace, so no work could have been kept.",
        "Give the folder to the user who runs pi-dispatch, or run as its owner.",
    )
    FLOW_NOT_LOADED = (
        "flow-not-loaded",
        "The flow's skill was not loaded by the agent, so the task would have run without its instructions.",
        "Check .pi/skills/<flow>/SKILL.md, or the one in the rule's skillsDir: its front matter needs a name and a "
        "description.",
    )
    # The surroundings failed; trying again may help.
    INFRA = (
        "infra",
        "The run failed for a reason outside its own rules.",
        "See the cause; try again.",
    )
    CONTAINER_NEVER_STARTED = (
        "container-never-started",
        "The container could not be created or started, so nothing ran and nothing was spent.",
        "Check that the container engine answers: docker info",
    )
    CONTAINER_DETACHED = (
        "container-detached",
        "The connection to the engine was lost while the container ran.",
        "Check the engine (docker info), then start the worker anew: it settles what is left there.",
    )
    WORKER_LOST = (
        "worker-lost",
        "The program that ran the job was killed, and how the run ended cannot be told.",
        "Look at the folder; the run may have been paid for and is not started again.",
    )


#: Reasons of a run whose surroundings failed; every other one is a policy's.
FAILURES: Final = frozenset(
    {Reason.INFRA, Reason.CONTAINER_NEVER_STARTED, Reason.CONTAINER_DETACHED, Reason.WORKER_LOST}
)


class RunnerReason(StrEnum):
    """The runner's own word for its end; shown as the cause, never used to decide."""

    meaning: str
    remedy: str

    def __new__(cls, token: str, meaning: str, remedy: str = "") -> "RunnerReason":
        member = str.__new__(cls, token)
        member._value_ = token
        member.meaning = meaning
        member.remedy = remedy
        return member

    STOP = "stop", "The agent ended by itself."
    TOOL_USE = "toolUse", "The agent ended after a tool call."
    LENGTH = "length", "The model's last answer was cut at its own output limit."
    ERROR = (
        "error",
        "The model provider failed, also after the agent's own retries.",
        "Try again later; the message says what the provider answered.",
    )
    NO_TERMINAL_MESSAGE = (
        "no-terminal-message",
        "The agent ended without an answer of the model.",
        "Try again; if it stays so, look at the run's output.",
    )
    INFRA = (
        "infra",
        "The agent could not be started or died.",
        "Try again; check the image with: pi-dispatch image verify",
    )
    CONFIG = (
        "config",
        "What the runner was given cannot work: provider, model, credential or a variable.",
        "Check --provider and --model: the id must be exactly one that pi knows.",
    )
    JOB_INPUTS_UNREADABLE = (
        "job-inputs-unreadable",
        "The job's user may not read the job's inputs.",
        "Check the owner and the mode of PI_JOBS_DIR and PI_GLOBAL_PI_DIR.",
    )
    WORKSPACE_NOT_WRITABLE = (
        "workspace-not-writable",
        "The job's user may not write the workspace.",
        "Give the folder to the user who runs pi-dispatch, or run as its owner.",
    )
    FLOW_NOT_LOADED = "flow-not-loaded", "The flow's skill was not loaded by the agent."
    TURN_BUDGET = (
        "turn_budget",
        "The run used up its model turns.",
        "Raise --max-turns or PI_MAX_TURNS, or split the task.",
    )
    TOKEN_BUDGET = (
        "token_budget",
        "The run used up its tokens.",
        "Raise PI_MAX_TOKENS, or split the task.",
    )
    UNKNOWN_STOP_REASON = (
        "unknown-stop-reason",
        "The agent ended in a way that the runner does not know.",
        "Try again; check the image with: pi-dispatch image verify",
    )
    ABORTED = "aborted", "The agent's work was cut short.", "Try again."
    TERMINATED = "terminated", "The runner was told to stop."
    PROVIDER_AUTH_REFUSED = "provider-auth-refused", "The model provider refused the credential."


#: Reasons of the runner that become the run's own reason when it ends by policy.
KEPT_RUNNER_REASONS: dict[RunnerReason, Reason] = {
    RunnerReason.PROVIDER_AUTH_REFUSED: Reason.PROVIDER_AUTH_REFUSED,
    RunnerReason.WORKSPACE_NOT_WRITABLE: Reason.WORKSPACE_NOT_WRITABLE,
    RunnerReason.FLOW_NOT_LOADED: Reason.FLOW_NOT_LOADED,
}


class AbortReason(StrEnum):
    """Who ended a running job; the first to say so wins."""

    JOB_TIMEOUT = "job-timeout-30m"
    SHUTDOWN = "shutdown"
    OPERATOR_CANCEL = "operator-cancel"
    LEASE_LOST = "lease-lost"
