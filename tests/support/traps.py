"""Ways in which whoever writes a folder's git directory can make the next git call there run a program.

Each is a piece of shell, so that a test plants it on this machine and an agent in its box alike, and comes with the
plain commands that spring it: a test can tell a trap that was stepped over from one that never worked.
"""

import shlex
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from tests.support.terminal import as_user

_DIFF = ("git diff HEAD",)
_STATUS = ("git status",)
_COMMIT = ("git commit -q --allow-empty --allow-empty-message",)
_MISSING = (
    'hash=$(git rev-parse "{object}"); rm -f ".git/objects/$(echo "$hash" | cut -c1-2)/$(echo "$hash" | cut -c3-)"'
)


@dataclass(frozen=True)
class Trap:
    """A trap, in shell for the top of a work tree.

    Beside `key`, `program` and `attribute` (see `_PRELUDE`) the shell has NAME; FIRE, the command that tells of the
    trap; MARK, the file that it makes; FILE, a tracked file; HOST, the folder's path on the machine of the springs.
    """

    name: str
    #: What is done to `.git`.
    plant: str
    #: What is done to the work tree before.
    tree: str = ""
    #: Plain commands in the folder that spring it once `FILE` is changed.
    springs: tuple[str, ...] = _DIFF
    #: What of it a guard of git directories must put back; nothing where it does not lie there.
    guarded: tuple[str, ...] = (".git/config",)
    #: The trap takes away an object, so reading the folder may fail as long as nothing is run.
    may_fail: bool = False


#: In this order, all of one before any of the other: git must still work for the first.
STEPS = ("tree", "plant")
#: `key NAME VALUE` writes to the configuration, `program [MORE]` makes one that fires and prints its path,
#: `attribute WORDS` adds to the attributes of `FILE`.
_PRELUDE = r"""
set -eu
key() { git config --file .git/config "$@"; }
program() {
    mkdir -p .git/traps
    printf '#!/bin/sh\n%s\n%s\n' "$FIRE" "${1-}" > ".git/traps/$NAME"
    chmod 755 ".git/traps/$NAME"
    echo "$HOST/.git/traps/$NAME"
}
attribute() { printf '%s %s\n' "$FILE" "$1" >> .gitattributes; }
export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@example.test GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@example.test
"""


def planting(
    traps: Iterable[Trap], host: Path, marks: Path, file: str | None = None, steps: Iterable[str] = STEPS
) -> str:
    """Shell that plants `traps` in the current folder, which is `host` where they are to spring.

    Each has a mark of its name in `marks` and a file of its name, unless all share `file`.
    """
    parts = [_PRELUDE]
    chosen = list(traps)
    for step in steps:
        for trap in chosen:
            mark = marks / trap.name
            variables = {
                "NAME": trap.name,
                "FIRE": f"touch {shlex.quote(str(mark))}",
                "MARK": str(mark),
                "FILE": file or f"{trap.name}.txt",
                "HOST": str(host),
            }
            words = "\n".join(f"{name}={shlex.quote(value)}" for name, value in variables.items())
            if body := getattr(trap, step):
                parts.append(f"(\n{words}\n{body}\n)\n")
    return "".join(parts)


def plant(trap: Trap, folder: Path, marks: Path, file: str | None = None) -> None:
    """Plant one trap by hand."""
    as_user(folder, planting([trap], folder, marks, file), check=True)


def spring(trap: Trap, folder: Path, marks: Path, file: str | None = None) -> bool:
    """Change the trap's file and type what springs it; whether it sprang. Its mark is taken away."""
    mark = marks / trap.name
    given = {"MARK": str(mark), "FILE": file or f"{trap.name}.txt"}
    for line in ('printf "more\\n" >> "$FILE"', *trap.springs):
        as_user(folder, line, given)
    return taken(mark)


def taken(mark: Path) -> bool:
    """Whether `mark` is there; takes it away."""
    there = mark.exists()
    if there:
        as_user(mark.parent, f"rm -r {shlex.quote(mark.name)}", check=True)
    return there


def _driver(name: str, key: str, attribute: str, tail: str, springs: tuple[str, ...] = _DIFF) -> Trap:
    return Trap(name, f'key {key} "$FIRE; {tail}"', tree=f"attribute {attribute}", springs=springs)


def _config(name: str, key: str, tail: str = "", springs: tuple[str, ...] = _DIFF, more: str = "") -> Trap:
    return Trap(name, f"path=$(program '{tail}')\nkey {key} \"$path\"\n{more}", springs=springs)


def _include(name: str, key: str) -> Trap:
    body = f"""mkdir -p .git/traps
git config --file ".git/traps/$NAME" "filter.$NAME.clean" "$FIRE; cat"
key {key} "$HOST/.git/traps/$NAME\""""
    return Trap(name, body, tree="attribute filter=$NAME")


def _promisor(name: str, missing: str, springs: tuple[str, ...] = _DIFF) -> Trap:
    """A partial clone whose missing object git would fetch by a command of the folder's choice."""
    body = f"""path=$(program 'exit 1')
{_MISSING.format(object=missing)}
key core.repositoryFormatVersion 1
key extensions.partialClone origin
key remote.origin.url ssh://model.test/repository
key remote.origin.promisor true
key remote.origin.partialCloneFilter blob:none
key core.sshCommand "$path"
key protocol.allow always"""
    return Trap(name, body, springs=springs, may_fail=True)


def _hook(name: str, *springs: str) -> Trap:
    body = f'printf "#!/bin/sh\\n$FIRE\\n" > .git/hooks/{name}\nchmod 755 .git/hooks/{name}'
    lines = springs or (f"git hook run {name}",)
    return Trap(f"hook-{name}", f"mkdir -p .git/hooks\n{body}", springs=lines, guarded=(f".git/hooks/{name}",))


_PUSH = (*_COMMIT, "git push -q . HEAD:refs/heads/pushed")
#: Every hook of git's documentation, "githooks". What takes a server or a mail to happen is run by its name.
HOOKS = (
    *(_hook(name) for name in ("applypatch-msg", "pre-applypatch", "post-applypatch", "sendemail-validate")),
    *(_hook(name, *_COMMIT) for name in ("pre-commit", "prepare-commit-msg", "commit-msg", "post-commit")),
    _hook("reference-transaction", *_COMMIT),
    _hook("post-index-change", "git add --all"),
    *(_hook(name, *_PUSH) for name in ("pre-push", "pre-receive", "update", "post-receive", "post-update")),
    *(_hook(name) for name in ("proc-receive", "push-to-checkout", "pre-merge-commit", "post-merge", "pre-auto-gc")),
    *(_hook(name) for name in ("p4-changelist", "p4-prepare-changelist", "p4-post-changelist", "p4-pre-submit")),
    _hook("post-checkout", "git checkout -q -B other"),
    _hook("post-rewrite", "git commit -q --amend --allow-empty-message --no-edit"),
    _hook("pre-rebase", "git stash", "git rebase --force-rebase HEAD"),
    _hook("fsmonitor-watchman", "git -c core.fsmonitor=.git/hooks/fsmonitor-watchman status"),
)

FILTERS = (
    _driver("filter-clean", "filter.$NAME.clean", "filter=$NAME", "cat"),
    _driver("filter-smudge", "filter.$NAME.smudge", "filter=$NAME", "cat", ('git checkout HEAD -- "$FILE"',)),
    _driver("filter-process", "filter.$NAME.process", "filter=$NAME", "exit 1"),
    _driver("filter-lfs-lookalike", "filter.lfs.clean", "filter=lfs", "cat"),
    _driver("filter-lfs-process", "filter.lfs.process", "filter=lfs", "exit 1"),
    Trap(
        "filter-by-info-attributes",
        'key "filter.$NAME.clean" "$FIRE; cat"\nmkdir -p .git/info\necho "$FILE filter=$NAME" >> .git/info/attributes',
        guarded=(".git/config", ".git/info/attributes"),
    ),
    _include("include", "include.path"),
    _include("include-if", "'includeIf.gitdir:/**.path'"),
    Trap(
        "worktree-config",
        'key extensions.worktreeConfig true\ngit config --file .git/config.worktree "filter.$NAME.clean" "$FIRE; cat"',
        tree="attribute filter=$NAME",
        guarded=(".git/config", ".git/config.worktree"),
    ),
)

DIFFS = (
    _config("diff-external", "diff.external"),
    _driver("diff-driver", "diff.$NAME.command", "diff=$NAME", "exit 0"),
    _driver("diff-textconv", "diff.$NAME.textconv", "diff=$NAME", "cat"),
)

PROMISORS = (
    _promisor("promisor-blob", "HEAD:$FILE"),
    _promisor("promisor-tree", "HEAD^{tree}"),
    _promisor("promisor-head", "HEAD", ("git log",)),
)

PROGRAMS = (
    _config("fsmonitor", "core.fsmonitor", springs=_STATUS),
    Trap(
        "hooks-path",
        "program\nmkdir -p .git/other-hooks\n"
        'for hook in pre-commit post-index-change; do cp ".git/traps/$NAME" .git/other-hooks/$hook; done\n'
        'key core.hooksPath "$HOST/.git/other-hooks"',
        springs=_COMMIT,
    ),
    _config("pager", "core.pager", "cat", ("git log",)),
    _config("pager-of-a-verb", "pager.log", "cat", ("git log",)),
    _config("editor", "core.editor", springs=_COMMIT),
    _config("sequence-editor", "sequence.editor", springs=("git stash", "git rebase --interactive --root")),
    _config("gpg-program", "gpg.program", "exit 1", _COMMIT, "key commit.gpgSign true"),
    _config(
        "credential-helper",
        "credential.helper",
        springs=('printf "protocol=https\\nhost=model.test\\n\\n" | git credential fill',),
    ),
    Trap("alias", 'key alias.st "!$FIRE"\nkey alias.status "!$FIRE"', springs=("git st", "git status")),
    # Git heeds it in its user's own configuration alone, so that is how it has to be read to spring.
    _config(
        "pack-objects-hook",
        "uploadpack.packObjectsHook",
        "exit 1",
        ('GIT_CONFIG_GLOBAL="$PWD/.git/config" git clone -q --no-local . "$(mktemp -d .git/cloned.XXXX)"',),
    ),
    _config("git-proxy", "core.gitProxy", "exit 1", ("git ls-remote git://model.test/repository",)),
    _config("upload-pack", "remote.origin.uploadpack", "exit 1", ("git fetch",), "key remote.origin.url ."),
)

#: Other git directories than the one that seems to be there.
COMMONDIR = Trap(
    "commondir",
    "path=$(program)\nmkdir -p .git/common\ncp -r .git/objects .git/refs .git/config .git/common\n"
    'git config --file .git/common/config core.fsmonitor "$path"\necho common > .git/commondir',
    springs=_STATUS,
    guarded=(".git/commondir",),
)
MODULES = Trap(
    "modules",
    'path=$(program)\ngit config --file .git/modules/sub/config core.fsmonitor "$path"',
    tree="mkdir -p .git/modules\ngit init -q --separate-git-dir .git/modules/sub sub\n"
    "git -C sub commit -q --allow-empty -m sub\necho gitdir: ../.git/modules/sub > sub/.git\ngit add sub",
    springs=_STATUS,
    guarded=(".git/modules/sub/config",),
)
#: Leads git to another work tree. Git works no more where that one is not, so it comes last.
CORE_WORKTREE = Trap(
    "core-worktree",
    'key core.worktree "$(dirname "$MARK")"',
    springs=('git checkout HEAD -- "$FILE"', 'mv "$(dirname "$MARK")/$FILE" "$MARK"'),
)
#: Leads git to objects elsewhere: nothing runs, and what lies there may be nobody's business here.
ALTERNATES = Trap(
    "alternates",
    'mkdir -p .git/objects/info\necho "$(dirname "$MARK")/objects" > .git/objects/info/alternates',
    springs=('git cat-file -e "$(echo elsewhere | git hash-object --stdin)" && touch "$MARK"',),
    guarded=(),
)
#: Takes the git directory away, and so cannot be planted together with others.
GITFILE = Trap(
    "gitfile",
    'program\ncp -r .git .other\ngit config --file .other/config core.fsmonitor "$HOST/.other/traps/$NAME"\n'
    'mv .git .moved\necho "gitdir: .other" > .git',
    springs=_STATUS,
    guarded=(".git",),
)


def _dead(name: str, end: str, guarded: str) -> Trap:
    """Ends `.git` as a git directory, so that git takes the folder itself for one: alone, since nothing works then."""
    body = f"""mkdir -p objects refs
cp .git/HEAD HEAD
cp .git/config config
git config --file config core.bare false
git config --file config core.worktree .
git config --file config core.fsmonitor "$(program)"
{end}"""
    return Trap(name, body, springs=_STATUS, guarded=(guarded,))


DEAD = (
    _dead("dead-without-head", "rm .git/HEAD", ".git/HEAD"),
    _dead("dead-by-its-head", "echo elsewhere > .git/HEAD", ".git/HEAD"),
    _dead("dead-by-a-linked-head", "mv .git/HEAD .git/other; ln -s other .git/HEAD", ".git/HEAD"),
    _dead("dead-without-refs", "mv .git/refs .git/other", ".git/refs"),
    _dead("dead-without-objects", "mv .git/objects .git/other; touch .git/objects", ".git/objects"),
)


def _nested(name: str, path: str, springs: tuple[str, ...], more: str = "") -> Trap:
    body = f"""path=$(program)
rm -f {path}
git init -q {path}
echo text > {path}/tracked
git -C {path} add tracked
git -C {path} commit -qm nested
git -C {path} config core.fsmonitor "$path"
echo changed > {path}/tracked
{more}"""
    return Trap(name, body, springs=springs, guarded=(f"{path}/.git/config",))


#: Repositories inside of the folder.
NESTED = (
    _nested("nested", "nested", ("git -C nested status",)),
    _nested("nested-for-a-file", "b.txt", ("git -C b.txt status",)),
    _nested("nested-staged", "nested", _STATUS, "git add nested"),
    _nested("nested-committed", "nested", _STATUS, "git add --all\ngit commit -qm 'a nested repository'"),
)
