"""Which user a job runs as, decided from facts and never by trying (docs/explanation/job-user.md)."""

from pidispatch.box.spec import IMAGE_USER, JobUser
from pidispatch.values.base import Value
from pidispatch.values.outcome import Refused
from pidispatch.values.reason import Reason


class HostFacts(Value):
    """What is known of the engine and of this process."""

    #: This process runs on Linux, the engine's own system.
    linux: bool
    #: Linux inside of Windows, where Docker Desktop is the engine.
    wsl: bool
    #: The engine runs on this machine, behind a socket.
    engine_is_here: bool
    #: The engine said what it is in a form that is understood.
    readable: bool
    #: The engine's list of security options, as `docker info` gives it.
    security_options: tuple[str, ...]
    #: The engine runs in Docker Desktop's own virtual machine.
    desktop: bool
    #: Owner of the engine's socket; `None` without one.
    socket_uid: int | None
    socket_gid: int | None
    euid: int
    egid: int
    #: Owner of the job's folder.
    folder_uid: int
    folder_gid: int


def decide_user(facts: HostFacts, *, any_uid: bool) -> JobUser | Refused:
    """The job's user, or the refusal that says why there is none. `any_uid`: the image declares the capability.

    A worker that is root runs the job as the folder's owner, everyone else as themselves, so that what the agent
    writes belongs to whoever owns the folder.
    """
    if not facts.linux or not facts.engine_is_here:
        return IMAGE_USER
    if refusal := refuse_mapping(facts):
        return refusal
    root = facts.euid == 0
    uid, gid = (facts.folder_uid, facts.folder_gid) if root else (facts.euid, facts.egid)
    if uid == IMAGE_USER.uid:
        return IMAGE_USER
    if not any_uid:
        return Refused(reason=Reason.JOB_IMAGE_ANY_UID_UNSUPPORTED)
    return _worker_user(facts, uid, gid)


def refuse_mapping(facts: HostFacts) -> Refused | None:
    """What rules a user out whatever the image: how the engine maps users, and a folder of root's."""
    if not facts.linux or not facts.engine_is_here:
        return None
    if refusal := _refuse_engine(facts):
        return refusal
    if facts.euid == 0 and facts.folder_uid == 0:
        return _unmappable(
            "folder-owned-by-root",
            "the folder belongs to root, and a job never runs as root",
            "chown -R USER FOLDER, or run pi-dispatch as the user who owns it",
        )
    return None


def _refuse_engine(facts: HostFacts) -> Refused | None:
    rootless_socket = facts.socket_uid is not None and facts.socket_uid == facts.euid != 0
    options = {part for option in facts.security_options for part in option.split(",")}
    if not facts.readable:
        return _unmappable(
            "runtime-unreadable",
            "the engine does not say how it maps users",
            "check what docker info prints",
        )
    if facts.desktop and not facts.wsl:
        return _unmappable(
            "desktop-linux-userns",
            "Docker Desktop maps users of its own virtual machine",
            "use the distribution's own Docker engine",
        )
    if "name=rootless" in options or rootless_socket:
        return _unmappable(
            "rootless",
            "a rootless engine maps users, so files of a job would not belong to the folder's owner",
            "use a rootful engine",
        )
    if "name=userns" in options:
        return _unmappable(
            "userns-remap",
            "the engine remaps users, so files of a job would not belong to the folder's owner",
            "use an engine without userns-remap",
        )
    return None


def _worker_user(facts: HostFacts, uid: int, gid: int) -> JobUser | Refused:
    if gid == 0:
        return _unmappable(
            "root-group",
            "the job would run in root's group",
            "give the folder (or the account of pi-dispatch) an ordinary group",
        )
    if gid == facts.socket_gid:
        return _unmappable(
            "docker-group",
            "the job would run in the group that owns the engine's socket",
            "give the folder (or the account of pi-dispatch) another primary group",
        )
    return JobUser(uid=uid, gid=gid, explicit=True)


def _unmappable(cause: str, detail: str, remedy: str) -> Refused:
    return Refused(reason=Reason.JOB_USER_UNMAPPABLE, cause=cause, detail=detail, remedy=remedy)
