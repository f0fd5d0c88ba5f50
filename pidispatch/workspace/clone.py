"""The workspace of a job of a forge: a fresh clone of one commit, without a history and without a credential in it.

Nothing of the repository is run: no hooks, no filters, no submodules, and no protocol but the one of the address.
"""

import base64
import os
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from pidispatch.config.text import scrub
from pidispatch.values.errors import ConfigError, InfraError
from pidispatch.values.limits import Limits
from pidispatch.values.outcome import Refused
from pidispatch.values.reason import Reason
from pidispatch.workspace.askpass import USER, askpass
from pidispatch.workspace.dirfd import read_file
from pidispatch.workspace.git import git_environment
from pidispatch.workspace.process import Finished, Stop, program, run_program, search_path

_ADDRESS: Final = re.compile(r"(?P<origin>(?P<scheme>https?)://[A-Za-z0-9.:\[\]-]+)/[!-~]+")
#: The digits of a commit's id, and what git calls a repository with such ids.
_FORMATS: Final = {40: "sha1", 64: "sha256"}
_DIGITS: Final = re.compile(r"[0-9a-f]+")
#: What git, or the server that it repeats, says of a commit that is not there any more.
_GONE: Final = (
    "couldn't find remote ref",
    "not our ref",
    "unadvertised object",
    "did not send all necessary objects",
    "reference is not a tree",
)
#: How this machine reaches the forge: of the program's own environment, for the one call that uses the network.
_NETWORK: Final = (
    "https_proxy",
    "HTTPS_PROXY",
    "http_proxy",
    "all_proxy",
    "ALL_PROXY",
    "no_proxy",
    "NO_PROXY",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "GIT_SSL_CAINFO",
    "GIT_SSL_CAPATH",
)
#: What others call the authorities that git is to trust; git itself reads its own names alone, one of them for a file
#: and one for a folder.
#: https://git-scm.com/docs/git-config#Documentation/git-config.txt-httpsslCAInfo
_AUTHORITIES: Final = {
    "GIT_SSL_CAINFO": ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE"),
    "GIT_SSL_CAPATH": ("SSL_CERT_DIR", "REQUESTS_CA_BUNDLE"),
}
#: Whose work the agent's commits are, unless it says otherwise; the name ends in a domain that can never be.
_IDENTITY: Final = "[user]\n\tname = pi-dispatch\n\temail = noreply@pi-dispatch.invalid\n"
_FETCH_HEAD_BYTES: Final = 64 * 1024
#: Seconds that it may take to hand over a clone.
_GIVE_S: Final = 300.0


def clone(url: str, sha: str, workspace: Path, token: str, limits: Limits, stop: Stop | None = None) -> Refused | None:
    """Make `workspace` (must not exist) a clone of the repository at `url` that stands at the commit `sha`.

    It lies in the job's directory, of which what is beside it never enters the box. `url` holds no credential, and
    afterwards nothing in the clone does. A commit that is gone is refused. Raises `ConfigError` (cause `clone-url`) for
    an address that cannot be cloned from; else `InfraError`: `clone-failed`, `timeout` after `limits.clone_timeout_s`
    seconds, `stopped` once `stop` is set.
    """
    address = _ADDRESS.fullmatch(url)
    if address is None:
        raise ConfigError(
            "the repository's address is none to clone from. It begins with https://, has a host and a path, and no "
            "user; check GITHUB_URL",
            "clone-url",
        )
    if len(sha) not in _FORMATS or not _DIGITS.fullmatch(sha):
        raise InfraError("the forge named no commit to clone; try again", "clone-failed")
    _make(workspace)
    git = _Git(workspace, address["scheme"], limits, stop, token)
    git.checked("init", "--quiet", "--template=", "--initial-branch=main", f"--object-format={_FORMATS[len(sha)]}")
    git.checked("remote", "add", "origin", url)
    with askpass(address["origin"], token, workspace.parent) as answers:
        fetch = ("fetch", "--quiet", "--depth=1", "--no-tags", "--no-recurse-submodules", "origin", sha)
        done = git.call(*fetch, env={**_network(), **answers})
    if done.code == 0:
        _check_arrived(workspace, sha)
        done = git.call("checkout", "--quiet", "--detach", "FETCH_HEAD")
    if done.code != 0:
        said = done.error_text.lower()
        if any(words in said for words in _GONE):
            return Refused(reason=Reason.SHA_GONE, detail=f"the commit {sha[:12]} is not at the forge any more")
        raise git.failed(done)
    _identify(workspace)
    return None


def give_tree(workspace: Path, owner: tuple[int, int]) -> None:
    """Hand `workspace` and everything below it to the job's user; only root can, and anyone else is that user.

    No link is followed. Raises `InfraError`.
    """
    if os.geteuid() != 0:
        return
    # A program that knows no depth: a repository may nest folders as deep as a path can be long.
    argv = [program("chown"), "-R", "-h", "-P", "--", f"{owner[0]}:{owner[1]}", str(workspace)]
    done = run_program(
        argv,
        env={"PATH": search_path(), "LC_ALL": "C"},
        cwd=Path("/"),
        timeout_s=_GIVE_S,
        max_bytes=4096,
    )
    if done.code != 0:
        said = scrub(done.error_text.strip().rpartition("\n")[2])
        raise InfraError(f"the clone cannot be handed to the job's user ({said}). Check PI_JOBS_DIR", "job-dir")


@dataclass(frozen=True)
class _Git:
    """Git in the clone, all calls together within the time that a clone may take."""

    workspace: Path
    #: The one protocol that may be used.
    scheme: str
    limits: Limits
    stop: Stop | None
    token: str = field(repr=False)
    begun: float = field(default_factory=time.monotonic)

    def call(self, *arguments: str, env: Mapping[str, str] | None = None) -> Finished:
        """One call, with `env` beside the closed environment. Raises `InfraError` where it comes to no end."""
        settings = (
            "core.hooksPath=/dev/null",
            "core.fsmonitor=false",
            "credential.helper=",
            "protocol.allow=never",
            f"protocol.{self.scheme}.allow=always",
            # The token is for this host, and not for one that it points to.
            "http.followRedirects=false",
            # Nothing goes on in the clone after its call.
            "gc.auto=0",
            "maintenance.auto=false",
        )
        options = [part for setting in settings for part in ("-c", setting)]
        left = self.begun + self.limits.clone_timeout_s - time.monotonic()
        try:
            return run_program(
                [program("git"), "--no-pager", *options, "-C", str(self.workspace), *arguments],
                env={**git_environment(), **(env or {})},
                cwd=Path("/"),
                timeout_s=left,
                max_bytes=self.limits.git_output_bytes,
                stop=self.stop,
            )
        except InfraError as error:
            if error.cause != "timeout":
                raise
            most = self.limits.clone_timeout_s
            raise InfraError(f"the clone did not come to its end within {most:g} s; try again", "timeout") from None

    def checked(self, *arguments: str) -> None:
        """One call that must succeed. Raises `InfraError`."""
        if (done := self.call(*arguments)).code != 0:
            raise self.failed(done)

    def failed(self, done: Finished) -> InfraError:
        """Why the clone failed, in git's own last words, which repeat what a server said."""
        said = done.error_text.strip().rpartition("\n")[2]
        for secret in (self.token, base64.b64encode(f"{USER}:{self.token}".encode()).decode()):
            said = said.replace(secret, "[redacted]")
        return InfraError(f"the repository cannot be cloned (exit {done.code}: {scrub(said)})", "clone-failed")


def _make(workspace: Path) -> None:
    try:
        workspace.mkdir(mode=0o700)
    except OSError as error:
        raise InfraError(f"the job's workspace cannot be made: {error.strerror}", "job-dir") from None


def _check_arrived(workspace: Path, sha: str) -> None:
    """Raise `InfraError` where another commit came than the one asked for."""
    # Its first word: https://git-scm.com/docs/git-fetch, "Description".
    told = read_file(None, str(workspace / ".git" / "FETCH_HEAD"), _FETCH_HEAD_BYTES) or b""
    if told.split()[:1] != [sha.encode()]:
        raise InfraError("the forge sent another commit than the one asked for; try again", "clone-failed")


def _identify(workspace: Path) -> None:
    try:
        with open(workspace / ".git" / "config", "a", encoding="utf-8") as file:
            file.write(_IDENTITY)
    except OSError as error:
        raise InfraError(f"the job's workspace cannot be written: {error.strerror}", "job-dir") from None


def _network() -> dict[str, str]:
    """What of this program's environment says how the forge is reached."""
    found = {name: value for name in _NETWORK if (value := os.environ.get(name))}
    for name, others in _AUTHORITIES.items():
        for other in others:
            value = os.environ.get(other)
            if value and os.path.isdir(value) == (name == "GIT_SSL_CAPATH"):
                found.setdefault(name, value)
    return found
