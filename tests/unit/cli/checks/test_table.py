"""How checks are made: none takes another one with it, none is waited for long, and the order stays."""

import threading
from collections.abc import Callable, Iterable, Iterator

import pytest

from pidispatch.cli.checks.row import Finding, Row, Told, failed, passed, warned
from pidispatch.cli.checks.scene import Scene
from pidispatch.cli.checks.table import CHECKS, Check, look_around
from pidispatch.values.errors import ConfigError, InfraError


@pytest.fixture(autouse=True)
def _nothing_answers(monkeypatch: pytest.MonkeyPatch, tests_home: object) -> None:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tests_home}/no-engine.sock")
    monkeypatch.setenv("VALKEY_URL", f"unix://{tests_home}/no-server.sock")


def _two(_scene: Scene) -> Iterator[Finding]:
    yield passed("one")
    yield warned("two", "do it")


def _told(_scene: Scene) -> Iterator[Finding]:
    yield passed("so far")
    raise Told


def _refused(_scene: Scene) -> Iterator[Finding]:
    yield passed("so far")
    raise ConfigError("no such server", "server-password")


def _raising(error: Exception) -> Callable[[Scene], Iterable[Finding]]:
    """A check that finds nothing before it breaks off."""

    def look(_scene: Scene) -> Iterable[Finding]:
        raise error

    return look


_wordless = _raising(InfraError("it broke", "of-a-later-version"))
_disk = _raising(PermissionError(13, "Permission denied", "/secret/path"))
_bug = _raising(ValueError("https://user:pass@host is odd"))


def test_each_stands_alone_and_the_order_stays() -> None:
    looks = {"a": _two, "b": _told, "c": _refused, "d": _wordless, "e": _disk, "f": _bug, "g": _two}
    rows = look_around([Check(name, look, mend="mend it") for name, look in looks.items()])
    assert rows == [
        Row("a", "pass", "one", None),
        Row("a", "warn", "two", "do it"),
        Row("b", "pass", "so far", None),
        Row("c", "pass", "so far", None),
        Row("c", "fail", "no such server", "Set VALKEY_PASSWORD."),
        Row("d", "fail", "it broke", "mend it"),
        Row("e", "fail", "the look broke off: PermissionError: Permission denied", "mend what the message names"),
        Row(
            "f",
            "fail",
            "the look broke off: ValueError: https://[redacted]@host is odd",
            "mend what the message names",
        ),
        Row("g", "pass", "one", None),
        Row("g", "warn", "two", "do it"),
    ]


def test_one_that_hangs_is_no_answer_and_holds_nobody_up() -> None:
    release = threading.Event()

    def hang(_scene: Scene) -> Iterator[Finding]:
        release.wait()
        yield passed("at last")

    try:
        rows = look_around([Check("hangs", hang, "wait for it"), Check("two", _two)], whole_s=1.0)
    finally:
        release.set()
    assert rows[0] == Row("hangs", "fail", "no answer within 1 s", "wait for it")
    assert [row.check for row in rows[1:]] == ["two", "two"]


def test_what_passes_alone_has_no_remedy() -> None:
    assert passed("x").remedy is None
    assert (warned("x", "y").remedy, failed("x", "y").remedy) == ("y", "y")


def test_names_are_unlike_each_other_and_fit_a_program() -> None:
    names = [check.name for check in CHECKS]
    assert len(set(names)) == len(names)
    assert all(name.replace("-", "").isalpha() and name.islower() for name in names)


def test_where_nothing_answers_only_what_does_not_stand_on_it_is_told() -> None:
    rows = {row.check: row for row in look_around()}
    assert rows["server"].status == rows["engine"].status == "fail"
    assert "does not answer" in rows["server"].found
    assert rows["engine"].remedy is not None
    assert "docker info" in rows["engine"].remedy
    assert not rows.keys() & {
        "durability",
        "store",
        "workers",
        "engine-lock",
        "image",
        "named-images",
        "job-user",
        "egress",
    }
    assert rows.keys() >= {"settings", "credential", "state-folder", "jobs-folder", "logs-folder"}
