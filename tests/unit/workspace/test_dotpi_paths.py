"""Which paths of `.pi` travel, and that none of them leads anywhere else."""

import os
from pathlib import Path, PurePosixPath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pidispatch.values.limits import Limits
from pidispatch.workspace.dotpi import output_path


@pytest.mark.parametrize(
    ("name", "travels"),
    [
        ("APPEND_SYSTEM.md", True),
        ("append_system.md", False),
        ("SYSTEM.md", False),
        ("skills/SKILL.md", False),
        ("skills/a", False),
        ("skills/a/SKILL.md", True),
        ("Skills/a/SKILL.md", False),
        ("skills/A/SKILL.md", False),
        ("skills/a.b/SKILL.md", False),
        ("skills/a_b-c/SKILL.md", True),
        ("skills/-a/SKILL.md", False),
        ("skills/a-/SKILL.md", False),
        (f"skills/{'a' * 64}/SKILL.md", True),
        (f"skills/{'a' * 65}/SKILL.md", False),
        ("skills/a\n/SKILL.md", False),
        ("skills/a/SKILL.md\n", False),
        ("skills/a/1/2/3/4", True),
        ("skills/a/1/2/3/4/5", False),
        ("skills/a/.hidden", False),
        ("skills/a/.git/config", False),
        ("skills/a/x.", False),
        ("skills/a/_x", False),
        ("skills/a/a..b", True),
        ("skills/a/../b", False),
        ("skills/a/./b", False),
        ("skills/a//b", False),
        ("skills/a/b/", False),
        ("skills/a/with space", False),
        ("skills/a/back\\slash", False),
        ("skills/a/x:y", False),
        ("skills/a/ü", False),
        ("skills/a/\N{KELVIN SIGN}", False),
        ("skills/a/\N{LATIN SMALL LETTER LONG S}", False),
        ("skills/a/con", False),
        ("skills/a/CON.tar.gz", False),
        ("skills/a/nul.md/x.md", False),
        ("skills/a/Com1", False),
        ("skills/a/lpt9.txt", False),
        ("skills/a/com0", True),
        ("skills/a/com10", True),
        ("skills/a/console", True),
        ("skills/a/x.con", True),
        ("prompts/a.md", False),
        ("extensions/a/SKILL.md", False),
        ("settings.json", False),
        ("", False),
    ],
)
def test_a_path_travels_or_stays(name: str, travels: bool) -> None:
    output = output_path(f".pi/{name}".encode(), Limits())
    assert output == (PurePosixPath(name) if travels else None)


def test_a_path_of_200_characters_is_the_longest() -> None:
    path = f"skills/{'a' * 64}/{'b' * 64}/{'c' * 63}"
    assert len(path) == 200
    assert output_path(f".pi/{path}".encode(), Limits()) == PurePosixPath(path)
    assert output_path(f".pi/{path}c".encode(), Limits()) is None


_PIECES = st.sampled_from(
    [
        "",
        ".",
        "..",
        "/",
        "//",
        "a",
        "A",
        "SKILL.md",
        "con",
        "nul.x",
        "~",
        "$x",
        "\\",
        "\n",
        "\0",
        "ß",
        "x" * 64,
        "-",
        ".",
    ]
)
_PATHS = st.one_of(
    st.binary(),
    st.lists(st.one_of(_PIECES, st.text(max_size=4))).map("/".join).map(lambda text: text.encode("utf-8", "replace")),
    st.lists(st.text("aA0._-/", max_size=9), max_size=6).map("/".join).map(str.encode),
)


@given(_PATHS, st.sampled_from([b"", b".pi/", b".pi/skills/", b".pi/skills/a/"]))
def test_no_path_leads_out_of_the_target(path: bytes, prefix: bytes) -> None:
    output = output_path(prefix + path, Limits())
    if output is None:
        return
    assert prefix + path == b".pi/" + str(output).encode("ascii")
    assert not output.is_absolute()
    assert Path(os.path.normpath(Path("/inputs/pi") / output)) == Path("/inputs/pi") / output
    assert output == PurePosixPath("APPEND_SYSTEM.md") or output.parts[0] == "skills"
    for segment in output.parts:
        assert segment[0].isalnum()
        assert segment[-1].isalnum()
        assert segment.isascii()
        assert len(segment) <= 64


@given(st.lists(st.text("abcxyz019", min_size=1, max_size=9), min_size=1, max_size=4))
def test_plain_paths_of_a_skill_travel(segments: list[str]) -> None:
    path = "/".join(["skills", "a", *(f"{segment}.md" for segment in segments)])
    assert output_path(f".pi/{path}".encode(), Limits()) == PurePosixPath(path)
