"""Guarded names that are links already before the run: the link is guarded, and what it leads to in the folder."""

import os
from pathlib import Path

import pytest

from pidispatch.values.errors import ConfigError
from tests.unit.workspace.guardfolder import GuardFolder, picture, remove


@pytest.fixture
def folder(tmp_path: Path) -> GuardFolder:
    folder = GuardFolder(tmp_path)
    (folder.path / "dotfiles").mkdir()
    (folder.path / "dotfiles/config").write_text("[core]\n")
    (folder.path / "dotfiles/hooks").mkdir()
    (folder.path / "dotfiles/hooks/pre-commit").write_text("#!/bin/sh\n")
    for name in ("config", "hooks"):
        remove(folder.git / name)
    return folder


def test_a_link_out_of_the_folder_is_put_back_and_what_it_leads_to_is_left_alone(folder: GuardFolder) -> None:
    (folder.git / "config").symlink_to(folder.outside / "canary")
    (folder.git / "hooks").symlink_to(folder.outside)
    folder.take()
    for name in ("config", "hooks"):
        remove(folder.git / name)
        (folder.git / name).symlink_to("/nowhere")
    tree = folder.tree()
    assert folder.put_back() == (".git/config", ".git/hooks")
    assert os.readlink(folder.git / "config") == str(folder.outside / "canary")
    assert os.readlink(folder.git / "hooks") == str(folder.outside)
    assert folder.tree() == tree


@pytest.mark.parametrize("absolute", [True, False])
def test_what_a_link_leads_to_in_the_folder_is_guarded_too(folder: GuardFolder, absolute: bool) -> None:
    base = str(folder.path) if absolute else ".."
    (folder.git / "config").symlink_to(f"{base}/dotfiles/config")
    (folder.git / "hooks").symlink_to(f"{base}/dotfiles/hooks/")
    before = picture(folder.path, "dotfiles") | picture(folder.git, "config") | picture(folder.git, "hooks")
    folder.take()
    (folder.path / "dotfiles/config").write_text("evil\n")
    (folder.path / "dotfiles/hooks/post-checkout").write_text("evil\n")
    (folder.path / "dotfiles/hooks/pre-commit").chmod(0o755)
    assert folder.put_back() == (
        "dotfiles/config",
        "dotfiles/hooks/post-checkout",
        "dotfiles/hooks/pre-commit",
    )
    now = picture(folder.path, "dotfiles") | picture(folder.git, "config") | picture(folder.git, "hooks")
    assert now == before
    assert (folder.kept / "dotfiles/hooks/post-checkout").read_text() == "evil\n"


@pytest.mark.parametrize("instead", ["link", "nothing", "file"])
def test_the_way_to_what_a_link_leads_to_is_made_again(folder: GuardFolder, instead: str) -> None:
    (folder.git / "config").symlink_to("../dotfiles/config")
    folder.take()
    (folder.path / "dotfiles").rename(folder.path / "other")
    if instead == "link":
        (folder.path / "dotfiles").symlink_to("other")
    elif instead == "file":
        (folder.path / "dotfiles").write_text("the agent's\n")
    (folder.path / "other/config").write_text("evil\n")
    assert folder.put_back() == ("dotfiles", "dotfiles/config")
    assert picture(folder.path, "dotfiles") == {
        "dotfiles": ("dir", 0o755, b""),
        "dotfiles/config": ("file", 0o644, b"[core]\n"),
    }
    assert (folder.path / "other/config").read_text() == "evil\n"


def test_a_link_to_what_is_not_there_yet_stays_without_end(folder: GuardFolder) -> None:
    (folder.git / "hooks").symlink_to("../.githooks")
    folder.take()
    (folder.path / ".githooks").mkdir()
    (folder.path / ".githooks/pre-commit").write_text("evil\n")
    assert folder.put_back() == (".githooks", ".githooks/pre-commit")
    assert not (folder.path / ".githooks").exists()


@pytest.mark.parametrize(
    "link", ["../detour/config", "../sub/../dotfiles/config", "..", ".", "../out/folder/dotfiles/config", "../leaves"]
)
def test_a_link_that_could_be_turned_elsewhere_is_refused(folder: GuardFolder, link: str) -> None:
    (folder.path / "detour").symlink_to("dotfiles")
    (folder.path / "out").symlink_to(folder.home)
    (folder.path / "leaves").symlink_to(folder.outside)
    (folder.git / "hooks").symlink_to(link)
    with pytest.raises(ConfigError) as caught:
        folder.take()
    assert caught.value.cause == "git-unusable"
    assert "'.git/hooks'" in caught.value.message
    assert "detour" in caught.value.message


def test_a_hook_that_is_a_link_is_guarded_as_a_link(folder: GuardFolder) -> None:
    (folder.git / "hooks").mkdir()
    (folder.git / "hooks/pre-commit").symlink_to("../../dotfiles/hooks/pre-commit")
    folder.take()
    (folder.path / "dotfiles/hooks/pre-commit").write_text("the agent's work\n")
    assert folder.put_back() == ()
    assert (folder.path / "dotfiles/hooks/pre-commit").read_text() == "the agent's work\n"
