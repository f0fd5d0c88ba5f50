"""The folder mutex: one spelling for every spelling of a folder, and one job in it at a time."""

import os
import threading
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from structlog.testing import capture_logs

from pidispatch.gates.folder import FolderMutex, Scope, canonical_scope, scope_busy
from pidispatch.values.limits import Limits
from pidispatch.values.verdict import Admit, Defer, Why
from tests.unit.gates.job import NOW, job

BUSY = Defer(why=Why.SCOPE_BUSY, delay_ms=5000)

_names = st.text(st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="/"), min_size=1, max_size=8).filter(
    lambda name: name not in {".", ".."} and name == name.strip()
)
_folders = st.lists(_names, max_size=4).map(lambda names: "/" + "/".join(names))


@given(_folders, st.sampled_from(["{}/", "/{}", "//{}", "{}/.", "  {}\n", "{}/x/..", "/./{}", "/y/..{}"]))
def test_every_spelling_is_one_scope(folder: str, spelling: str) -> None:
    assert canonical_scope(spelling.format(folder)) == canonical_scope(folder)


@given(_folders)
def test_letters_that_look_the_same_are_one_scope(folder: str) -> None:
    spelt = {unicodedata.normalize(form, folder) for form in ("NFC", "NFD")}
    assert len({canonical_scope(one) for one in spelt}) == 1


@given(st.text(st.characters(exclude_characters="\0"), max_size=40))
def test_a_scope_is_absolute_and_plain_whatever_is_given(text: str) -> None:
    scope = canonical_scope(text)
    assert scope.startswith("/")
    assert not scope.startswith("//")
    assert scope == "/" or not scope.endswith("/")
    assert not {"", ".", ".."} & set(scope.split("/")[1:]) or scope == "/"
    assert scope == unicodedata.normalize("NFC", scope)


@pytest.mark.parametrize(
    ("folder", "scope"),
    [
        ("/srv/site", "/srv/site"),
        ("/srv//site/", "/srv/site"),
        ("//srv/site", "/srv/site"),
        ("/srv/x/../site", "/srv/site"),
        ("  /srv/site ", "/srv/site"),
        ("/..", "/"),
        ("//", "/"),
        ("/srv/Site", "/srv/Site"),
        ("/srv/cafe\u0301", "/srv/caf\u00e9"),
    ],
)
def test_known_spellings(folder: str, scope: str) -> None:
    assert canonical_scope(folder) == scope


def test_a_relative_folder_is_of_the_current_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert canonical_scope("site") == f"{tmp_path}/site"


@pytest.mark.example("ch2 EX-25", "other spellings of a folder with a job in it come back after 5 s; no path is logged")
def test_other_spellings_of_a_busy_folder_come_back_later() -> None:
    gate = FolderMutex(Limits())
    assert gate.check(job(1, "/srv/site"), NOW) == Admit()
    with capture_logs() as events:
        verdicts = [gate.check(job(2, "/srv/site/"), NOW), gate.check(job(3, "/srv/x/../site"), NOW)]
    assert verdicts == [BUSY, BUSY]
    assert events == [
        {"event": "scope_busy_deferred", "jobId": f"local-{n}", "kind": "local", "delayMs": 5000, "log_level": "info"}
        for n in (2, 3)
    ]
    assert "srv" not in str(events)
    assert gate.check(job(4, "/srv/sites"), NOW) == Admit()


@pytest.mark.parametrize(
    ("held", "asked"),
    [
        ("site", "site/lib"),
        ("site/lib", "site"),
        ("site", "link"),
        ("link", "site"),
        ("link", "site/lib"),
        ("site/lib", "link"),
    ],
)
def test_folders_that_reach_into_one_another_are_one(tmp_path: Path, held: str, asked: str) -> None:
    (tmp_path / "site" / "lib").mkdir(parents=True)
    (tmp_path / "link").symlink_to("site")
    (tmp_path / "beside").mkdir()
    gate = FolderMutex(Limits())
    assert gate.check(job(1, tmp_path / held), NOW) == Admit()
    assert gate.check(job(2, tmp_path / asked), NOW) == BUSY
    assert gate.check(job(3, tmp_path / "beside"), NOW) == Admit()
    gate.release(job(1, tmp_path / held))
    assert gate.check(job(2, tmp_path / asked), NOW) == Admit()


def test_a_folder_that_is_mounted_twice_is_one() -> None:
    here, there = (Scope(f"/{name}", Path(f"/{name}"), (1, 7)) for name in "ab")
    assert here.meets(there)
    assert not here.meets(Scope("/b", Path("/b"), (1, 8)))
    assert not Scope("/a", Path("/a"), None).meets(Scope("/b", Path("/b"), None))


def test_a_link_that_is_turned_round_later_changes_nothing(tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    (tmp_path / "link").symlink_to("one")
    gate = FolderMutex(Limits())
    gate.check(job(1, tmp_path / "link"), NOW)
    os.unlink(tmp_path / "link")
    (tmp_path / "link").symlink_to("two")
    assert gate.check(job(2, tmp_path / "one"), NOW) == BUSY
    gate.release(job(1, tmp_path / "link"))
    assert gate.check(job(2, tmp_path / "one"), NOW) == Admit()


def test_a_folder_that_cannot_be_looked_at_is_one_by_its_spelling(tmp_path: Path) -> None:
    gate = FolderMutex(Limits())
    gone = tmp_path / "gone"
    assert gate.check(job(1, gone), NOW) == Admit()
    assert gate.check(job(2, gone / "x" / ".."), NOW) == BUSY
    assert gate.check(job(3, "/srv/a\0b"), NOW) == Admit()


def test_a_second_release_frees_nobody_elses_folder() -> None:
    gate = FolderMutex(Limits())
    gate.check(job(1), NOW)
    gate.release(job(1))
    assert gate.check(job(2), NOW) == Admit()
    gate.release(job(1))
    assert gate.check(job(3), NOW) == BUSY


def test_a_job_is_not_let_in_beside_itself() -> None:
    gate = FolderMutex(Limits())
    gate.check(job(1), NOW)
    assert gate.check(job(1, "/srv/other"), NOW) == BUSY


def test_of_many_threads_one_gets_the_folder() -> None:
    gate, verdicts, barrier = FolderMutex(Limits()), list[object](), threading.Barrier(16)

    def come(number: int) -> None:
        barrier.wait(10)
        verdicts.append(gate.check(job(number), NOW))

    threads = [threading.Thread(target=come, args=(number,)) for number in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert [verdicts.count(Admit()), verdicts.count(BUSY)] == [1, 15]


def test_the_delay_is_that_of_the_limits() -> None:
    assert scope_busy(job(1), Limits(scope_busy_recheck_ms=7)).delay_ms == 7
