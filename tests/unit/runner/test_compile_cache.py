"""The compiled code that the image brings along: a help, never a reason to fail."""

import os
from pathlib import Path

from pirunner import compile_cache


def test_the_images_folder_gets_the_name_that_node_looks_for(tmp_path: Path) -> None:
    baked = tmp_path / "baked" / "v22.23.3-x64-9ac5647c-0"
    baked.mkdir(parents=True)
    (baked / "entry").write_text("compiled")

    folder = compile_cache.offer(tmp_path / "baked", tmp_path)

    assert folder == tmp_path / ".compile-cache"
    assert (folder / f"v22.23.3-x64-9ac5647c-{os.getuid()}" / "entry").read_text() == "compiled"


def test_an_image_without_one_and_a_home_that_cannot_be_written_cost_nothing_but_time(tmp_path: Path) -> None:
    assert compile_cache.offer(tmp_path / "nowhere", tmp_path) is None
    (tmp_path / "empty").mkdir()
    assert compile_cache.offer(tmp_path / "empty", tmp_path) is None
    (tmp_path / "two" / "a-0").mkdir(parents=True)
    (tmp_path / "two" / "b-0").mkdir()
    assert compile_cache.offer(tmp_path / "two", tmp_path) is None
    (tmp_path / "one" / "a-0").mkdir(parents=True)
    (tmp_path / "file").write_text("")
    assert compile_cache.offer(tmp_path / "one", tmp_path / "file") is None
