"""Commits made from trees written by hand: entries that `git add` would not make, such as `..` or a submodule."""

import zlib
from collections.abc import Mapping
from pathlib import Path

from pidispatch.values.limits import Limits
from pidispatch.workspace.folder import open_folder
from pidispatch.workspace.git import HostGit
from tests.unit.workspace.repository import Repository

#: A file's text, a folder, or a mode with an object id.
Node = str | bytes | tuple[str, str] | Mapping[str, "Node"]


def object_id(repository: Repository, kind: str, content: bytes) -> str:
    """Write an object as it is, whatever git thinks of it; its id."""
    source = repository.path / ".git" / "by-hand"
    source.write_bytes(content)
    return repository.git("hash-object", "-w", "--literally", "--no-filters", "-t", kind, str(source))


def write_tree(repository: Repository, entries: Mapping[str, Node]) -> str:
    """Write a tree with these entries, sorted as they come; its id."""
    rows = []
    for name, node in entries.items():
        mode, oid = _written(repository, node)
        rows.append(f"{mode} {name}\0".encode() + bytes.fromhex(oid))
    return object_id(repository, "tree", b"".join(rows))


def _written(repository: Repository, node: Node) -> tuple[str, str]:
    if isinstance(node, tuple):
        return node
    if isinstance(node, str | bytes):
        return "100644", object_id(repository, "blob", node.encode() if isinstance(node, str) else node)
    return "40000", write_tree(repository, node)


def commit_tree(repository: Repository, entries: Mapping[str, Node]) -> str:
    """Commit a tree with these entries and let the branch name it; the commit's id."""
    sha = repository.git("commit-tree", "-m", "by hand", write_tree(repository, entries))
    repository.git("update-ref", "HEAD", sha)
    return sha


def bare_host_git(repository: Repository, limits: Limits | None = None) -> HostGit:
    """Host git on the repository's own git directory, for trees that git puts in no index."""
    folder = open_folder(repository.path)
    return HostGit(folder, folder.git_dir, repository.git("rev-parse", "HEAD"), limits or Limits())


def loose(repository: Repository, oid: str) -> Path:
    """The file of a loose object."""
    return repository.path / ".git" / "objects" / oid[:2] / oid[2:]


def rewrite(repository: Repository, oid: str, kind: str, content: bytes) -> None:
    """Put other content under the id of a loose object, as an agent can."""
    path = loose(repository, oid)
    path.unlink()
    path.write_bytes(zlib.compress(f"{kind} {len(content)}".encode() + b"\0" + content))
