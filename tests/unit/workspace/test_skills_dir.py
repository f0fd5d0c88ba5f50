"""The skills that a rule brings along: what is copied, what stays behind, what is refused."""

import os
import socket
import stat
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pidispatch.values.errors import InfraError
from pidispatch.values.limits import Limits
from pidispatch.values.outcome import Refused
from pidispatch.values.reason import Reason
from pidispatch.workspace import skills_dir
from pidispatch.workspace.skills_dir import Copied, check, copy


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """The operator's folder: a skill of two files."""
    path = tmp_path / "private" / "skills"
    write(path, "fix/SKILL.md", "Mend it.\n")
    write(path, "fix/references/Guide-1.md", "How.\n")
    return path


@pytest.fixture
def target(tmp_path: Path) -> Path:
    """Where they go: in a folder that is there, as the job's inputs are."""
    (tmp_path / "inputs").mkdir()
    return tmp_path / "inputs" / "trigger-skills"


def write(folder: Path, name: str, text: str = "text\n") -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def keep(_: Path) -> None:
    """Hands a path to nobody."""


def copied(source: Path, target: Path, **limits: int) -> Copied:
    done = copy(source, target, Limits(**limits), keep)
    assert isinstance(done, Copied), done
    return done


def refused(source: Path, target: Path, **limits: int) -> Reason:
    done = copy(source, target, Limits(**limits), keep)
    assert isinstance(done, Refused), done
    assert not target.exists()
    assert "private" not in str(done.detail)
    return done.reason


def written(target: Path) -> dict[str, str]:
    found = (path for path in sorted(target.rglob("*")) if not path.is_dir())
    return {path.relative_to(target).as_posix(): path.read_text() for path in found}


def test_plain_files_are_copied_read_only_and_handed_over(source: Path, target: Path) -> None:
    given_away: list[str] = []
    before = os.umask(0o077)
    try:
        done = copy(source, target, Limits(), lambda path: given_away.append(path.relative_to(target).as_posix()))
    finally:
        os.umask(before)
    assert done == Copied(dirs=1, files=2, bytes=14, skipped=0, skills=frozenset({"fix"}))
    assert written(target) == {"fix/SKILL.md": "Mend it.\n", "fix/references/Guide-1.md": "How.\n"}
    modes = {stat.S_IMODE(path.stat().st_mode) for path in (target, *target.rglob("*")) if path.is_dir()}
    assert modes == {0o755}
    assert {stat.S_IMODE(path.stat().st_mode) for path in target.rglob("*.md")} == {0o444}
    assert sorted(given_away) == [".", "fix", "fix/SKILL.md", "fix/references", "fix/references/Guide-1.md"]


def test_an_executable_file_arrives_without_its_bit(source: Path, target: Path) -> None:
    write(source, "fix/run.sh").chmod(0o755)
    copied(source, target)
    assert stat.S_IMODE((target / "fix" / "run.sh").stat().st_mode) == 0o444


def test_what_is_no_plain_file_or_badly_named_stays_behind_and_is_counted(source: Path, target: Path) -> None:
    outside = write(source.parent, "secret", "private\n")
    (source / "fix" / "link").symlink_to(outside)
    (source / "linked").symlink_to(source / "fix")
    os.mkfifo(source / "fix" / "pipe")
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(os.path.relpath(source / "fix" / "socket"))
    listening.close()
    for name in (
        ".git/config",
        "_x/SKILL.md",
        "fix/.hidden",
        "fix/a b",
        "fix/end.",
        f"fix/{'x' * 65}",
        "fix/\u212a.md",
    ):
        write(source, name)
    write(source, "README.md")
    done = copied(source, target)
    assert (done.files, done.skipped) == (2, 12)
    assert set(written(target)) == {"fix/SKILL.md", "fix/references/Guide-1.md"}


def test_only_a_skill_file_right_in_its_folder_is_a_flow(source: Path, target: Path) -> None:
    write(source, "notes/deeper/SKILL.md")
    write(source, "Review/SKILL.md")
    (source / "empty").mkdir()
    done = copied(source, target)
    assert done.skills == {"fix", "Review"}
    assert done.dirs == 3
    assert not (target / "empty").exists()


@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="/\0"), min_size=1, max_size=70))
def test_a_name_that_travels_is_of_plain_letters(name: str) -> None:
    if skills_dir._NAME.fullmatch(name):
        assert name.isascii()
        assert name[0].isalnum()
        assert name[-1].isalnum()
        assert len(name) <= 64
        assert set(name) <= set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-")


# Bounds: each holds at its number and not beyond, and what is refused leaves nothing.


def test_skills(source: Path, target: Path) -> None:
    write(source, "review/SKILL.md")
    assert refused(source, target, skills_dir_skills=1) is Reason.SKILLS_DIR_TOO_LARGE
    assert copied(source, target, skills_dir_skills=2).dirs == 2


def test_files(source: Path, target: Path) -> None:
    assert refused(source, target, skills_dir_files=1) is Reason.SKILLS_DIR_TOO_MANY_FILES
    assert copied(source, target, skills_dir_files=2).files == 2


def test_bytes(source: Path, target: Path) -> None:
    assert refused(source, target, skills_dir_bytes=13) is Reason.SKILLS_DIR_TOO_LARGE
    assert copied(source, target, skills_dir_bytes=14).bytes == 14


def test_depth(source: Path, target: Path) -> None:
    assert refused(source, target, skills_dir_depth=1) is Reason.SKILLS_DIR_TOO_DEEP
    assert copied(source, target, skills_dir_depth=2).files == 2


@pytest.mark.parametrize(
    "make", [lambda _: None, lambda path: (path / "fix").mkdir(), lambda path: write(path, "a.md")]
)
def test_a_folder_without_a_file_of_a_skill_is_refused(
    make: Callable[[Path], object], tmp_path: Path, target: Path
) -> None:
    source = tmp_path / "private"
    source.mkdir()
    make(source)
    assert refused(source, target) is Reason.SKILLS_DIR_EMPTY


def test_the_bounds_are_those_of_the_documentation() -> None:
    limits = Limits()
    bounds = (
        limits.skills_dir_skills,
        limits.skills_dir_files,
        limits.skills_dir_bytes,
        limits.skills_dir_depth,
    )
    assert bounds == (64, 512, 4 * 1024 * 1024, 8)


# The folder itself.


def test_a_folder_is_taken(source: Path) -> None:
    assert check(source) is None


def link(path: Path) -> None:
    path.with_name("real").mkdir()
    path.symlink_to(path.with_name("real"))


@pytest.mark.parametrize("make", [lambda _: None, Path.touch, link, os.mkfifo])
def test_what_is_no_folder_is_missing(make: Callable[[Path], object], tmp_path: Path, target: Path) -> None:
    source = tmp_path / "private"
    make(source)
    found = check(source)
    assert found is not None
    assert found.reason is Reason.SKILLS_DIR_MISSING
    assert refused(source, target) is Reason.SKILLS_DIR_MISSING


def test_a_step_that_is_a_file_leads_nowhere(tmp_path: Path) -> None:
    found = check(write(tmp_path, "file") / "skills")
    assert found is not None
    assert found.reason is Reason.SKILLS_DIR_MISSING


def failing(call: str, name: str, error: OSError, monkeypatch: pytest.MonkeyPatch) -> None:
    """Root may read everything, so what a file system says to others is said in its place."""
    real = getattr(os, call)

    def fail(path: object, *arguments: object, **named: object) -> object:
        if isinstance(path, Path) and path.name == name:
            raise error
        return real(path, *arguments, **named)

    monkeypatch.setattr(os, call, fail)


DENIED = OSError(13, "Permission denied")
ILL = OSError(5, "Input/output error")


@pytest.mark.parametrize(
    ("call", "name", "place"),
    [
        ("lstat", "skills", "it"),
        ("listdir", "skills", "it"),
        ("listdir", "references", "fix/references in it"),
        ("lstat", "SKILL.md", "fix in it"),
        ("open", "SKILL.md", "fix/SKILL.md in it"),
    ],
)
def test_what_may_not_be_read_is_refused_and_what_cannot_be_is_a_fault(
    call: str, name: str, place: str, source: Path, target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        failing(call, name, DENIED, patch)
        done = copy(source, target, Limits(), keep)
    assert isinstance(done, Refused)
    assert done.reason is Reason.SKILLS_DIR_UNREADABLE
    assert str(done.detail).endswith(f": {place}")
    failing(call, name, ILL, monkeypatch)
    with pytest.raises(InfraError) as caught:
        copy(source, target, Limits(), keep)
    assert caught.value.cause == "folder-unreadable"
    assert "private" not in caught.value.message
    assert not target.exists()


def swapped(source: Path, swap: Callable[[Path], object], monkeypatch: pytest.MonkeyPatch) -> None:
    """The first file becomes something else between the look at it and its reading."""
    real = os.open

    def swapping(path: str | Path, *arguments: int) -> int:
        monkeypatch.setattr(os, "open", real)
        swap(Path(path))
        return real(path, *arguments)

    monkeypatch.setattr(os, "open", swapping)


def to_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def to_link(path: Path) -> None:
    path.unlink()
    path.symlink_to("/etc/passwd")


@pytest.mark.parametrize("swap", [to_pipe, to_link, Path.unlink])
def test_what_becomes_another_thing_meanwhile_is_a_fault(
    swap: Callable[[Path], object], source: Path, target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    swapped(source, swap, monkeypatch)
    with pytest.raises(InfraError) as caught:
        copy(source, target, Limits(), keep)
    assert caught.value.cause == "folder-unreadable"
    assert not target.exists()


def test_what_grows_meanwhile_is_refused(source: Path, target: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    swapped(source, lambda path: path.write_text("x" * 1000), monkeypatch)
    assert refused(source, target, skills_dir_bytes=14) is Reason.SKILLS_DIR_TOO_LARGE


@pytest.mark.parametrize("there", [lambda path: path.mkdir(), lambda path: path.symlink_to("/tmp")])
def test_nothing_is_written_through_what_is_there(there: Callable[[Path], object], source: Path, target: Path) -> None:
    there(target)
    with pytest.raises(InfraError) as caught:
        copied(source, target)
    assert caught.value.cause == "job-dir"
    assert os.listdir(target) != ["fix"]
