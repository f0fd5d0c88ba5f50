"""Objects of the folder's repository, each checked against its id.

An agent of an earlier run could write every file below `.git`, and git does not compare what it reads with the id that
it was asked for. So where the content itself steers an agent, it is hashed here, from the commit down.
"""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pidispatch.values.errors import ConfigError
from pidispatch.workspace.git import HostGit

#: The bits of a mode that git tells apart in a tree: the kind, and whether a file is executable.
_KIND_BITS = 0o170100


@dataclass(frozen=True)
class Entry:
    """One row of a listing: a file, a link, a submodule or a folder of a commit."""

    #: Six octal digits, as git writes them.
    mode: str
    #: git's type of the object.
    kind: str
    #: Object id.
    oid: str
    #: Size in bytes of a blob whose header could be read.
    size: int | None
    #: Path from the root of the repository.
    path: bytes


@dataclass(frozen=True)
class _Object:
    oid: str
    kind: str
    content: bytes


def list_folder(git: HostGit, name: str) -> list[Entry] | None:
    """What the commit has at its top under `name`, and everything below it; empty where there is no such entry.

    `None` for a listing of more than `pi_listing_bytes`. Raises `ConfigError` (cause `git-unusable`) where it cannot
    be read.
    """
    listing = ("ls-tree", "-r", "-t", "-l", "-z", "--full-tree", git.sha, name)
    done = git.call(*listing, checked=False, max_bytes=git.limits.pi_listing_bytes)
    if done.code != 0:
        raise _spoilt(git)
    return None if done.truncated else [_entry(row) for row in done.output.split(b"\0")[:-1]]


def _entry(row: bytes) -> Entry:
    about, _, path = row.partition(b"\t")
    mode, kind, oid, size = about.decode("ascii").split()
    return Entry(mode, kind, oid, int(size) if size.isdigit() else None, path)


def read_blobs(git: HostGit, name: str, listed: Sequence[Entry], wanted: Sequence[Entry]) -> list[bytes]:
    """Contents of the blobs `wanted` among what `list_folder` listed for `name`, in their order, by one program.

    The commit, its trees down to the last folder listed and the blobs are all hashed. Raises `ConfigError` (cause
    `git-unusable`) where one is missing or differs from its id, or where the trees say anything else than the listing.
    """
    trees = [entry for entry in listed if entry.kind == "tree"]
    asked = [git.sha, f"{git.sha}^{{tree}}", *(entry.oid for entry in (*trees, *wanted))]
    stdin = "".join(f"{one}\n" for one in asked).encode()
    room = git.limits.pi_total_bytes + git.limits.git_output_bytes
    done = git.call("cat-file", "--batch", stdin=stdin, checked=False, max_bytes=room)
    try:
        commit, root, *below = _answers(done.output, "sha256" if len(git.sha) == 64 else "sha1")
        folders, blobs = below[: len(trees)], below[len(trees) :]
        told = _told(name, commit, root, [(entry.path, tree) for entry, tree in zip(trees, folders, strict=True)])
    except ValueError:
        raise _spoilt(git) from None
    heads = [(found.oid, found.kind) for found in (commit, *below)]
    if heads != [(git.sha, "commit"), *((entry.oid, entry.kind) for entry in (*trees, *wanted))]:
        raise _spoilt(git)
    if told != sorted((int(entry.mode, 8) & _KIND_BITS, entry.path, entry.oid) for entry in listed):
        raise _spoilt(git)
    if [len(blob.content) for blob in blobs] != [entry.size for entry in wanted]:
        raise _spoilt(git)
    return [blob.content for blob in blobs]


def _answers(output: bytes, algorithm: str) -> Iterator[_Object]:
    """The objects that `cat-file --batch` wrote (git's documentation, "git-cat-file", "Batch output").

    Raises `ValueError` for one that is missing, cut short or not what its id says.
    """
    at = 0
    while at < len(output):
        end = output.index(b"\n", at)
        oid, kind, size = output[at:end].split(b" ")
        content = output[end + 1 : end + 1 + int(size)]
        at = end + 1 + int(size) + 1
        # The id is of the content behind its kind and length (git's documentation, "gitformat-loose").
        digest = hashlib.new(algorithm, b"%b %d\0" % (kind, len(content)), usedforsecurity=False)
        digest.update(content)
        if digest.hexdigest().encode() != oid:
            raise ValueError("not what its id says")
        yield _Object(oid.decode(), kind.decode(), content)


def _told(
    name: str, commit: _Object, root: _Object, folders: Sequence[tuple[bytes, _Object]]
) -> list[tuple[int, bytes, str]]:
    """What the commit's own trees say of `name` and what is below it: mode, path and id of each entry, sorted.

    `folders` are those trees with their paths. Raises `ValueError` for what is no tree or not the root of the commit.
    """
    if not commit.content.startswith(f"tree {root.oid}\n".encode()):
        raise ValueError("not the root of the commit")
    width = len(root.oid) // 2
    entries = [entry for entry in _rows(root, b"", width) if entry[1] == name.encode()]
    for path, tree in folders:
        entries += _rows(tree, path + b"/", width)
    return sorted(entries)


def _rows(tree: _Object, prefix: bytes, width: int) -> Iterator[tuple[int, bytes, str]]:
    """The entries of one tree: mode, blank, name, NUL and `width` bytes of id each. Raises `ValueError`."""
    content, at = tree.content, 0
    while at < len(content):
        end = content.index(b"\0", at)
        mode, name = content[at:end].split(b" ", 1)
        at = end + 1 + width
        yield int(mode, 8) & _KIND_BITS, prefix + name, content[end + 1 : at].hex()


def _spoilt(git: HostGit) -> ConfigError:
    return ConfigError(
        f"objects of the repository in {git.folder.path.name!r} are missing or do not match their ids, so nothing of "
        "its .pi can be trusted. Check it with: git fsck",
        "git-unusable",
    )
