"""Which folders a job may work in, and why the others are refused."""

import os
import shutil
from pathlib import Path

import pytest

from pidispatch.values.errors import ConfigError, InfraError
from pidispatch.workspace.folder import Folder, open_folder
from pidispatch.workspace.shape import check_shape
from tests.unit.workspace.repository import Repository


def refusal(path: Path) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        check_shape(open_folder(path))
    assert caught.value.exit_code == 2
    assert str(path.parent) not in caught.value.message
    return caught.value


def test_tells_the_resolved_path_and_the_owner(repository: Repository, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(repository.path)
    facts = repository.path.stat()
    expected = Folder(Path(os.path.realpath(repository.path)), facts.st_uid, facts.st_gid)
    assert open_folder(repository.path) == expected
    assert open_folder(tmp_path / "link") == expected
    assert open_folder(tmp_path / "link" / ".." / "folder") == expected
    assert expected.git_dir == expected.path / ".git"


def test_a_missing_folder_is_refused(tmp_path: Path) -> None:
    error = refusal(tmp_path / "absent")
    assert error.cause == "folder-missing"
    assert "'absent'" in error.message


def test_a_path_below_a_file_is_a_missing_folder(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert refusal(tmp_path / "file" / "below").cause == "folder-missing"


def test_a_dangling_link_is_a_missing_folder(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "absent")
    assert refusal(tmp_path / "link").cause == "folder-missing"


def test_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert refusal(tmp_path / "file").cause == "folder-missing"


def test_a_folder_without_git_is_refused_with_the_commands_to_type(tmp_path: Path) -> None:
    (tmp_path / "plain").mkdir()
    error = refusal(tmp_path / "plain")
    assert error.cause == "folder-not-git"
    assert "git init && git add -A && git commit -m start" in error.message


def test_a_folder_inside_of_a_repository_is_refused(repository: Repository) -> None:
    (repository.path / "sub").mkdir()
    assert refusal(repository.path / "sub").cause == "folder-not-git"


def test_a_linked_worktree_is_refused(repository: Repository, tmp_path: Path) -> None:
    repository.git("worktree", "add", "--quiet", str(tmp_path / "linked"))
    error = refusal(tmp_path / "linked")
    assert error.cause == "worktree"
    assert "git clone" in error.message
    assert open_folder(repository.path).path == repository.path


def test_a_submodule_is_refused(repository: Repository) -> None:
    inner = Repository(repository.path / "inner")
    shutil.move(inner.path / ".git", repository.path / ".git" / "modules")
    inner.write(".git", "gitdir: ../.git/modules\n")
    assert refusal(inner.path).cause == "worktree"


def test_a_linked_git_directory_is_refused(repository: Repository, tmp_path: Path) -> None:
    shutil.move(repository.path / ".git", tmp_path / "elsewhere")
    (repository.path / ".git").symlink_to(tmp_path / "elsewhere")
    assert refusal(repository.path).cause == "worktree"


def test_a_git_directory_with_a_commondir_is_refused(repository: Repository) -> None:
    repository.write(".git/commondir", "/elsewhere\n")
    assert refusal(repository.path).cause == "worktree"


def test_a_dangling_commondir_is_refused(repository: Repository) -> None:
    (repository.path / ".git" / "commondir").symlink_to("/nonexistent")
    assert refusal(repository.path).cause == "worktree"


def test_a_path_that_is_not_utf8_is_refused(tmp_path: Path) -> None:
    Repository(tmp_path / os.fsdecode(b"caf\xe9"))
    error = refusal(tmp_path / os.fsdecode(b"caf\xe9"))
    assert error.cause == "folder-name"
    assert error.message.isprintable()


def test_a_name_with_control_characters_is_escaped(tmp_path: Path) -> None:
    assert refusal(tmp_path / "a\x1b[31m\n").message.isprintable()


def test_a_loop_of_links_may_pass_and_names_no_path(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    with pytest.raises(InfraError) as caught:
        open_folder(tmp_path / "loop")
    assert caught.value.cause == "folder-unreadable"
    assert str(tmp_path) not in caught.value.message


@pytest.mark.parametrize("hidden", ["folder", ".git", "commondir"])
def test_what_may_not_be_examined_is_not_called_absent(
    repository: Repository, monkeypatch: pytest.MonkeyPatch, hidden: str
) -> None:
    for name in ("stat", "lstat"):
        real = getattr(Path, name)

        def denied(self: Path, *, _real: object = real, **named: bool) -> os.stat_result:
            if self.name == hidden:
                raise PermissionError(13, "Permission denied", str(self))
            assert callable(_real)
            result = _real(self, **named)
            assert isinstance(result, os.stat_result)
            return result

        monkeypatch.setattr(Path, name, denied)
    with pytest.raises(InfraError) as caught:
        check_shape(open_folder(repository.path))
    assert caught.value.cause == "folder-unreadable"
    assert f"{hidden!r}" in caught.value.message
    assert "cannot be examined: Permission denied" in caught.value.message
