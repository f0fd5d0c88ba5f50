"""Marks in the triggers file: whose entry it is, the one key that is written, and what is left alone."""

import itertools
import json
import os
import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pidispatch.config.settings import Settings
from pidispatch.triggers.disarm import PATIENT, Disarming, Mark, disarm, mark_of, rearm, triggers_path
from pidispatch.triggers.writer import Patience
from pidispatch.values.errors import ConfigError, InfraError
from pidispatch.values.job import ForgeJob
from tests.support.oneshots import MARK, entries_of, fired_by, marked, rule, write

OWN = Mark("2026-05-04T03:00:00Z", "gh-1")
CRON = {
    "on": {"type": "cron", "id": "nightly", "pattern": "0 3 * * *"},
    "run": {"kind": "local", "folder": "/srv/site", "flow": "tidy", "task": "tidy up"},
}
COMMAND = rule(command="wf deploy")
PULL = rule(kind="pull_request")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "triggers.json"


@pytest.mark.example("ch1 E6", "after the record the entry has a mark with the instant and the job, and nothing else")
@pytest.mark.parametrize("entry", [rule(), COMMAND, PULL])
def test_exactly_one_key_is_written(file: Path, entry: dict[str, Any]) -> None:
    noted = {**entry, "note": "ours", "on": {"more": [1], **entry["on"]}, "run": {**entry["run"], "more": "ü"}}
    write(file, CRON, rule(41), noted)
    assert disarm(file, fired_by(entry, 2), OWN) == Disarming("disarmed")
    on = {**noted["on"], "disarmed": {"at": "2026-05-04T03:00:00Z", "jobId": "gh-1"}}
    assert entries_of(file) == [CRON, rule(41), {**noted, "on": on}]


def test_a_mark_that_stands_stays_whosever_it_is(file: Path) -> None:
    write(file, marked(rule()))
    assert disarm(file, fired_by(rule()), OWN) == Disarming("already")
    assert entries_of(file)[0]["on"]["disarmed"] == MARK


def test_a_mark_without_a_job_is_one_too(file: Path) -> None:
    write(file, rule())
    assert disarm(file, fired_by(rule()), Mark("2026-05-04T03:00:00Z")) == Disarming("disarmed")
    assert entries_of(file)[0]["on"]["disarmed"] == {"at": "2026-05-04T03:00:00Z"}
    assert mark_of(file, fired_by(rule())) == Mark("2026-05-04T03:00:00Z", None)


CHANGED: dict[str, list[Any]] = {
    "gone": [],
    "another number": [rule(41)],
    "another flow": [rule(flow="other")],
    "a command now": [COMMAND],
    "another type": [PULL],
    "another forge": [rule(flow="deploy", kind="issue") | {"run": {"kind": "forgejo", "flow": "deploy"}}],
    "not once any more": [{**rule(), "on": {"type": "issue", "action": ["closed"], "number": 40}}],
    "a schedule": [CRON],
}


@pytest.mark.parametrize("now", CHANGED.values(), ids=CHANGED)
def test_an_entry_that_is_another_rule_by_now_is_left_alone(file: Path, now: list[Any]) -> None:
    write(file, *now)
    before = file.read_bytes()
    assert disarm(file, fired_by(rule()), OWN) == Disarming("failed", "entry-changed")
    assert file.read_bytes() == before
    assert mark_of(file, fired_by(rule())) is None


@pytest.mark.parametrize("now", [CHANGED["another number"], CHANGED["a command now"], CHANGED["another type"]])
def test_a_mark_of_another_rule_is_nothing_to_the_job(file: Path, now: list[Any]) -> None:
    write(file, *map(marked, now))
    assert mark_of(file, fired_by(rule())) is None


def test_a_command_job_is_told_from_one_with_a_flow(file: Path) -> None:
    write(file, marked(COMMAND))
    assert mark_of(file, fired_by(COMMAND)) == Mark(MARK["at"], MARK["jobId"])
    assert mark_of(file, fired_by(rule(command="wf other"))) is None


def test_a_pull_request_is_known_by_the_number_of_its_target(file: Path) -> None:
    write(file, marked(PULL))
    assert fired_by(PULL).matched.number is None
    assert mark_of(file, fired_by(PULL)) is not None
    assert mark_of(file, fired_by(rule(41, "pull_request"))) is None


@pytest.mark.example("ch2 EX-30", "a triggers file that cannot be read lets the job run, and is left as it is")
@pytest.mark.parametrize("text", ["{", "[]", '{"triggers": 1}', '{"triggers": [], "triggers": []}', "\x00"])
def test_a_file_that_cannot_be_read_says_nothing_and_is_left_alone(file: Path, text: str) -> None:
    file.write_text(text)
    assert mark_of(file, fired_by(rule())) is None
    told = disarm(file, fired_by(rule()), OWN)
    assert told.outcome == "failed"
    assert told.reason in ("operator-file", "entry-changed")
    assert file.read_text() == text


def test_where_there_is_no_file_nothing_is_made(file: Path) -> None:
    assert disarm(file, fired_by(rule()), OWN) == Disarming("unavailable")
    assert mark_of(file, fired_by(rule())) is None
    assert list(file.parent.iterdir()) == []


def test_a_mark_counts_beside_another_entry_that_is_broken_and_none_is_written_there(file: Path) -> None:
    write(file, marked(rule()), rule(0), rule(41))
    assert mark_of(file, fired_by(rule())) is not None
    assert disarm(file, fired_by(rule(41), 2), OWN) == Disarming("failed", "operator-file")


@pytest.mark.parametrize(
    ("mark", "read"),
    [
        ({}, Mark()),
        ({"at": " ", "jobId": 7}, Mark()),
        ({"at": "long ago"}, Mark("long ago")),
        (True, None),
        ("gh-0", None),
        (None, None),
    ],
)
def test_a_mark_is_read_as_far_as_it_can_be(file: Path, mark: Any, read: Mark | None) -> None:
    write(file, marked(rule(), mark))
    assert mark_of(file, fired_by(rule())) == read


def test_a_lock_that_stays_is_told_as_one(file: Path) -> None:
    write(file, rule())
    file.with_name("triggers.json.lock").touch()
    slept: list[float] = []
    patience = Patience(tries=PATIENT.tries, sleep=slept.append)
    assert disarm(file, fired_by(rule()), OWN, patience) == Disarming("failed", "triggers-locked")
    assert len(slept) == 4
    assert all(0.1 <= one <= 0.3 for one in slept)


def test_a_read_only_file_is_told_as_one(file: Path) -> None:
    write(file, rule()).chmod(0o444)
    assert disarm(file, fired_by(rule()), OWN) == Disarming("failed", "triggers-read-only")


def test_many_who_disarm_one_file_at_once_all_leave_their_mark(file: Path) -> None:
    rules = [rule(number) for number in range(1, 7)]
    write(file, *rules)
    gate = threading.Barrier(len(rules))
    patience = Patience(tries=10_000, shortest_s=0.0, longest_s=0.001)
    told: list[Disarming] = []

    def one(index: int) -> None:
        gate.wait()
        told.append(disarm(file, fired_by(rules[index], index, f"gh-{index}"), Mark("now", f"gh-{index}"), patience))

    threads = [threading.Thread(target=one, args=(index,)) for index in range(len(rules))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert told == [Disarming("disarmed")] * len(rules)
    assert [one["on"]["disarmed"]["jobId"] for one in entries_of(file)] == [f"gh-{n}" for n in range(len(rules))]


@pytest.mark.parametrize(
    ("saved", "told"),
    [
        ([rule(41)], Disarming("failed", "entry-changed")),
        ([marked(rule())], Disarming("already")),
        ([rule(), rule(41)], Disarming("disarmed")),
    ],
    ids=["another rule", "marked by then", "more beside it"],
)
def test_what_came_of_it_is_told_of_the_file_that_was_saved_meanwhile(
    file: Path, saved: list[Any], told: Disarming, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(file, rule())
    saving(file, saved, monkeypatch)
    assert disarm(file, fired_by(rule()), OWN) == told
    if told.outcome == "disarmed":
        saved = [marked(rule(), {"at": OWN.at, "jobId": OWN.job_id}), rule(41)]
    assert entries_of(file) == saved


def test_a_mark_that_is_taken_out_by_hand_meanwhile_was_not_taken_out_here(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(file, marked(rule()))
    saving(file, [rule()], monkeypatch)
    assert rearm(file, 0) is None
    assert entries_of(file) == [rule()]


def saving(file: Path, entries: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody saves these entries when the file that is to take its place is written for the first time."""
    sync, times = os.fsync, []

    def saved(handle: int) -> None:
        sync(handle)
        times.append(1)
        if len(times) == 1:
            write(file, *entries)

    monkeypatch.setattr(os, "fsync", saved)


def test_rearming_takes_the_mark_out_and_nothing_else(file: Path) -> None:
    write(file, CRON, {**marked(rule()), "note": "ours"}, marked(rule(41)))
    assert rearm(file, 1) == Mark(MARK["at"], MARK["jobId"])
    assert entries_of(file) == [CRON, {**rule(), "note": "ours"}, marked(rule(41))]
    assert rearm(file, 1) is None
    assert rearm(file, 0) is None


def test_a_mark_that_makes_the_file_invalid_can_be_taken_out(file: Path) -> None:
    write(file, marked(rule(), {"at": "", "by": "me"}))
    assert rearm(file, 0) == Mark()
    assert entries_of(file) == [rule()]


@pytest.mark.parametrize("index", [-1, 1])
def test_there_is_no_such_entry_to_arm(file: Path, index: int) -> None:
    write(file, rule())
    with pytest.raises(ConfigError, match=f"has no trigger at index {index}"):
        rearm(file, index)


def test_whoever_arms_is_told_at_once_that_the_file_is_locked(file: Path) -> None:
    write(file, marked(rule()))
    file.with_name("triggers.json.lock").touch()
    with pytest.raises(InfraError, match="another program writes it"):
        rearm(file, 0)


def test_the_file_is_the_named_one_or_that_of_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert triggers_path(Settings.model_validate({})) == tmp_path / "triggers.json"
    named = Settings.model_validate({"PI_TRIGGERS_FILE": "/etc/pi/t.json"})
    assert triggers_path(named) == Path("/etc/pi/t.json")


_NUMBERS = st.sampled_from([40, 41, True, 40.0, "40", None])
_PARTS = st.fixed_dictionaries(
    {},
    optional={
        "type": st.sampled_from(["issue", "pull_request", "cron", 1]),
        "number": _NUMBERS,
        "once": st.sampled_from([True, False, 1, None]),
        "disarmed": st.sampled_from([MARK, {"at": "x", "jobId": "gh-1"}, 1, None]),
    },
)
_RUNS = st.fixed_dictionaries(
    {},
    optional={
        "kind": st.sampled_from(["github", "gitlab", "local"]),
        "flow": st.sampled_from(["deploy", "other", 1]),
        "command": st.sampled_from(["wf deploy", None]),
    },
)
_ENTRIES: st.SearchStrategy[list[Any]] = st.lists(
    st.fixed_dictionaries({"on": _PARTS | st.none(), "run": _RUNS | st.just([])}) | st.none(), max_size=3
)


def restated(entry: Any, job: ForgeJob) -> bool:
    """Whether an entry is the rule of `job`, said once more."""
    if not isinstance(entry, dict) or not isinstance(entry["on"], dict) or not isinstance(entry["run"], dict):
        return False
    on, run = entry["on"], entry["run"]
    return (
        on.get("once") is True
        and type(on.get("number")) is int
        and on.get("number") == 40
        and on.get("type") == "issue"
        and run.get("kind") == "github"
        and run.get("flow") == "deploy"
        and run.get("command") is None
    )


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(entries=_ENTRIES, index=st.integers(0, 3))
def test_whatever_stands_in_the_file_a_job_is_turned_away_by_its_own_rules_mark_alone(
    tmp_path: Path, entries: list[Any], index: int
) -> None:
    file = write(tmp_path / "triggers.json", *entries)
    job = fired_by(rule(), index)
    found = mark_of(file, job)
    mine = index < len(entries) and restated(entries[index], job)
    mark = entries[index]["on"].get("disarmed") if mine else None
    assert (found is not None) is isinstance(mark, dict)
    before = file.read_bytes()
    told = disarm(file, job, OWN)
    after = json.loads(file.read_bytes())["triggers"]
    if told.outcome != "disarmed":
        assert file.read_bytes() == before
    else:
        assert mine
        for at, (was, now) in enumerate(itertools.zip_longest(entries, after)):
            wanted = marked(was, {"at": OWN.at, "jobId": OWN.job_id}) if at == index else was
            assert now == wanted
