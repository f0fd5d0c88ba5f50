"""After the guard the owner's own git runs nothing that an agent planted; without it, each of these traps springs."""

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from pidispatch.workspace.folder import open_folder
from pidispatch.workspace.guard import put_back, take_notes
from tests.support.terminal import as_user
from tests.support.traps import (
    COMMONDIR,
    DEAD,
    DIFFS,
    FILTERS,
    GITFILE,
    MODULES,
    NESTED,
    PROGRAMS,
    PROMISORS,
    Trap,
    planting,
    spring,
    taken,
)
from tests.unit.workspace.repository import Repository, script

Plant = Callable[[Repository, Path, Path], None]


@dataclass(frozen=True)
class Planted:
    """How to plant it, given the repository, the program that leaves its mark, and a scratch folder."""

    name: str
    plant: Plant
    #: What the owner types to spring it.
    spring: str


def _config(key: str, value: str = "{program}") -> Plant:
    def plant(repository: Repository, program: Path, _scratch: Path) -> None:
        repository.git("config", key, value.format(program=program))

    return plant


def _merge_driver(repository: Repository, program: Path, _scratch: Path) -> None:
    repository.git("config", "merge.evil.driver", f"{program}; exit 1")
    repository.write(".git/info/attributes", "* merge=evil\n")


def _hook(name: str, git_dir: str = ".git") -> Plant:
    def plant(repository: Repository, program: Path, _scratch: Path) -> None:
        shutil.copy(program, repository.path / git_dir / "hooks" / name)

    return plant


def _executable_bit(repository: Repository, program: Path, _scratch: Path) -> None:
    hook = repository.path / ".git/hooks/post-commit"
    hook.chmod(0o755)
    # The owner's own hook, which it had switched off, is its mark.
    assert hook.read_text() == program.read_text()


def _hook_by_link(repository: Repository, program: Path, _scratch: Path) -> None:
    hooks = repository.path / ".git/hooks"
    shutil.rmtree(hooks)
    shutil.copytree(program.parent, repository.path / "tools")
    (repository.path / "tools/program").rename(repository.path / "tools/post-commit")
    hooks.symlink_to("../tools")


def _git_by_link(repository: Repository, program: Path, _scratch: Path) -> None:
    repository.git("config", "core.fsmonitor", str(program))
    (repository.path / ".git").rename(repository.path / "moved")
    (repository.path / ".git").symlink_to("moved")


def _config_by_link(repository: Repository, program: Path, _scratch: Path) -> None:
    repository.git("config", "core.fsmonitor", str(program))
    (repository.path / ".git/config").rename(repository.path / "settings")
    (repository.path / ".git/config").symlink_to("../settings")


def _legacy_remote(repository: Repository, program: Path, _scratch: Path) -> None:
    repository.write(".git/remotes/theirs", f"URL: ext::{program}\n")


def _submodule_config(repository: Repository, program: Path, _scratch: Path) -> None:
    repository.git("config", "--file=.git/modules/lib/config", "core.fsmonitor", str(program))


def _new_submodule(repository: Repository, program: Path, scratch: Path) -> None:
    library = str(scratch / "library")
    repository.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", library, "second")
    repository.git("submodule", "--quiet", "deinit", "-f", "second")
    _hook("post-checkout", ".git/modules/second")(repository, program, scratch)


_COMMIT = "git commit -q --allow-empty -m x"
_ASK = "echo url=https://x.test | git credential fill"
PLANTED = (
    Planted("hook-post-checkout", _hook("post-checkout"), "git checkout -q -b other"),
    Planted("hook-pre-commit", _hook("pre-commit"), _COMMIT),
    Planted("hook-post-index-change", _hook("post-index-change"), "git add -A"),
    Planted("hook-reference-transaction", _hook("reference-transaction"), "git branch x"),
    Planted("hook-executable-bit", _executable_bit, _COMMIT),
    Planted("hook-by-link", _hook_by_link, _COMMIT),
    Planted("ask-for-a-password", _config("core.askPass"), _ASK),
    Planted("ssh-command", _config("core.sshCommand"), "git ls-remote ssh://x.test/y"),
    Planted("receive-pack", _config("remote.origin.receivepack"), "git push origin main"),
    Planted("merge-driver", _merge_driver, "git checkout -q a.txt; git merge -q theirs"),
    Planted("remote-of-old", _legacy_remote, "git fetch theirs"),
    Planted("git-link", _git_by_link, "git status"),
    Planted("config-by-link", _config_by_link, "git status"),
    Planted("submodule-hook", _hook("post-checkout", ".git/modules/lib"), "git -C lib checkout -q -b x"),
    Planted("submodule-config", _submodule_config, "git status"),
    Planted("submodule-of-the-agents", _new_submodule, "git submodule update -q --init second"),
)
#: What an owner types after a run.
EVERYDAY = ("git status", "git diff", "git add -A", "git commit -q -m mine", "git log -p", "git checkout -q -b b")


#: What host git steps over.
TRAPS = (*DEAD, *NESTED, *FILTERS, *DIFFS, *PROMISORS, *PROGRAMS, COMMONDIR, MODULES, GITFILE)


@dataclass(frozen=True)
class Project:
    """An owner's project with all that traps need: a submodule, a remote, another branch, a hook switched off."""

    repository: Repository
    #: Leaves `mark` when it is run.
    program: Path
    mark: Path
    scratch: Path
    #: The owner's own configuration.
    config: Path

    def types(self, command: str, folder: Path | None = None) -> None:
        """A command of the owner's, whether it succeeds or not."""
        as_user(folder or self.repository.path, command, {"GIT_CONFIG_GLOBAL": str(self.config)})


@pytest.fixture
def project(repository: Repository, tmp_path: Path) -> Project:
    scratch, mark, config = tmp_path / "scratch", tmp_path / "mark", tmp_path / "gitconfig"
    config.write_text("[user]\n\tname = o\n\temail = o@example.test\n[protocol]\n\tallow = always\n")
    library = Repository(scratch / "library")
    library.commit()
    program = script(scratch / "bin" / "program", f"touch {mark}")
    repository.git("checkout", "-q", "-b", "theirs")
    repository.write("a.txt", "one\ntheirs\n")
    repository.commit()
    repository.git("checkout", "-q", "main")
    repository.write("a.txt", "one\nours\n")
    repository.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(library.path), "lib")
    repository.commit()
    repository.git("remote", "add", "origin", str(library.path))
    hook = repository.path / ".git/hooks/post-commit"
    shutil.copy(program, hook)
    hook.chmod(0o644)
    return Project(repository, program, mark, scratch, config)


@pytest.mark.parametrize("planted", PLANTED, ids=lambda planted: planted.name)
def test_the_owners_git_runs_nothing_of_the_agents(planted: Planted, project: Project, tmp_path: Path) -> None:
    folder = project.repository.path
    take_notes(open_folder(folder), tmp_path / "notes")
    planted.plant(project.repository, project.program, project.scratch)
    (folder / "a.txt").write_text("one\ntwo\nthree\n")
    project.mark.unlink(missing_ok=True)
    shutil.copytree(folder, tmp_path / "unguarded", symlinks=True)
    project.types(planted.spring, tmp_path / "unguarded")
    assert project.mark.exists(), "the trap would not have sprung for anyone"
    project.mark.unlink()
    assert put_back(folder, tmp_path / "notes", tmp_path / "kept")
    for command in (*EVERYDAY, planted.spring):
        project.types(command)
    assert not project.mark.exists()
    assert project.repository.git("log", "-1", "--format=%s", "main^{/mine}") == "mine"


@pytest.mark.parametrize("trap", TRAPS, ids=lambda t: t.name)
def test_what_host_git_steps_over_the_owners_git_does_not_meet(
    trap: Trap, repository: Repository, tmp_path: Path
) -> None:
    marks = tmp_path / "marks"
    marks.mkdir()
    as_user(repository.path, planting([trap], repository.path, marks, "a.txt", ["tree"]), check=True)
    take_notes(open_folder(repository.path), tmp_path / "notes")
    as_user(repository.path, planting([trap], repository.path, marks, "a.txt", ["plant"]), check=True)
    shutil.copytree(repository.path, tmp_path / "unguarded", symlinks=True)
    taken(marks / trap.name)
    assert spring(trap, tmp_path / "unguarded", marks, "a.txt"), "the trap would not have sprung for anyone"
    names = put_back(repository.path, tmp_path / "notes", tmp_path / "kept")
    assert set(trap.guarded) <= set(names)
    assert not spring(trap, repository.path, marks, "a.txt")
    for command in EVERYDAY:
        as_user(repository.path, command)
    assert not taken(marks / trap.name)


def test_what_the_agent_committed_is_there_for_the_owner(project: Project, tmp_path: Path) -> None:
    take_notes(open_folder(project.repository.path), tmp_path / "notes")
    project.repository.git("config", "user.email", "agent@example.test")
    project.repository.git("checkout", "-q", "-b", "work")
    project.repository.write("new.txt")
    sha = project.repository.commit(message="the agent's")
    assert put_back(project.repository.path, tmp_path / "notes", tmp_path / "kept") == (".git/config",)
    assert project.repository.git("rev-parse", "work") == sha
    assert project.repository.git("status", "--porcelain") == ""
    assert project.repository.git("config", "--get", "user.email", check=False) == ""
    assert "agent@example.test" in (tmp_path / "kept/.git/config").read_text()
