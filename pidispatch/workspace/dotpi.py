"""What of a repository's `.pi` travels into the box: skills and one page of system prompt, from the commit.

Its text steers the agent, so it is what was committed and reviewed: nothing is taken from the working tree, every
object is checked against its id, and all bounds are decided before anything is written (docs/explanation/prompt.md).
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from pidispatch.values.errors import ConfigError
from pidispatch.values.job import FLOW_NAME
from pidispatch.values.limits import Limits
from pidispatch.values.outcome import Refused
from pidispatch.values.reason import Reason
from pidispatch.workspace.git import HostGit
from pidispatch.workspace.objects import Entry, list_folder, read_blobs
from pidispatch.workspace.written import write_read_only

_FOLDER = ".pi"
_SYSTEM_PROMPT = "APPEND_SYSTEM.md"
_SKILLS = "skills"
_SKILL_FILE = "SKILL.md"
#: Folders and file below the folder of a skill.
_MOST_SEGMENTS = 4
_SKILL_NAME = re.compile(FLOW_NAME)
_SEGMENT = re.compile(r"[a-z0-9](?:[a-z0-9_.-]{0,62}[a-z0-9])?", re.IGNORECASE | re.ASCII)
#: Names that Windows opens as a device, whatever follows their first dot.
_DEVICE = re.compile(r"(?:con|prn|aux|nul|com[1-9]|lpt[1-9])", re.IGNORECASE | re.ASCII)


@dataclass(frozen=True)
class DotPi:
    """What was written."""

    files: int
    size_bytes: int
    #: Skills whose `SKILL.md` lies right in their folder: the flows that a job may name.
    skills: frozenset[str]


def materialise(git: HostGit, target: Path, give: Callable[[Path], None]) -> DotPi | Refused:
    """Write what travels of the commit's `.pi` into `target`, which is made when there is something to write.

    Folders get mode 0755 and files 0444; `give` hands each path to the job's user. A refusal writes nothing. Raises
    `ConfigError` (cause `git-unusable`) for objects that are missing or do not match their ids, `InfraError` where git
    or the disk fails.
    """
    listed = list_folder(git, _FOLDER)
    if listed is None:
        kib = git.limits.pi_listing_bytes // 1024
        return _too_many(f"{_FOLDER} holds so many entries that their list alone is larger than {kib} KiB")
    taken = _travelling(listed, git.limits)
    if refused := _refusal(taken, git.limits):
        return refused
    contents = read_blobs(git, _FOLDER, listed, [entry for _, entry in taken])
    write_read_only(target, {path: content for (path, _), content in zip(taken, contents, strict=True)}, give)
    flows = {path.parts[1] for path, _ in taken if len(path.parts) == 3 and path.name == _SKILL_FILE}
    return DotPi(len(contents), sum(map(len, contents)), frozenset(flows))


def output_path(path: bytes, limits: Limits) -> PurePosixPath | None:
    """Where below the target a committed file goes, put together from checked segments; `None` when it stays behind."""
    try:
        folder, *segments = path.decode("ascii").split("/")
    except UnicodeDecodeError:
        return None
    if folder != _FOLDER:
        return None
    if segments != [_SYSTEM_PROMPT] and not _is_of_a_skill(segments):
        return None
    output = PurePosixPath(*segments)
    return output if len(str(output)) <= limits.pi_path_chars else None


def _is_of_a_skill(segments: Sequence[str]) -> bool:
    if not 3 <= len(segments) <= 2 + _MOST_SEGMENTS:
        return False
    skills, name, *below = segments
    return skills == _SKILLS and _SKILL_NAME.fullmatch(name) is not None and all(map(_is_plain, below))


def _is_plain(segment: str) -> bool:
    return _SEGMENT.fullmatch(segment) is not None and not _DEVICE.fullmatch(segment.partition(".")[0])


def _travelling(listed: Sequence[Entry], limits: Limits) -> list[tuple[PurePosixPath, Entry]]:
    """Plain files at accepted paths, with where they go; of a skill without any `SKILL.md` none."""
    plain = (entry for entry in listed if (entry.mode, entry.kind) == ("100644", "blob"))
    accepted = [(path, entry) for entry in plain if (path := output_path(entry.path, limits)) is not None]
    declared = {_skill(path) for path, _ in accepted if path.name == _SKILL_FILE}
    return [(path, entry) for path, entry in accepted if _skill(path) is None or _skill(path) in declared]


def _skill(path: PurePosixPath) -> str | None:
    return path.parts[1] if len(path.parts) > 1 else None


def _refusal(taken: Sequence[tuple[PurePosixPath, Entry]], limits: Limits) -> Refused | None:
    """The first bound that is passed. Paths in a detail are of checked segments, so they are fit for a terminal."""
    if len(taken) > limits.pi_files:
        return _too_many(f"{len(taken)} files of {_FOLDER} would travel; at most {limits.pi_files} may")
    for skill, count in Counter(_skill(path) for path, _ in taken).items():
        if count > limits.pi_skill_files:
            return _too_many(f"the skill {skill} has {count} files; at most {limits.pi_skill_files} may travel")
    sizes = {path: _size(entry) for path, entry in taken}
    for path, size in sizes.items():
        if size > limits.pi_file_bytes:
            detail = f"{_FOLDER}/{path} has {size:,} bytes; at most {limits.pi_file_bytes:,} may travel"
            return Refused(reason=Reason.PI_FILE_TOO_LARGE, detail=detail)
    if (total := sum(sizes.values())) > limits.pi_total_bytes:
        detail = f"the files of {_FOLDER} have {total:,} bytes; at most {limits.pi_total_bytes:,} may travel"
        return Refused(reason=Reason.PI_TOO_LARGE, detail=detail)
    for path, other in _collisions([path for path, _ in taken]):
        detail = f"{_FOLDER}/{path} and {_FOLDER}/{other} would be one where case does not count"
        return Refused(reason=Reason.PI_PATH_COLLISION, detail=detail)
    return None


def _size(entry: Entry) -> int:
    if entry.size is None:
        # Without a size no bound would hold.
        raise ConfigError(
            f"the repository lacks an object that its commit names below {_FOLDER}. Check it with: git fsck",
            "git-unusable",
        )
    return entry.size


def _collisions(paths: Sequence[PurePosixPath]) -> Iterator[tuple[PurePosixPath, PurePosixPath]]:
    """Pairs of two files, or of a file and a folder above another file, that differ in case at most."""
    files: dict[str, PurePosixPath] = {}
    for path in paths:
        if (first := files.setdefault(str(path).lower(), path)) is not path:
            yield first, path
    for path in paths:
        for folder in path.parents:
            if file := files.get(str(folder).lower()):
                yield file, path


def _too_many(detail: str) -> Refused:
    return Refused(reason=Reason.PI_TOO_MANY_FILES, detail=detail)
