"""The notes about a folder's git directory: taken before a run, read by whoever puts back, also after a crash."""

import base64
import json
import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pidispatch.values.errors import ConfigError, InfraError
from pidispatch.workspace.alive import HEAD, HEAD_BYTES
from pidispatch.workspace.atomic import write_atomically
from pidispatch.workspace.dirfd import directory, facts_of, read_file
from pidispatch.workspace.folder import Folder
from pidispatch.workspace.guarded import (
    GUARDED,
    MAX_BYTES,
    MAX_DEPTH,
    MAX_ENTRIES,
    Budget,
    Entry,
    entry_at,
    entry_below,
    git_dirs,
    look,
)
from pidispatch.workspace.nested import MAX_NAMES, leads_to, returns, search


@dataclass
class Notes:
    """Everything guarded, as it stood before a run. Paths are relative to the folder."""

    #: Inode of the git directory.
    inode: int
    git_dirs: list[str]
    #: What was named `.git` deeper in the tree and is no directory, and files to which a link of that name leads.
    nested: dict[str, Entry] = field(default_factory=dict)
    #: Other places in the folder to which one of those leads: git directories, or what an agent could make one.
    elsewhere: list[str] = field(default_factory=list)
    #: Directories on the way to something guarded.
    ways: dict[str, Entry] = field(default_factory=dict)
    #: By guarded path, what stood at and below it; empty where it was absent.
    roots: dict[str, dict[str, Entry]] = field(default_factory=dict)
    #: Guarded paths to which links of the git directory lead.
    targets: list[str] = field(default_factory=list)
    #: Content of `.git/HEAD`, to be put back only where git would not take what stands there for one.
    head: bytes = b""


def noted(folder: Folder, top: int) -> Notes:
    """How `folder`, open as `top`, stands.

    Raises `ConfigError` for what could not be put back, `InfraError` and `OSError` for what cannot be read.
    """
    facts = facts_of(top, ".git")
    if facts is None or not stat.S_ISDIR(facts.st_mode):
        raise _refusal(folder, ".git", "is no directory", "use the main checkout, or a clone of its own")
    notes = Notes(facts.st_ino, [])
    with directory(top, ".git") as git_dir:
        notes.head = read_file(git_dir, HEAD, HEAD_BYTES) or b""
    budget = Budget()
    inner = _note_nested(folder, top, notes, budget)
    dirs = git_dirs(top, {*inner, *notes.elsewhere})
    if dirs.partial:
        raise _too_much(folder, ".git/modules")
    if dirs.odd:
        raise _refusal(folder, dirs.odd[0], "is a link or lies too deep", "put the directory itself in its place")
    notes.git_dirs = sorted({*dirs.found, *notes.elsewhere})
    for base in notes.git_dirs:
        for name in GUARDED:
            path = f"{base}/{name}"
            _note(folder, top, notes, path, budget)
            link = notes.roots[path].get(path)
            if link is not None and link.kind == "link":
                target = _target(folder, path, os.fsdecode(link.content or b""))
                if target is not None:
                    notes.targets.append(target)
                    _note(folder, top, notes, target, budget)
    return notes


def _note_nested(folder: Folder, top: int, notes: Notes, budget: Budget) -> list[str]:
    """Note what is named `.git` deeper in the tree, and where it leads; the directories."""
    found = search(top, MAX_NAMES)
    if found.partial:
        raise _refusal(folder, ".", f"holds more than {MAX_NAMES} names", "use a folder with less in it")
    waiting = sorted(found.others)
    while waiting:
        path = waiting.pop()
        # A second name of the folder's own is guarded with it.
        if path == ".git" or path in notes.nested or path in notes.elsewhere:
            continue
        entry = entry_below(top, path, budget)
        if budget.used_up is not None:
            raise _too_much(folder, path)
        if entry is None or entry.kind == "dir":
            notes.elsewhere.append(path)
            continue
        notes.nested[path] = entry
        words = leads_to(entry)
        target = None if words is None else _target(folder, path, words)
        if target is not None:
            waiting.append(target)
    return found.dirs


def _note(folder: Folder, top: int, notes: Notes, path: str, budget: Budget) -> None:
    notes.roots[path] = look(top, path, budget) if _note_ways(folder, top, notes, path) else {}
    if budget.used_up is not None:
        raise _too_much(folder, path)
    for name, entry in notes.roots[path].items():
        if entry.kind == "other":
            raise _refusal(folder, name, "is neither a file nor a directory", "remove it")
        if entry.kind == "file" and entry.content is None:
            raise InfraError(f"{name!r} of {folder.path.name!r} cannot be read. Check its owner", "folder-unreadable")


def _note_ways(folder: Folder, top: int, notes: Notes, path: str) -> bool:
    """Note the directories on the way to `path`; false where one is absent."""
    parts = path.split("/")
    for depth in range(1, len(parts)):
        way = "/".join(parts[:depth])
        if way in notes.ways:
            continue
        parent, name = os.path.split(way)
        with directory(top, parent) as handle:
            entry = entry_at(handle, name, Budget())
        if entry is None:
            return False
        if entry.kind != "dir":
            raise _refusal(folder, way, "is no directory", "put a directory in its place")
        notes.ways[way] = entry
    return True


def _target(folder: Folder, path: str, link: str) -> str | None:
    """Where in the folder the link at `path` leads, `None` where it leads out of it."""
    straight = os.path.normpath(os.path.join(folder.path, os.path.dirname(path), link))
    real = os.path.realpath(os.path.join(folder.path, os.path.dirname(path), link))
    if not any(Path(end).is_relative_to(folder.path) for end in (real, straight)):
        return None
    own = Path(straight) == folder.path or (Path(straight) == folder.git_dir and path.startswith(".git/"))
    # A step that is itself a link, or that is left again, could be turned elsewhere by an agent.
    if straight != real or returns(link) or own:
        raise _refusal(folder, path, "leads into the folder by a detour", "put what it leads to in its place")
    return os.path.relpath(straight, folder.path)


def _too_much(folder: Folder, path: str) -> ConfigError:
    bounds = f"{MAX_ENTRIES} files, {MAX_BYTES // 1024 // 1024} MiB or {MAX_DEPTH} levels"
    return _refusal(folder, path, f"brings the guarded places past {bounds}", "move what git does not need away")


def _refusal(folder: Folder, path: str, what: str, remedy: str) -> ConfigError:
    return ConfigError(
        f"{path!r} of {folder.path.name!r} {what}, so it could not be put back after an agent changed it: {remedy}",
        "git-unusable",
    )


def write_notes(path: Path, notes: Notes) -> None:
    """Write `notes` so that another process finds all of them or none. Raises `OSError`."""
    text = json.dumps(
        {
            "inode": notes.inode,
            "git_dirs": notes.git_dirs,
            "nested": _packed(notes.nested),
            "elsewhere": notes.elsewhere,
            "ways": _packed(notes.ways),
            "roots": {root: _packed(entries) for root, entries in notes.roots.items()},
            "targets": notes.targets,
            "head": _text(notes.head),
        }
    )
    write_atomically(path, text.encode("ascii"), 0o600)


def read_notes(path: Path) -> Notes | None:
    """The notes at `path`, `None` where none were completed. Raises `InfraError` where they cannot be read."""
    try:
        data = json.loads(path.read_text(encoding="ascii"))
        return Notes(
            inode=data["inode"],
            git_dirs=data["git_dirs"],
            nested=_unpacked(data["nested"]),
            elsewhere=data["elsewhere"],
            ways=_unpacked(data["ways"]),
            roots={root: _unpacked(entries) for root, entries in data["roots"].items()},
            targets=data["targets"],
            head=base64.b64decode(data["head"], validate=True),
        )
    except FileNotFoundError:
        return None
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        raise InfraError(
            "the notes about the git directory cannot be read, so nothing of it was put back. Look at .git/config and "
            ".git/hooks before you use git in the folder",
            "git-not-put-back",
        ) from None


def _packed(entries: Mapping[str, Entry]) -> dict[str, list[object]]:
    # Names are kept as the system gives them: what is not UTF-8 in them survives as escapes.
    return {path: [e.kind, e.mode, e.uid, e.gid, _text(e.content)] for path, e in entries.items()}


def _text(content: bytes | None) -> str | None:
    return None if content is None else base64.b64encode(content).decode("ascii")


def _unpacked(data: Mapping[str, tuple[str, int, int, int, str | None]]) -> dict[str, Entry]:
    return {
        path: Entry(kind, mode, uid, gid, None if text is None else base64.b64decode(text, validate=True))
        for path, (kind, mode, uid, gid, text) in data.items()
    }
