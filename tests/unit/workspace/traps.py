"""Ways in which an agent can make the next git call in its folder run a program: each one plants a canary.

Every trap comes with the plain git calls that spring it, so that a test can tell a trap that was stepped over from one
that never worked.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.unit.workspace.repository import Repository, script

_DIFF = ("diff", "HEAD")
_STATUS = ("status",)


@dataclass(frozen=True)
class Trap:
    """How to plant it, given the repository, the command that makes the canary, and a scratch folder."""

    name: str
    plant: Callable[[Repository, str, Path], None]
    #: Plain git calls in the folder that spring it.
    springs: Sequence[tuple[str, ...]] = (_DIFF,)
    #: The trap takes away an object, so reading the folder may fail as long as nothing is run.
    may_fail: bool = False


def _driver(key: str, attribute: str, tail: str) -> Callable[[Repository, str, Path], None]:
    def plant(repository: Repository, command: str, _scratch: Path) -> None:
        repository.git("config", key, f"{command}; {tail}")
        repository.write(".gitattributes", f"* {attribute}\n")

    return plant


def _info_attributes(repository: Repository, command: str, _scratch: Path) -> None:
    repository.git("config", "filter.evil.clean", f"{command}; cat")
    repository.write(".git/info/attributes", "* filter=evil\n")


def _config_only(key: str, tail: str = "") -> Callable[[Repository, str, Path], None]:
    def plant(repository: Repository, command: str, scratch: Path) -> None:
        program = script(scratch / "program", f"{command}\n{tail}")
        repository.git("config", key, str(program))

    return plant


def _hooks(repository: Repository, command: str, _scratch: Path) -> None:
    for hook in ("post-index-change", "reference-transaction", "pre-commit", "post-checkout", "fsmonitor-watchman"):
        script(repository.path / ".git" / "hooks" / hook, command)


def _hooks_path(repository: Repository, command: str, scratch: Path) -> None:
    for hook in ("post-index-change", "reference-transaction", "pre-commit"):
        script(scratch / "hooks" / hook, command)
    repository.git("config", "core.hooksPath", str(scratch / "hooks"))


def _include(key: str) -> Callable[[Repository, str, Path], None]:
    def plant(repository: Repository, command: str, scratch: Path) -> None:
        (scratch / "included").write_text(f'[filter "evil"]\n\tclean = "{command}; cat"\n')
        repository.git("config", key, str(scratch / "included"))
        repository.write(".gitattributes", "* filter=evil\n")

    return plant


def _worktree_config(repository: Repository, command: str, _scratch: Path) -> None:
    repository.git("config", "extensions.worktreeConfig", "true")
    repository.git("config", "--worktree", "filter.evil.clean", f"{command}; cat")
    repository.write(".gitattributes", "* filter=evil\n")


def _promisor(missing: str) -> Callable[[Repository, str, Path], None]:
    """A partial clone whose missing object git would fetch by a command of the folder's choice."""

    def plant(repository: Repository, command: str, scratch: Path) -> None:
        script(scratch / "ssh", f"{command}\nexit 1")
        object_id = repository.git("rev-parse", missing)
        for key, value in {
            "core.repositoryFormatVersion": "1",
            "extensions.partialClone": "origin",
            "remote.origin.url": "ssh://model.test/repository",
            "remote.origin.promisor": "true",
            "remote.origin.partialCloneFilter": "blob:none",
            "core.sshCommand": str(scratch / "ssh"),
            "protocol.allow": "always",
        }.items():
            repository.git("config", key, value)
        (repository.path / ".git" / "objects" / object_id[:2] / object_id[2:]).unlink()

    return plant


def _armed_repository(path: Path, command: str, scratch: Path) -> None:
    nested = Repository(path)
    nested.write("tracked")
    nested.commit()
    nested.git("config", "core.fsmonitor", str(script(scratch / "monitor", command)))
    nested.write("tracked", "changed in the nested repository\n")


def _nested(repository: Repository, command: str, scratch: Path) -> None:
    _armed_repository(repository.path / "nested", command, scratch)


def _nested_for_a_file(repository: Repository, command: str, scratch: Path) -> None:
    (repository.path / "b.txt").unlink()
    _armed_repository(repository.path / "b.txt", command, scratch)


def _nested_staged(repository: Repository, command: str, scratch: Path) -> None:
    _nested(repository, command, scratch)
    repository.git("add", "nested")


def _nested_committed(repository: Repository, command: str, scratch: Path) -> None:
    _nested(repository, command, scratch)
    repository.commit()


TRAPS = (
    Trap("filter-clean", _driver("filter.evil.clean", "filter=evil", "cat")),
    Trap("filter-process", _driver("filter.evil.process", "filter=evil", "exit 1")),
    Trap("filter-lfs-lookalike", _driver("filter.lfs.clean", "filter=lfs", "cat")),
    Trap("filter-lfs-process", _driver("filter.lfs.process", "filter=lfs", "exit 1")),
    Trap("filter-by-info-attributes", _info_attributes),
    Trap("diff-external", _config_only("diff.external")),
    Trap("diff-driver", _driver("diff.evil.command", "diff=evil", "exit 0")),
    Trap("diff-textconv", _driver("diff.evil.textconv", "diff=evil", "cat")),
    Trap("fsmonitor", _config_only("core.fsmonitor"), springs=(_STATUS,)),
    Trap("hooks", _hooks, springs=(("commit", "--allow-empty", "-qm", "x"),)),
    Trap("hooks-path", _hooks_path, springs=(("commit", "--allow-empty", "-qm", "x"),)),
    Trap("include", _include("include.path")),
    Trap("include-if", _include("includeIf.gitdir:/**.path")),
    Trap("worktree-config", _worktree_config),
    Trap("promisor-blob", _promisor("HEAD:a.txt"), may_fail=True),
    Trap("promisor-tree", _promisor("HEAD^{tree}"), may_fail=True),
    Trap("promisor-head", _promisor("HEAD"), springs=(("log",),), may_fail=True),
    Trap("nested", _nested, springs=(("-C", "nested", "status"),)),
    Trap("nested-for-a-file", _nested_for_a_file, springs=(("-C", "b.txt", "status"),)),
    Trap("nested-staged", _nested_staged, springs=(_STATUS,)),
    Trap("nested-committed", _nested_committed, springs=(_STATUS,)),
)
