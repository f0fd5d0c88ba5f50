"""After the guard the owner's git runs nothing of a repository nested in the tree; without it each trap springs."""

import hashlib
import os
import shutil
import struct
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from pidispatch.workspace import putback
from pidispatch.workspace.folder import open_folder
from pidispatch.workspace.guard import put_back, take_notes
from tests.support.terminal import as_user
from tests.unit.workspace.repository import Repository, script


@dataclass(frozen=True)
class Site:
    """An owner's folder with a submodule `lib` and a repository `mine`, and a program that leaves its mark."""

    repository: Repository
    program: Path
    mark: Path
    home: Path

    @property
    def path(self) -> Path:
        """The folder."""
        return self.repository.path

    def evil(self, place: str) -> str:
        """A repository at `place` that runs the program; its commit."""
        inner = Repository(self.path / place)
        inner.write("t", "x\n")
        sha = inner.commit()
        inner.git("config", "core.fsmonitor", str(self.program))
        inner.write("t", "changed\n")
        return sha

    def index(self, place: str, sha: str) -> None:
        """An index that names a repository at any place at all, which git itself would refuse to write."""
        name = place.encode()
        entry = struct.pack(">10I", *[0] * 6, 0o160000, *[0] * 3) + bytes.fromhex(sha)
        entry += struct.pack(">H", len(name)) + name
        data = b"DIRC" + struct.pack(">II", 2, 1) + entry + b"\0" * (8 - len(entry) % 8)
        (self.path / ".git/index").write_bytes(data + hashlib.sha1(data).digest())

    def types(self, command: str, folder: Path | None = None) -> bool:
        """Whether a command of the owner's runs the program."""
        self.mark.unlink(missing_ok=True)
        as_user(folder or self.path, command)
        return self.mark.exists()


@pytest.fixture
def site(repository: Repository, tmp_path: Path) -> Site:
    library = Repository(tmp_path / "library")
    library.write("l.txt")
    library.commit()
    repository.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(library.path), "lib")
    mine = Repository(repository.path / "mine")
    mine.write("m.txt")
    mine.commit()
    repository.write(".gitignore", "mine\n")
    repository.commit()
    mark = tmp_path / "mark"
    return Site(repository, script(tmp_path / "bin/program", f"touch {mark}"), mark, tmp_path)


def _untracked(site: Site) -> None:
    site.evil("nested")


def _staged(site: Site) -> None:
    site.evil("nested")
    site.repository.git("add", "nested")


def _cached(site: Site) -> None:
    sha = site.evil("deep/er/nested")
    site.repository.git("update-index", "--add", "--cacheinfo", f"160000,{sha},deep/er/nested")


def _committed(site: Site) -> None:
    site.evil("nested")
    site.repository.commit()


def _submodules_config(site: Site) -> None:
    _untracked(site)
    inner = site.path / "nested"
    (inner / "t").unlink()
    (inner / ".git").rename(site.path / "evil")
    site.repository.write("lib/.git", "gitdir: ../evil\n")


def _link(site: Site) -> None:
    _staged(site)
    (site.path / "nested/.git").rename(site.path / "evil")
    (site.path / "nested/.git").symlink_to("../evil")


def _link_for_a_submodules_file(site: Site) -> None:
    _submodules_config(site)
    (site.path / "lib/.git").unlink()
    (site.path / "lib/.git").symlink_to("../evil")


def _directory_for_a_submodules_file(site: Site) -> None:
    _submodules_config(site)
    (site.path / "lib/.git").unlink()
    (site.path / "evil").rename(site.path / "lib/.git")


def _file_into_what_is_not_guarded(site: Site) -> None:
    _staged(site)
    (site.path / "nested/.git").rename(site.path / ".git/modules/lib/objects/evil")
    site.repository.write("nested/.git", "gitdir: ../.git/modules/lib/objects/evil\n")


def _file_over_a_link(site: Site) -> None:
    _staged(site)
    (site.path / "x/y/.git/modules").mkdir(parents=True)
    (site.path / "nested/.git").rename(site.path / "x/y/.git/modules/lib")
    # As text it leads to what is guarded.
    (site.path / "nested/up").symlink_to("../x/y")
    site.repository.write("nested/.git", "gitdir: up/../y/.git/modules/lib\n")


def _moved_away(site: Site) -> None:
    _staged(site)
    (site.path / "nested/.git").rename(site.path / "nested/moved")
    site.repository.write("nested/.git", "gitdir: moved\n")


def _existing(site: Site) -> None:
    Repository.git(_at(site, "mine"), "config", "core.fsmonitor", str(site.program))
    site.repository.git("add", "--force", "mine")
    site.repository.write("mine/m.txt", "changed\n")


def _existing_by_commondir(site: Site) -> None:
    site.repository.git("add", "--force", "mine")
    git_dir = site.path / "mine/.git"
    shutil.copytree(git_dir, site.path / "common")
    site.repository.git("config", "--file=common/config", "core.fsmonitor", str(site.program))
    (git_dir / "commondir").write_text("../../common\n")
    site.repository.write("mine/m.txt", "changed\n")


def _existing_moved(site: Site) -> None:
    _existing(site)
    (site.path / "mine/.git").rename(site.path / "mine/other")
    site.repository.write("mine/.git", "gitdir: other\n")


def _hook_of_existing(site: Site) -> None:
    hook = site.path / "mine/.git/hooks/post-index-change"
    hook.parent.mkdir(exist_ok=True)
    shutil.copy(site.program, hook)


def _in_the_git_directory(site: Site) -> None:
    site.index(".git/evil", site.evil(".git/evil"))


def _where_things_wait_to_be_removed(site: Site) -> None:
    site.index(".git/pi-dispatch-aside/evil", site.evil(".git/pi-dispatch-aside/evil"))


def _in_a_nested_git_directory(site: Site) -> None:
    site.index("mine/.git/refs/evil", site.evil("mine/.git/refs/evil"))


def _deep(site: Site) -> None:
    """Almost as deep as git can go."""
    sha = site.evil("nested")
    steps = ["d" * 200] * ((3900 - len(str(site.path))) // 201)
    (site.path / Path(*steps)).mkdir(parents=True)
    (site.path / "nested").rename(site.path / Path(*steps, "evil"))
    site.index("/".join([*steps, "evil"]), sha)


def _at(site: Site, place: str) -> Repository:
    inner = Repository.__new__(Repository)
    inner.path = site.path / place
    return inner


_ADD = "git add -A; echo more >> nested/t; git status"
PLANTED: tuple[tuple[Callable[[Site], None], str, str], ...] = (
    (_untracked, _ADD, "nested/.git/config"),
    (_staged, "git status", "nested/.git/config"),
    (_cached, "git diff", "deep/er/nested/.git/config"),
    (_committed, "git diff HEAD", "nested/.git/config"),
    (_submodules_config, "git status", "lib/.git"),
    (_link, "git status", "nested/.git"),
    (_link_for_a_submodules_file, "git status", "lib/.git"),
    (_directory_for_a_submodules_file, "git status", "lib/.git"),
    (_file_into_what_is_not_guarded, "git status", "nested/.git"),
    (_file_over_a_link, "git status", "nested/.git"),
    (_moved_away, "git status", "nested/.git"),
    (_existing, "git status", "mine/.git/config"),
    (_existing_by_commondir, "git status", "mine/.git/commondir"),
    (_existing_moved, "git status", "mine/.git"),
    (_hook_of_existing, "cd mine && echo >> m.txt && git add m.txt", "mine/.git/hooks/post-index-change"),
    (_in_the_git_directory, "git status", ".git/evil/.git/config"),
    (_in_a_nested_git_directory, "git status", "mine/.git/refs/evil/.git/config"),
    (_deep, "git status", "evil/.git/config"),
)


@pytest.mark.parametrize(("planting", "spring", "name"), PLANTED, ids=[row[0].__name__[1:] for row in PLANTED])
def test_the_owners_git_runs_nothing_of_a_nested_repository(
    planting: Callable[[Site], None], spring: str, name: str, site: Site
) -> None:
    take_notes(open_folder(site.path), site.home / "notes")
    planting(site)
    as_user(site.home, "cp -a folder copied", check=True)
    assert site.types(spring, site.home / "copied"), "the trap would not have sprung for anyone"
    names = put_back(site.path, site.home / "notes", site.home / "kept")
    assert any(found.endswith(name) for found in names)
    for command in (spring, "git status", "git diff", "git add -A", "git status", "git commit -qm mine"):
        assert not site.types(command)
    for inner in ("lib", "mine", "nested"):
        if (site.path / inner).is_dir():
            assert not site.types("git status && git diff", site.path / inner)
    assert put_back(site.path, site.home / "notes", site.home / "kept") == names


def test_what_waits_to_be_removed_runs_nothing_however_long_it_waits(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    take_notes(open_folder(site.path), site.home / "notes")
    _where_things_wait_to_be_removed(site)
    assert site.types("git status"), "the trap would not have sprung for anyone"

    def too_much(*_arguments: object) -> None:
        raise TimeoutError

    monkeypatch.setattr(putback, "remove_tree", too_much)
    put_back(site.path, site.home / "notes", site.home / "kept")
    assert (site.path / ".git/pi-dispatch-aside").is_dir()
    assert not site.types("git status")


@pytest.mark.parametrize("place", ["sub/.git", ".git/hooks/sub/.git"])
def test_what_is_kept_leads_no_git_anywhere(place: str, site: Site) -> None:
    """An index may name the place where the agent's versions are kept, which an agent can learn."""
    take_notes(open_folder(site.path), site.home / "notes")
    sha = site.evil("evil")
    site.repository.write("evil/.git/objects/one")
    site.repository.write("evil/.git/refs/one")
    (site.path / place).parent.mkdir()
    if place == "sub/.git":
        (site.path / "evil/.git").rename(site.path / "evil/git")
        site.repository.write(place, f"gitdir: {site.path}/evil/git\n")
    else:
        (site.path / "evil/.git").rename(site.path / place)
    inner = os.path.dirname(place)
    site.index(f"../kept/{inner}", sha)
    shutil.copytree(site.path / inner, site.home / "kept" / inner)
    assert site.types("git status"), "the trap would not have sprung for anyone"
    shutil.rmtree(site.home / "kept")
    put_back(site.path, site.home / "notes", site.home / "kept")
    assert (site.home / "kept").is_dir()
    assert not site.types("git status")
