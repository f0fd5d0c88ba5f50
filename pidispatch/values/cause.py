"""Every fixed word that narrows a reason down, with its meaning and what to do; docs/reference/reasons.md shows it.

The message of a refusal or a fault is more exact, but it is shown once and kept nowhere: of a record only the words
are left.
"""

from typing import Final, NamedTuple


class Explained(NamedTuple):
    """What a cause means, and what mends it."""

    meaning: str
    remedy: str


_AGAIN = "Try again; if it stays so, look at the message of the run."
_OWNER = "Check owner, mode and free space of the folder, then try again."
_GIT = "Check the repository with: git fsck"
_LISTS = "pi-dispatch egress up says file, line and entry."

#: Causes of this program's own. The runner's are in `RunnerReason`, those of an abort in `AbortReason`; where nothing
#: but an exit status is known, the cause is `exit-` and its number.
CAUSES: Final[dict[str, Explained]] = {
    "auth-unreadable": Explained("pi's own auth.json cannot be read.", "Check its mode, or set PI_AUTH_FROM_PI=0."),
    "base-image-missing": Explained("The named base image is not on the engine.", "Fetch it, or leave out --base."),
    "before-spending": Explained(
        "The workers that took the job were lost before they spent anything, as often as it is taken up again.",
        "Look at why they ended (their log, the machine's memory), then submit the job again.",
    ),
    "celery-config": Explained(
        "The file of Celery settings, or a variable of Celery's, sets what pi-dispatch's promises hang on.",
        "The message names the file and the entry; docs/how-to/worker.md lists what may be set.",
    ),
    "clone-failed": Explained(
        "The repository could not be cloned.",
        "See the message of the run; check the network, and GITHUB_URL.",
    ),
    "clone-url": Explained("The address that is cloned from is none.", "Check GITHUB_URL: it begins with https://."),
    "deployment-id": Explained(
        "The id of this deployment in PI_STATE_DIR cannot be read or is none.",
        "Move the file `deployment` away to have a new one made.",
    ),
    "deployment-differs": Explained(
        "PI_STATE_DIR is of another deployment than the jobs on the server.",
        "Name the state folder of that deployment, or another server or prefix (VALKEY_URL, PI_KEY_PREFIX).",
    ),
    "desktop-linux-userns": Explained(
        "Docker Desktop maps users of its own virtual machine.", "Use the distribution's own Docker engine."
    ),
    "dirty-tree": Explained(
        "The folder has uncommitted changes, which the agent's would mix with.",
        "Commit or stash them (git stash -u), or run with --force: there is no undo.",
    ),
    "docker-group": Explained(
        "The job would run in the group that owns the engine's socket.",
        "Give the folder, or the account of pi-dispatch, another primary group.",
    ),
    "egress-folder": Explained("PI_EGRESS_DIR cannot be used.", "Name a folder of this account's own."),
    "egress-in-use": Explained("Jobs are connected to the proxy.", "Wait for their end, then call it again."),
    "egress-lists": Explained("The lists of the proxy cannot be used.", _LISTS),
    "egress-name-taken": Explained(
        "A container or network of the proxy's name is not pi-dispatch's.",
        "Remove it, or name the proxy otherwise with PI_EGRESS_PROXY.",
    ),
    "egress-network": Explained("The proxy's network cannot be used.", "pi-dispatch egress down, then up."),
    "egress-not-up": Explained("The proxy did not come to accept connections.", "Read its log: docker logs NAME"),
    "engine-lock": Explained(
        "The lock of the container engine cannot be made or taken.", "The message names its file, or the folders."
    ),
    "engine-taken": Explained(
        "Another worker serves this container engine.", "End that one, or name another engine with DOCKER_HOST."
    ),
    "flow-missing": Explained(
        "The commit holds no such flow.", "Commit .pi/skills/NAME/SKILL.md, or name a flow that is there."
    ),
    "folder-busy": Explained(
        "Another run works in the folder.", "It comes back by itself once the other one has ended."
    ),
    "folder-lock": Explained("The lock of the folder in PI_STATE_DIR cannot be taken.", _OWNER),
    "folder-missing": Explained("The folder does not exist or is none.", "Name the folder of a git repository."),
    "folder-name": Explained("The folder's path is not UTF-8, so it cannot be mounted.", "Rename the folder."),
    "folder-not-git": Explained(
        "The folder is not the root of a git repository.", "git init && git add -A && git commit -m start"
    ),
    "folder-owned-by-root": Explained(
        "The folder belongs to root, and a job never runs as root.",
        "chown -R USER FOLDER, or run pi-dispatch as the user who owns it.",
    ),
    "folder-overlap": Explained(
        "The folder and a folder of pi-dispatch's own lie in one another.",
        "Name another place for it with its variable, or work in a folder beside it.",
    ),
    "folder-gone": Explained(
        "The folder of a broken-off run is not there.",
        "Bring it back (mount its disk), or remove the job directory that the message names.",
    ),
    "folder-unreadable": Explained("Something in the folder cannot be examined.", "Check its owner and mode."),
    "folder-unusable": Explained("A folder of pi-dispatch's own cannot be made.", _OWNER),
    "forge-clock": Explained(
        "The forge does not take the App's word, because the clock of this machine is off.",
        "Set the clock right (timedatectl), then start the job again.",
    ),
    "forge-rate-limited": Explained(
        "The forge answers no more questions for now.",
        "Wait until its limit is full again, or use an App, which has one of its own.",
    ),
    "forge-refused": Explained(
        "The forge does not take the credential.",
        "Check that it is valid, for this address and of this clock; docs/how-to/github.md says what it needs.",
    ),
    "forge-unanswered": Explained("The forge does not answer, or not in words that are known.", "Try again later."),
    "forge-token-empty": Explained(
        "The forge gave an empty token for this job.", "Look at the deployment's credential: pi-dispatch check"
    ),
    "forge-unknown": Explained(
        "The job is of a kind that has no forge, so there are no variables for a token.",
        "Submit the job again with a program and worker of the same version.",
    ),
    "forge-unserved": Explained(
        "This version, or this program, runs no jobs of that forge.",
        "Use a version that does.",
    ),
    "git-dir": Explained("Host git's own directory cannot be made.", _OWNER),
    "git-failed": Explained("A git program failed on the host.", _GIT),
    "git-not-put-back": Explained(
        "What the run changed in .git could not be put back.",
        "Look at .git/config and .git/hooks before you use git there; the next start of a worker tries again.",
    ),
    "git-unusable": Explained("The repository cannot be used as it stands.", _GIT),
    "identity-timed-out": Explained(
        "The forge did not say in time which account is the receiver's own.", "Try again later."
    ),
    "identity-unknown": Explained(
        "The forge does not say which account is the receiver's own.",
        "Check the credential; docs/how-to/github.md says what it needs.",
    ),
    "image-build": Explained("The image could not be built.", "Read the end of the builder's output."),
    "image-reference": Explained("That is no name of an image.", "Write it like name:tag."),
    "internal-error": Explained(
        "A mistake of pi-dispatch's own.", "Report it with the line `attempt_broke` or `gate_broke` of the log."
    ),
    "job-dir": Explained("The job's directory in PI_JOBS_DIR cannot be made or written.", _OWNER),
    "job-gone": Explained(
        "The server lost its data, or the job ended long ago.", "See what is on record: pi-dispatch show JOBID"
    ),
    "job-id": Explained("A job's id begins like a key of the store.", "Name the job otherwise."),
    "job-image-missing": Explained("The image is not on the engine.", "Build it with: pi-dispatch image build"),
    "leftover": Explained("The engine did not remove what a killed run left.", "Check the engine: docker info"),
    "lock-held": Explained(
        "Another program holds a lock for far longer than it takes.", "End the program that hangs, then run again."
    ),
    "lock-unusable": Explained("A lock in PI_STATE_DIR cannot be made or taken.", _OWNER),
    "log-unreadable": Explained("The kept output cannot be read.", "Check PI_LOGS_DIR and its owner."),
    "logs-dir": Explained(
        "The folder of the records cannot be used, so no run would be recorded.",
        "Name a folder of this account's own with PI_LOGS_DIR, or mend this one.",
    ),
    "no-commit": Explained("The repository has no commit.", "Commit once: git add -A && git commit -m start"),
    "not-a-folder": Explained("A variable names something that is no folder.", "Name another path with it."),
    "not-own-folder": Explained(
        "A variable names a folder that another account owns or can change.", "Name a folder of this account's own."
    ),
    "not-started": Explained("A program could not be started on the host.", _AGAIN),
    "note-unreadable": Explained("The note of a broken-off run cannot be read.", "The message names the file."),
    "oom-killed": Explained(
        "The run needed more memory than the box has (docs/reference/limits.md).",
        "Split the task, or have the agent run less at once.",
    ),
    "operator-file": Explained(
        "A file of the operator's, such as that of the quiet hours, is missing, unreadable or invalid.",
        "The message names file, entry, field and what to write; look again with: pi-dispatch check FILE",
    ),
    "other-engine": Explained(
        "The container of a broken-off run was on another engine.", "Run once with the DOCKER_HOST of then."
    ),
    "overlay-credential": Explained(
        "models.json in PI_GLOBAL_PI_DIR holds a credential, which the agent could read.",
        'Write "$NAME" in its place and name the variable in PI_FORWARD_ENV.',
    ),
    "overlay-models": Explained("models.json in PI_GLOBAL_PI_DIR cannot be used.", "Mend the file."),
    "overlay-not-served": Explained(
        "PI_GLOBAL_PI_DIR holds more than models.json.", "Move the rest out of the folder."
    ),
    "overlay-unreadable": Explained("PI_GLOBAL_PI_DIR cannot be read.", "Check its owner and mode."),
    "receiver-listen": Explained(
        "The receiver cannot listen where it is to.",
        "End what listens there, or name another place: RECEIVER_BIND, RECEIVER_PORT, RECEIVER_HEALTH_BIND.",
    ),
    "record-unwritable": Explained("The run's record cannot be written.", "Make room, or name another PI_LOGS_DIR."),
    "repository-empty": Explained(
        "The repository has no commit, and so no default branch.",
        "Push a first commit.",
    ),
    "repository-unseen": Explained(
        "The repository is not there, or the credential does not show it.",
        "Install the App on it, or give the token access to it.",
    ),
    "root-group": Explained(
        "The job would run in root's group.",
        "Give the folder, or the account of pi-dispatch, an ordinary group.",
    ),
    "rootless": Explained("A rootless engine maps users.", "Use a rootful engine."),
    "row-unreadable": Explained(
        "The store holds the job in a form that this version does not read.", "Submit the job again."
    ),
    "runtime-unreadable": Explained("The engine does not say how it maps users.", "See what docker info prints."),
    "schema-newer": Explained("The store of the queue is written by a later version.", "Install that version again."),
    "server-binary": Explained(
        "No server is packaged for this machine.", "Start a Redis 7 or newer, or a Valkey, and name it with VALKEY_URL."
    ),
    "server-cluster": Explained(
        "The server is a Redis Cluster, which the queue's transport cannot use.", "Name a single server or a Sentinel."
    ),
    "server-in-use": Explained(
        "Other programs use pi-dispatch's own server.", "End them; the last one ends the server by itself."
    ),
    "server-loading": Explained("The server still loads its data.", "Try again."),
    "server-no-master": Explained(
        "No Sentinel names a server that is up.", "Check the name of the master, and that the Sentinels answer."
    ),
    "server-not-ended": Explained(
        "pi-dispatch's own server does not end.", "Read its log: server/server.log in PI_STATE_DIR."
    ),
    "server-not-running": Explained(
        "pi-dispatch's own server does not run.", "Start a worker, or name a server of yours with VALKEY_URL."
    ),
    "server-not-started": Explained(
        "pi-dispatch's own server does not come up.", "Read its log: server/server.log in PI_STATE_DIR."
    ),
    "server-old": Explained("The server is older than Redis 7.", "Name a Redis 7 or newer, or a Valkey."),
    "server-password": Explained("The server does not take the password.", "Set VALKEY_PASSWORD."),
    "server-refuses": Explained("The server refuses what the queue needs.", "The message has the server's own words."),
    "server-sentinel": Explained(
        "The address is that of a Sentinel.", "Write VALKEY_URL=sentinel://HOST:PORT/0?master=NAME."
    ),
    "server-unreachable": Explained(
        "The server does not answer.", "Start it, or correct VALKEY_URL; see pi-dispatch server status."
    ),
    "setting": Explained("A variable is malformed.", "The message names it, the value, and what to write."),
    "stopped": Explained(
        "A program was ended with its job.",
        _AGAIN,
    ),
    "store-error": Explained("The server of the queue refused a command.", "Its own log says more."),
    "store-unreachable": Explained(
        "The server of the queue does not answer.", "See that it runs and that VALKEY_URL names it."
    ),
    "state-dir-too-long": Explained(
        "The path of PI_STATE_DIR is too long for a socket in it.", "Name a shorter one, or a server with VALKEY_URL."
    ),
    "ticket-unpublished": Explained(
        "The job is accepted, and its ticket did not reach the server.", "A worker publishes it again by itself."
    ),
    "timeout": Explained(
        "A program on the host took too long.", "Try again; is the folder, or the repository, very large?"
    ),
    "triggers-locked": Explained("Another program writes the triggers file.", "Try again."),
    "triggers-read-only": Explained(
        "The triggers file, or its folder, is not to be written, or not without changing its owner and group.",
        "Make both writable for the worker's account, or write the file by hand.",
    ),
    "triggers-unwritable": Explained("The triggers file cannot be written.", _OWNER),
    "unfinished": Explained("The attempt came to no end.", _AGAIN),
    "unserved-bound": Explained(
        "A bound is set that this version does not enforce.", "Take the variable away, or use a version that does."
    ),
    "unsettled": Explained(
        "An earlier run in the folder was broken off and is not settled.",
        "A worker settles it when it starts; its log says why it could not. Mend that, then start the worker anew.",
    ),
    "userns-remap": Explained("The engine remaps users.", "Use an engine without userns-remap."),
    "worker-option": Explained(
        "An option of celery worker would bend what pi-dispatch counts on.", "Leave it out; the message says why."
    ),
    "worker-pool": Explained("Only the threads pool can serve.", "Leave out --pool."),
    "worktree": Explained(
        "The git directory, or objects of it, lie outside the folder, so git would not work in the box.",
        "Use the main checkout, or a clone of its own: git clone --no-local FOLDER NEW",
    ),
}


def remedy_of(cause: str | None) -> str | None:
    """What mends a cause; `None` for one that is not of this table."""
    found = CAUSES.get(cause or "")
    return found.remedy if found else None
