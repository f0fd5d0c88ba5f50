"""The clone of a job of a forge: what stands in it, what is never in it, and why there is none."""

import os
import stat
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from pidispatch.values.errors import ConfigError, InfraError
from pidispatch.values.limits import Limits
from pidispatch.values.outcome import Refused
from pidispatch.values.reason import Reason
from pidispatch.workspace import clone as module
from pidispatch.workspace.changes import read_change, snapshot
from pidispatch.workspace.clone import clone, give_tree
from pidispatch.workspace.dotpi import DotPi, materialise
from pidispatch.workspace.folder import open_folder
from pidispatch.workspace.git import open_host_git
from pidispatch.workspace.process import program
from tests.support.server_tls import Certificate, make_authority, make_certificate
from tests.unit.workspace.githost import PACK, TOKEN, Answer, Asked, GitHost, credential, packet, serve
from tests.unit.workspace.repository import Repository, script

ABSENT = "0123456789" * 4
#: A name that no resolver takes, so that none is asked: a label has 63 letters at most.
NO_HOST = f"https://{'x' * 64}.test/owner/name.git"


@dataclass
class Machine:
    """Where clones are made, and everything that is to be free of the token."""

    jobs: Path
    temporary: Path
    #: Every call of git: whether it had the token, and its arguments.
    calls: Path
    #: What was found where it must not be, while a call was under way.
    leaks: list[str] = field(default_factory=list)
    #: Folders of the script that hands it over.
    scripts: list[str] = field(default_factory=list)

    @property
    def workspace(self) -> Path:
        return self.jobs / "workspace"

    def look(self) -> None:
        """Look for the token in files, and in the arguments of everything that runs."""
        for root in (self.jobs, self.temporary):
            for path in root.rglob("*"):
                if path.is_file() and not path.is_symlink() and TOKEN.encode() in path.read_bytes():
                    self.leaks.append(str(path))
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                arguments = Path("/proc", pid, "cmdline").read_bytes()
            except OSError:
                continue
            if TOKEN.encode() in arguments:
                self.leaks.append(f"arguments of {pid}")
        self.scripts += [name for name in os.listdir(self.jobs) if name != "workspace"]

    def verbs(self, mark: str | None = None) -> list[str]:
        """The verbs of git's calls; with `mark`, of those that had it in their environment."""
        lines = [line.split(" ") for line in self.calls.read_text().splitlines()]
        return [words[words.index("-C") + 2] for words in lines if mark is None or mark in words[:2]]


GIT = program("git")
#: Git, with every call written down, and then what a test wants to happen after it.
_WATCHED = """echo "${GIT_ASKPASS_TOKEN+token} ${http_proxy+proxy} $*" >> %(calls)s
%(git)s "$@" || exit
%(after)s"""


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    """Folders for jobs and temporary files, and a git that is watched."""
    made = Machine(tmp_path / "jobs", tmp_path / "tmp", tmp_path / "calls")
    made.jobs.mkdir()
    made.temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(made.temporary))
    for name in (*module._NETWORK, "REQUESTS_CA_BUNDLE"):
        monkeypatch.delenv(name, raising=False)
    watch_git(made, monkeypatch)
    return made


def watch_git(machine: Machine, monkeypatch: pytest.MonkeyPatch, after: str = "") -> None:
    folder = machine.jobs.with_name("bin")
    script(folder / "git", _WATCHED % {"calls": machine.calls, "git": GIT, "after": after})
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")


def after(verb: str, then: str) -> str:
    """What happens after a call of git with this verb."""
    return f'case " $* " in *" {verb} "*) {then} ;; esac'


@pytest.fixture
def upstream(tmp_path: Path) -> Repository:
    """The repository at the forge, of two commits."""
    made = Repository(tmp_path / "forge" / "owner" / "name.git")
    made.write("a.txt", "one\n")
    made.write(".pi/skills/fix/SKILL.md", "---\nname: fix\ndescription: Mends.\n---\nMend it.\n")
    made.commit(message="first")
    made.write("a.txt", "two\n")
    made.commit(message="second")
    return made


@pytest.fixture
def host(upstream: Repository, machine: Machine) -> Iterator[GitHost]:
    """The forge, which looks for the token whenever it is asked."""
    with serve(upstream.path.parent.parent) as made:

        def look(_: Asked) -> None:
            machine.look()

        made.fault = look
        yield made


def at(host: GitHost) -> str:
    return f"{host.url}/owner/name.git"


def head(repository: Repository, name: str = "HEAD") -> str:
    return repository.git("rev-parse", name)


def inside(workspace: Path, *arguments: str) -> str:
    """Git as the agent has it."""
    done = subprocess.run(["git", "-C", str(workspace), *arguments], capture_output=True, text=True, check=True)
    return done.stdout.rstrip("\n")


def test_the_clone_stands_at_the_commit_with_its_files(host: GitHost, upstream: Repository, machine: Machine) -> None:
    sha = head(upstream)
    assert clone(at(host), sha, machine.workspace, TOKEN, Limits()) is None
    workspace = machine.workspace
    assert (workspace / "a.txt").read_text() == "two\n"
    assert (workspace / ".git" / "HEAD").read_text() == f"{sha}\n"
    assert inside(workspace, "status", "--porcelain", "--branch") == "## HEAD (no branch)"
    assert inside(workspace, "rev-list", "--count", "HEAD") == "1"
    assert inside(workspace, "remote", "get-url", "origin") == at(host)
    assert stat.S_IMODE(workspace.stat().st_mode) == 0o700
    assert not (workspace / ".git" / "hooks").exists()


def test_the_agent_can_commit_in_it(host: GitHost, upstream: Repository, machine: Machine) -> None:
    clone(at(host), head(upstream), machine.workspace, TOKEN, Limits())
    inside(machine.workspace, "commit", "--quiet", "--allow-empty", "--message=mine")
    who = inside(machine.workspace, "log", "-1", "--format=%an <%ae> %cn <%ce>")
    assert who == "pi-dispatch <noreply@pi-dispatch.invalid> pi-dispatch <noreply@pi-dispatch.invalid>"


def test_a_commit_below_the_tip_can_be_cloned_too(host: GitHost, upstream: Repository, machine: Machine) -> None:
    assert clone(at(host), head(upstream, "HEAD~1"), machine.workspace, TOKEN, Limits()) is None
    assert (machine.workspace / "a.txt").read_text() == "one\n"


def test_a_repository_with_long_ids(host: GitHost, machine: Machine) -> None:
    long = Repository(host.root / "owner" / "long.git", object_format="sha256")
    long.write("a.txt")
    sha = long.commit()
    assert clone(f"{host.url}/owner/long.git", sha, machine.workspace, TOKEN, Limits()) is None
    assert (machine.workspace / ".git" / "HEAD").read_text() == f"{sha}\n"


def test_the_hosts_git_reads_the_clone_before_and_after(host: GitHost, upstream: Repository, machine: Machine) -> None:
    clone(at(host), head(upstream), machine.workspace, TOKEN, Limits())
    git = open_host_git(open_folder(machine.workspace), machine.jobs / "git", Limits())
    before = snapshot(git)
    assert not before.dirty
    brought = materialise(git, machine.jobs / "pi", lambda _: None)
    assert isinstance(brought, DotPi)
    assert brought.skills == {"fix"}
    (machine.workspace / "a.txt").write_text("three\n")
    inside(machine.workspace, "commit", "--quiet", "--all", "--message=mine")
    change, diff = read_change(git, before)
    assert (change.changed, change.commits, [file.path for file in change.files]) == (True, 1, ["a.txt"])
    assert diff is not None
    assert "+three" in diff


# What the token is told to.


def gone(host: GitHost, upstream: Repository) -> tuple[str, str]:
    return at(host), ABSENT


def unresolved(host: GitHost, upstream: Repository) -> tuple[str, str]:
    return NO_HOST, head(upstream)


def cloned(host: GitHost, upstream: Repository) -> tuple[str, str]:
    return at(host), head(upstream)


def broken(host: GitHost, upstream: Repository) -> tuple[str, str]:
    fail_with(host, Answer(502))
    return cloned(host, upstream)


def denied(host: GitHost, upstream: Repository) -> tuple[str, str]:
    fail_with(host, Answer(401, {"WWW-Authenticate": 'Basic realm="git"'}))
    return cloned(host, upstream)


def absent(host: GitHost, upstream: Repository) -> tuple[str, str]:
    return f"{host.url}/owner/other.git", head(upstream)


def fail_with(host: GitHost, answer: Answer) -> None:
    look = host.fault

    def fault(asked: Asked) -> Answer:
        look(asked)
        return answer

    host.fault = fault


def end_of(url: str, sha: str, workspace: Path) -> tuple[str | None, str]:
    """What came of a clone, and the words that it has for it."""
    try:
        done = clone(url, sha, workspace, TOKEN, Limits())
    except InfraError as error:
        return error.cause, error.message
    return (done.reason, str(done.detail)) if done is not None else (None, "")


Prepared = Callable[[GitHost, Repository], tuple[str, str]]


@pytest.mark.example("ch3 E14", "a commit that is gone is a refusal; a name that does not resolve is tried again")
@pytest.mark.parametrize(
    ("prepared", "cause"),
    [
        (cloned, None),
        (gone, Reason.SHA_GONE),
        (unresolved, "clone-failed"),
        (broken, "clone-failed"),
        (denied, "clone-failed"),
        (absent, "clone-failed"),
    ],
)
def test_whatever_comes_of_it_the_token_was_nowhere_but_with_one_call(
    prepared: Prepared, cause: str | None, host: GitHost, upstream: Repository, machine: Machine
) -> None:
    url, sha = prepared(host, upstream)
    ended, said = end_of(url, sha, machine.workspace)
    assert ended == cause
    assert TOKEN not in said
    machine.look()
    assert machine.leaks == []
    assert os.listdir(machine.temporary) == []
    assert set(os.listdir(machine.jobs)) <= {"workspace"}
    assert machine.verbs("token") == ["fetch"]
    assert bool(machine.scripts) == (prepared is not unresolved)
    assert all(name.startswith("pi-askpass-") for name in machine.scripts)
    assert {asked.authorization for asked in host.asked} <= {None, credential()}


@pytest.mark.example("ch3 E14", "the words of a server that does not have the commit any more")
@pytest.mark.parametrize("words", module._GONE)
def test_whatever_words_a_gone_commit_has_it_is_refused(
    words: str, host: GitHost, upstream: Repository, machine: Machine
) -> None:
    said = packet("# service=git-upload-pack\n") + b"0000" + packet(f"ERR upload-pack: {words.upper()} {ABSENT}\n")
    fail_with(host, Answer(200, {"Content-Type": PACK}, said))
    done = clone(at(host), head(upstream), machine.workspace, TOKEN, Limits())
    assert isinstance(done, Refused)
    assert done.reason is Reason.SHA_GONE
    assert head(upstream)[:12] in str(done.detail)


def test_what_a_server_says_is_repeated_without_the_token(
    host: GitHost, upstream: Repository, machine: Machine
) -> None:
    secret = credential().removeprefix("Basic ")
    said = packet("# service=git-upload-pack\n") + b"0000" + packet(f"ERR not for {TOKEN}, sent as {secret}\n")
    fail_with(host, Answer(200, {"Content-Type": PACK}, said))
    with pytest.raises(InfraError) as caught:
        clone(at(host), head(upstream), machine.workspace, TOKEN, Limits())
    assert "not for [redacted], sent as [redacted]" in caught.value.message


def test_a_server_that_points_elsewhere_is_not_followed(
    host: GitHost, upstream: Repository, machine: Machine, tmp_path: Path
) -> None:
    with serve(tmp_path) as other:
        fail_with(host, Answer(302, {"Location": f"{other.url}/owner/name.git/info/refs?service=git-upload-pack"}))
        with pytest.raises(InfraError) as caught:
            clone(at(host), head(upstream), machine.workspace, TOKEN, Limits())
        assert other.asked == []
    assert caught.value.cause == "clone-failed"


def test_a_proxy_of_the_machines_is_used_for_the_network_alone(
    host: GitHost, upstream: Repository, machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", host.url)
    assert clone("http://git.test/owner/name.git", head(upstream), machine.workspace, TOKEN, Limits()) is None
    assert all(asked.path.startswith("http://git.test/") for asked in host.asked)
    assert machine.verbs("proxy") == ["fetch"]
    assert machine.verbs() == ["init", "remote", "fetch", "checkout"]


def test_a_proxy_that_wants_a_credential_is_told_none(
    host: GitHost, upstream: Repository, machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", host.url)
    fail_with(host, Answer(407, {"Proxy-Authenticate": 'Basic realm="proxy"'}))
    with pytest.raises(InfraError) as caught:
        clone("http://git.test/owner/name.git", head(upstream), machine.workspace, TOKEN, Limits())
    assert caught.value.cause == "clone-failed"
    assert host.asked
    assert not any({"proxy-authorization", "authorization"} & set(asked.headers) for asked in host.asked)


def test_a_host_that_needs_no_proxy_is_reached_without(
    host: GitHost, upstream: Repository, machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    assert clone(at(host), head(upstream), machine.workspace, TOKEN, Limits()) is None


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> tuple[Certificate, Certificate]:
    """An authority that nobody knows, and a certificate of it for this machine."""
    folder = tmp_path_factory.mktemp("tls")
    made = make_authority(folder)
    return made, make_certificate(folder, made, "server", "IP:127.0.0.1")


@pytest.mark.parametrize("variable", ["GIT_SSL_CAINFO", "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", None])
def test_an_authority_that_this_machine_trusts_is_trusted(
    variable: str | None,
    upstream: Repository,
    machine: Machine,
    authority: tuple[Certificate, Certificate],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ca, server = authority
    if variable is not None:
        monkeypatch.setenv(variable, str(ca.cert))
    with serve(upstream.path.parent.parent, server) as host:
        if variable is not None:
            assert clone(at(host), head(upstream), machine.workspace, TOKEN, Limits()) is None
            return
        with pytest.raises(InfraError) as caught:
            clone(at(host), head(upstream), machine.workspace, TOKEN, Limits())
        assert caught.value.cause == "clone-failed"
        assert host.asked == []


# What a repository, or an account, would have git do.


def test_nothing_that_the_repository_names_is_run(host: GitHost, upstream: Repository, machine: Machine) -> None:
    upstream.write(".gitattributes", "* filter=evil diff=evil\n")
    upstream.write(
        ".gitmodules", '[submodule "sub"]\n\tpath = sub\n\turl = https://127.0.0.1:1/x\n\tupdate = !touch x\n'
    )
    (upstream.path / "link").symlink_to("/etc/passwd")
    upstream.git("update-index", "--add", "--cacheinfo", f"160000,{head(upstream)},sub")
    upstream.git("add", ".gitattributes", ".gitmodules", "link")
    upstream.git("commit", "--quiet", "--message=hostile")
    assert clone(at(host), head(upstream), machine.workspace, TOKEN, Limits()) is None
    assert os.readlink(machine.workspace / "link") == "/etc/passwd"
    assert os.listdir(machine.workspace / "sub") == []
    assert not (machine.workspace / ".git" / "modules").exists()


def test_nothing_of_the_accounts_own_configuration_counts(
    host: GitHost, upstream: Repository, machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fired = tmp_path / "fired"
    template = script(tmp_path / "template" / "hooks" / "post-checkout", f"touch {fired}")
    lines = [
        f'[url "http://127.0.0.1:1/"]\n\tinsteadOf = {host.url}/',
        f'[credential]\n\thelper = "!touch {fired}"',
        f"[init]\n\ttemplateDir = {template.parent.parent}",
    ]
    (tmp_path / ".gitconfig").write_text("\n".join(lines) + "\n")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("GIT_TEMPLATE_DIR", str(template.parent.parent))
    assert clone(at(host), head(upstream), machine.workspace, TOKEN, Limits()) is None
    assert not fired.exists()


def test_another_commit_than_the_one_asked_for_is_not_checked_out(
    host: GitHost, upstream: Repository, machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = f"{head(upstream, 'HEAD~1')}\t\t{head(upstream)}"
    watch_git(machine, monkeypatch, after("fetch", f'echo "{other}" >{machine.workspace}/.git/FETCH_HEAD'))
    with pytest.raises(InfraError) as caught:
        clone(at(host), head(upstream), machine.workspace, TOKEN, Limits())
    assert caught.value.cause == "clone-failed"
    assert os.listdir(machine.workspace) == [".git"]


# What ends it.


_HELD_S = 60.0


@pytest.fixture
def held(host: GitHost) -> Iterator[threading.Event]:
    """Set once the forge was asked, which then does not answer before the test ends."""
    asked, over = threading.Event(), threading.Event()

    def hold(_: Asked) -> None:
        asked.set()
        over.wait(_HELD_S)

    host.fault = hold
    yield asked
    over.set()


def test_it_ends_when_it_is_told(host: GitHost, upstream: Repository, machine: Machine, held: threading.Event) -> None:
    # It is told by the very request that it waits for.
    with pytest.raises(InfraError) as caught:
        clone(at(host), head(upstream), machine.workspace, TOKEN, Limits(), held)
    assert caught.value.cause == "stopped"
    assert held.is_set()
    assert os.listdir(machine.temporary) == []


@pytest.mark.usefixtures("held")
def test_it_ends_when_it_takes_too_long(host: GitHost, upstream: Repository, machine: Machine) -> None:
    begun = time.monotonic()
    with pytest.raises(InfraError) as caught:
        clone(at(host), head(upstream), machine.workspace, TOKEN, Limits(clone_timeout_s=0.5))
    assert caught.value.cause == "timeout"
    # The forge would have answered by then.
    assert time.monotonic() - begun < _HELD_S
    assert "0.5 s" in caught.value.message
    assert os.listdir(machine.temporary) == []


@pytest.mark.parametrize(
    "url",
    [
        "",
        "github.com/owner/name",
        "ssh://github.com/owner/name",
        "file:///owner/name",
        "ext::sh -c true",
        f"https://x-access-token:{TOKEN}@github.com/owner/name",
        "https://github.com",
        "https:///owner/name",
        "https://github.com/owner/na me",
        "https://github.com/owner/name\n",
        "--upload-pack=touch x",
    ],
)
def test_an_address_that_is_none_is_refused_and_not_repeated(url: str, machine: Machine) -> None:
    with pytest.raises(ConfigError) as caught:
        clone(url, ABSENT, machine.workspace, TOKEN, Limits())
    assert caught.value.cause == "clone-url"
    assert "owner" not in caught.value.message
    assert not machine.workspace.exists()


@pytest.mark.parametrize("sha", ["", "main", "HEAD", "--upload-pack=touch x", "A" * 40, "0" * 41, f"{'0' * 39}\n"])
def test_what_is_no_commit_is_not_handed_to_git(sha: str, machine: Machine) -> None:
    with pytest.raises(InfraError) as caught:
        clone("https://github.com/owner/name", sha, machine.workspace, TOKEN, Limits())
    assert caught.value.cause == "clone-failed"
    assert not machine.workspace.exists()


def test_a_workspace_that_is_there_already_is_a_fault(machine: Machine) -> None:
    machine.workspace.mkdir()
    with pytest.raises(InfraError) as caught:
        clone("https://github.com/owner/name", ABSENT, machine.workspace, TOKEN, Limits())
    assert caught.value.cause == "job-dir"
    assert str(machine.jobs) not in caught.value.message


@pytest.mark.parametrize("verb", ["init", "remote", "checkout"])
def test_git_that_fails_on_this_machine_is_a_fault(
    verb: str, host: GitHost, upstream: Repository, machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    watch_git(machine, monkeypatch, after(verb, "echo no room >&2; exit 9"))
    with pytest.raises(InfraError) as caught:
        clone(at(host), head(upstream), machine.workspace, TOKEN, Limits())
    assert (caught.value.cause, "exit 9: no room" in caught.value.message) == ("clone-failed", True)
    assert machine.verbs()[-1] == verb


def test_a_git_that_is_not_installed_is_a_fault(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(InfraError) as caught:
        clone("https://github.com/owner/name", ABSENT, machine.workspace, TOKEN, Limits())
    assert caught.value.cause == "no-git"


def test_a_workspace_that_cannot_be_written_is_a_fault(
    host: GitHost, upstream: Repository, machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = machine.workspace / ".git" / "config"
    watch_git(machine, monkeypatch, after("checkout", f"rm {config}; mkdir {config}"))
    with pytest.raises(InfraError) as caught:
        clone(at(host), head(upstream), machine.workspace, TOKEN, Limits())
    assert caught.value.cause == "job-dir"


# Whose it is.


def test_root_hands_over_everything_and_follows_no_link(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tree = Repository(tmp_path / "tree")
    tree.write("a/b/c.txt")
    (tree.path / "link").symlink_to(tmp_path / "outside")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "file").touch()
    owner = (1234, 5678) if os.geteuid() == 0 else (os.getuid(), os.getgid())
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    give_tree(tree.path, owner)
    for path in (tree.path, *tree.path.rglob("*")):
        facts = path.lstat()
        assert (facts.st_uid, facts.st_gid) == owner, path
    for path in (tmp_path / "outside", tmp_path / "outside" / "file"):
        assert path.stat().st_uid == os.getuid()


def test_anyone_else_hands_over_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    (tmp_path / "workspace").mkdir()
    give_tree(tmp_path / "workspace", (1234, 5678))
    assert (tmp_path / "workspace").stat().st_uid == os.getuid()


def test_a_clone_that_cannot_be_handed_over_is_a_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    with pytest.raises(InfraError) as caught:
        give_tree(tmp_path / "absent", (1234, 5678))
    assert caught.value.cause == "job-dir"
    assert "No such file" in caught.value.message
