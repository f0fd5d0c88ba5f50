"""The grammar of the egress lists: what is an entry, what is refused with which words, and what squid is given."""

import ast
import ipaddress
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pidispatch.config import allowlist
from pidispatch.config.allowlist import ALLOWLIST, PRIVATE, ListError, Lists, Texts, parse, read, render

LABELS = st.from_regex(r"[a-z]([a-z0-9-]{0,8}[a-z0-9])?", fullmatch=True)
HOSTS = st.lists(LABELS, min_size=1, max_size=4).map(".".join)
ENTRIES = st.builds(lambda dot, host: dot + host, st.sampled_from(["", "."]), HOSTS)


def lists(allowed: str, private: str | None = None) -> Lists:
    return parse(Texts(allowed, private))


def faults(allowed: str | None, private: str | None = None) -> list[str]:
    with pytest.raises(ListError) as raised:
        parse(Texts(allowed, private))
    assert str(raised.value) == "\n".join(map(str, raised.value.faults))
    return str(raised.value).split("\n")


def matches(entries: tuple[str, ...], host: str) -> bool:
    """What squid's dstdomain lets through."""
    return any(entry == host or (entry[0] == "." and f".{host}".endswith(entry)) for entry in entries)


def test_comments_blank_lines_case_and_line_ends_do_not_count() -> None:
    text = "# a comment\r\n\r\n  API.Example.COM \t# why\r\n\n.git.test\nlast.test"
    assert lists(text).allowed == (".git.test", "api.example.com", "last.test")
    assert lists("", "") == Lists((), ())


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ("https://example.com", "is a URL"),
        ("https://example.com:443/x?y", "is a URL"),
        ("example.com:443", "names a port"),
        ("example.com/", "holds a slash"),
        ("10.0.0.0/8", "holds a slash"),
        ("*.example.com", "holds a wildcard"),
        ("example.*", "holds a wildcard"),
        ("192.0.2.1", "is an IP address"),
        (".192.0.2.1", "is an IP address"),
        ("2001:db8::1", "is an IP address"),
        ("[2001:db8::1]", "is an IP address"),
        ("::ffff:192.0.2.1", "is an IP address"),
        ("192.0.2", "ends in a number"),
        ("127.1", "ends in a number"),
        ("0x7f000001", "ends in a number"),
        ("x.0x7f", "ends in a number"),
        ("2130706433", "ends in a number"),
        ("two hosts.test", "holds a blank"),
        ("a.test\tb.test", "holds a blank"),
        ("a.test\u00a0b.test", "holds a blank"),
        ("example.com.", "ends with a dot"),
        (".", "ends with a dot"),
        ("..example.com", "is not the name of a host"),
        ("a..b", "is not the name of a host"),
        ("-a.test", "is not the name of a host"),
        ("a-.test", "is not the name of a host"),
        ("a_b.test", "is not the name of a host"),
        ("a.test;", "is not the name of a host"),
        ('"a.test"', "is not the name of a host"),
        ("a.test\x00", "is not the name of a host"),
        ("a" * 64 + ".test", "is not the name of a host"),
        (".".join(["abcdefg"] * 32), "is longer than 253 characters"),
        ("bücher.test", "is not plain ASCII"),
        ("\ufeffa.test", "is not plain ASCII"),
        ("\u212aelvin.test", "is not plain ASCII"),
    ],
)
def test_what_is_no_entry_is_refused_by_its_line(entry: str, words: str) -> None:
    [fault] = faults(f"# one\n{entry}\n")
    assert fault.startswith(f"{ALLOWLIST}, line 2: {entry.strip()!r} {words}")
    # After the reason, what to write instead.
    assert len(fault.rpartition(". ")[2]) > 10


def test_all_faults_of_both_lists_come_at_once() -> None:
    found = faults("a.test:1\nb.test\n*.c.test\n", "b.test\n1.2.3.4\nd.test\n")
    assert [fault.split(":")[0] for fault in found] == [
        f"{ALLOWLIST}, line 1",
        f"{ALLOWLIST}, line 3",
        f"{PRIVATE}, line 2",
        f"{PRIVATE}, line 3",
    ]


def test_a_missing_allowlist_is_a_fault_and_a_missing_private_list_is_none() -> None:
    assert faults(None, "a.test") == [
        f"{ALLOWLIST} is missing. Write one host per line into it; an empty file allows nothing"
    ]
    assert lists("a.test", None) == Lists(("a.test",), ())


@pytest.mark.parametrize(
    ("private", "fits"),
    [
        *[(private, True) for private in ("x.test", "a.x.test", ".a.x.test", ".x.test", "y.test")],
        *[(private, False) for private in (".y.test", "a.y.test", "xx.test", ".test")],
    ],
)
def test_a_private_entry_that_would_do_nothing_is_refused(private: str, fits: bool) -> None:
    allowed = ".X.test\ny.test\n"
    if fits:
        assert lists(allowed, private).private == (private,)
    else:
        assert f"{private!r} is covered by no line of {ALLOWLIST}" in faults(allowed, private)[0]


def test_what_another_entry_covers_is_not_rendered() -> None:
    allowed = lists("x.test\n.x.test\na.x.test\n.a.x.test\nX.TEST\nax.test\n.b.test\nb.a.b.test\n").allowed
    assert allowed == (".b.test", ".x.test", "ax.test")
    assert render(allowed) == ".b.test\n.x.test\nax.test\n"
    assert render(()) == ""


@given(st.lists(ENTRIES, max_size=8), HOSTS)
def test_the_rendered_list_lets_through_what_the_written_one_does(entries: list[str], host: str) -> None:
    allowed = lists("\n".join(entries)).allowed
    for name in (host, *[entry.removeprefix(".") for entry in entries], *[f"sub{entry}" for entry in entries]):
        assert matches(allowed, name) == matches(tuple(entries), name)
    # Squid ends itself where one entry covers another.
    for entry in allowed:
        rest = tuple(other for other in allowed if other != entry)
        assert not matches(rest, entry.removeprefix("."))
        assert not (entry[0] == "." and matches(rest, f"sub{entry}"))


@given(st.lists(ENTRIES, max_size=5))
def test_parsing_what_was_rendered_changes_nothing(entries: list[str]) -> None:
    allowed = lists("\n".join(entries)).allowed
    assert lists(render(allowed)).allowed == allowed


@given(st.text(max_size=40), st.text(max_size=40))
def test_any_text_is_lists_or_faults_and_never_more_than_names(allowed: str, private: str) -> None:
    found = Lists((), ())
    told = ["one fault or lists"]
    try:
        found = lists(allowed, private)
    except ListError as error:
        told = [str(fault) for fault in error.faults]
    assert told
    assert "\n" not in "".join(told)
    for entry in (*found.allowed, *found.private):
        name = entry.removeprefix(".")
        assert set(entry) <= set("abcdefghijklmnopqrstuvwxyz0123456789-.")
        assert all(0 < len(label) <= 63 for label in name.split("."))
        with pytest.raises(ValueError):
            ipaddress.ip_address(name)


def test_files_are_read_as_they_are(tmp_path: Path) -> None:
    assert read(tmp_path) == Texts(None, None)
    (tmp_path / ALLOWLIST).write_bytes(b"a.test\n\xff.test\n")
    assert read(tmp_path) == Texts("a.test\n\ufffd.test\n", None)
    with pytest.raises(ListError, match=r"line 2: .* is not plain ASCII"):
        parse(read(tmp_path))
    (tmp_path / PRIVATE).mkdir()
    with pytest.raises(OSError):
        read(tmp_path)


def test_the_image_can_use_it_by_itself() -> None:
    tree = ast.parse(Path(allowlist.__file__).read_text())
    imported = {name.name for node in ast.walk(tree) if isinstance(node, ast.Import) for name in node.names}
    imported |= {str(node.module) for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert {name.partition(".")[0] for name in imported} <= set(sys.stdlib_module_names)
