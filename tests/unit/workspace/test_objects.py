"""Objects of the repository: what is hashed, and that the commit's trees are believed before a listing."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from pidispatch.values.errors import ConfigError
from pidispatch.values.limits import Limits
from pidispatch.workspace.objects import Entry, list_folder, read_blobs
from tests.unit.workspace.conftest import Opener
from tests.unit.workspace.repository import Repository
from tests.unit.workspace.trees import bare_host_git, commit_tree, loose, object_id, rewrite


@pytest.fixture
def nested(repository: Repository) -> Repository:
    """A commit with `box/one` and `box/deep/two`."""
    repository.write("box/one", "1\n")
    repository.write("box/deep/two", "22\n")
    repository.commit()
    return repository


def listing(repository: Repository) -> list[Entry]:
    found = list_folder(bare_host_git(repository), "box")
    assert found is not None
    return found


def test_lists_folders_and_files_at_any_depth(nested: Repository) -> None:
    found = [(entry.mode, entry.kind, entry.size, entry.path) for entry in listing(nested)]
    assert found == [
        ("040000", "tree", None, b"box"),
        ("040000", "tree", None, b"box/deep"),
        ("100644", "blob", 3, b"box/deep/two"),
        ("100644", "blob", 2, b"box/one"),
    ]


def test_what_is_no_folder_is_listed_alone(nested: Repository) -> None:
    found = list_folder(bare_host_git(nested), "a.txt")
    assert found is not None
    assert [(entry.mode, entry.path) for entry in found] == [("100644", b"a.txt")]
    assert read_blobs(bare_host_git(nested), "a.txt", found, found) == [b"one\ntwo\n"]
    assert list_folder(bare_host_git(nested), "absent") == []
    assert list_folder(bare_host_git(nested), "two") == []


def test_reads_blobs_in_the_order_asked_for(nested: Repository) -> None:
    listed = listing(nested)
    assert read_blobs(bare_host_git(nested), "box", listed, [listed[3], listed[2], listed[3]]) == [
        b"1\n",
        b"22\n",
        b"1\n",
    ]


def test_names_are_taken_as_they_are(repository: Repository) -> None:
    names = ["*", ":(exclude)x", "line\nbreak", "tab\tx", '"quoted"', "ü"]
    for name in names:
        repository.write(f"box/{name}", name)
    repository.commit()
    listed = listing(repository)
    blobs = [entry for entry in listed if entry.kind == "blob"]
    assert {entry.path for entry in blobs} == {f"box/{name}".encode() for name in names}
    contents = read_blobs(bare_host_git(repository), "box", listed, blobs)
    assert {b"box/" + content for content in contents} == {entry.path for entry in blobs}


@pytest.mark.parametrize(
    "lie",
    [
        lambda listed: listed[:-1],
        lambda listed: [*listed, replace(listed[-1], path=b"box/three")],
        lambda listed: [*listed[:-1], replace(listed[-1], path=b"box/three")],
        lambda listed: [*listed[:-1], replace(listed[-1], mode="120000")],
        lambda listed: [*listed[:-1], replace(listed[-1], mode="100755")],
        lambda listed: [*listed[:-1], replace(listed[-1], oid=listed[-2].oid, size=3)],
        lambda listed: [*listed[:-1], replace(listed[-1], size=3)],
        lambda listed: [*listed[:-1], replace(listed[-1], oid=listed[1].oid)],
        lambda listed: [replace(listed[0], path=b"other"), *listed[1:]],
        lambda listed: [replace(listed[0], oid=listed[-1].oid), *listed[1:]],
    ],
)
def test_a_listing_that_differs_from_the_trees_is_refused(
    nested: Repository, lie: Callable[[list[Entry]], list[Entry]]
) -> None:
    """Two packs may hold different objects under one id, and git takes now the one, now the other."""
    told = lie(listing(nested))
    with pytest.raises(ConfigError) as caught:
        read_blobs(bare_host_git(nested), "box", told, [told[-1]])
    assert caught.value.cause == "git-unusable"


@pytest.mark.parametrize("what", ["HEAD", "HEAD^{tree}", "HEAD:box", "HEAD:box/deep", "HEAD:box/one"])
@pytest.mark.parametrize("loss", ["removed", "rubbish", "empty"])
def test_a_damaged_object_is_refused(nested: Repository, what: str, loss: str) -> None:
    git, listed = bare_host_git(nested), listing(nested)
    path = loose(nested, nested.git("rev-parse", what))
    path.unlink()
    if loss != "removed":
        path.write_bytes(b"rubbish" if loss == "rubbish" else b"")
    with pytest.raises(ConfigError) as caught:
        read_blobs(git, "box", listed, [listed[-1]])
    assert caught.value.cause == "git-unusable"
    assert "git fsck" in caught.value.message


def test_a_rewritten_commit_is_refused(nested: Repository, opened: Opener) -> None:
    git = opened(nested)
    listed = list_folder(git, "box")
    assert listed is not None
    nested.write("box/one", "evil\n")
    other = nested.commit()
    content = nested.git("cat-file", "commit", other).encode() + b"\n"
    rewrite(nested, git.sha, "commit", content)
    with pytest.raises(ConfigError):
        read_blobs(git, "box", listed, [])


def test_a_rewritten_root_is_refused(nested: Repository, opened: Opener) -> None:
    git = opened(nested)
    listed = list_folder(git, "box")
    assert listed is not None
    nested.write("box/one", "evil\n")
    nested.commit()
    content = nested.git("cat-file", "tree", "HEAD^{tree}").encode("utf-8", "surrogateescape")
    rewrite(nested, nested.git("rev-parse", f"{git.sha}^{{tree}}"), "tree", content)
    with pytest.raises(ConfigError):
        read_blobs(git, "box", listed, [])


def test_a_tree_is_no_commit(nested: Repository) -> None:
    git = bare_host_git(nested)
    tree = replace(git, sha=nested.git("rev-parse", "HEAD^{tree}"))
    with pytest.raises(ConfigError):
        read_blobs(tree, "box", listing(nested), [])


def test_a_tree_that_is_malformed_is_refused(repository: Repository) -> None:
    good = object_id(repository, "blob", b"1\n")
    commit_tree(repository, {"box": {"one": ("100644", good)}})
    listed = listing(repository)
    malformed = object_id(repository, "tree", b"100644 one\0" + bytes.fromhex(good) + b"rest")
    commit_tree(repository, {"box": ("40000", malformed)})
    told = [replace(listed[0], oid=malformed), *listed[1:]]
    with pytest.raises(ConfigError):
        read_blobs(bare_host_git(repository), "box", told, [told[-1]])
    with pytest.raises(ConfigError):
        list_folder(bare_host_git(repository), "box")


def test_more_output_than_is_kept_is_refused(repository: Repository) -> None:
    repository.write("box/one", "x" * 4096)
    repository.commit()
    git = bare_host_git(repository, Limits(pi_total_bytes=1, git_output_bytes=1024))
    listed = listing(repository)
    with pytest.raises(ConfigError):
        read_blobs(git, "box", listed, [listed[-1]])
