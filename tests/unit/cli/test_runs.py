"""The verb `runs`: which runs it lists, in which order, and what of them, for a person and for a program."""

import io
import json
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from pidispatch.cli.main import _run
from pidispatch.cli.runs import COLUMNS, show_table, since
from pidispatch.runs.index_look import Wanted
from pidispatch.runs.records import RecordStore
from pidispatch.values.reason import Reason
from pidispatch.values.record import RunRecord
from tests.unit.runs.history import NOW, record
from tests.unit.runs.indexed import Indexed


@pytest.fixture(params=[False, True], ids=["without", "indexed"])
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Iterator[RecordStore]:
    """Records as they were kept before there was an index, and with one: nobody can tell by the list."""
    place = Indexed(tmp_path)
    monkeypatch.setenv("PI_LOGS_DIR", str(place.store.folder))
    monkeypatch.setenv("PI_STATE_DIR", str(place.state))
    monkeypatch.setenv("NO_COLOR", "1")
    yield place.store if request.param else place.unheard
    place.index.close()


def listed(*arguments: str, capsys: pytest.CaptureFixture[str]) -> tuple[int, list[str], str]:
    """Exit code, the lines of standard output split at two blanks and more, and standard error."""
    code = _run(["runs", *arguments])
    captured = capsys.readouterr()
    return code, captured.out.splitlines(), captured.err


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.split("  ") if cell.strip()]


def at_terminal(width: int, *found: RunRecord, color: bool = False) -> str:
    stream = io.StringIO()
    show_table(
        Console(file=stream, force_terminal=True, width=width, color_system="standard" if color else None), found
    )
    return stream.getvalue()


FULL: dict[str, Any] = {
    "flow": "fix",
    "outcome": "policy",
    "reason": "runner-policy",
    "turns": 12,
    "tokens": {"total": Decimal(1234567), "cost": Decimal("0.00126")},
    "chain_depth": 2,
    "replica": 1,
    "replicas": 3,
    "changed": True,
}


def test_every_column_in_its_place(store: RecordStore, capsys: pytest.CaptureFixture[str]) -> None:
    store.write(record("local-1", **FULL))
    code, lines, err = listed(capsys=capsys)
    assert (code, err) == (0, "")
    assert cells(lines[0]) == [*COLUMNS]
    assert ",".join(COLUMNS) == "JOB ID,TARGET,FLOW,OUTCOME,REASON,TURNS,TOKENS,COST,CHAIN,REPLICA,ENDED,CHANGED"
    assert cells(lines[1]) == [
        *("local-1", "local:site", "fix", "policy", "runner-policy", "12", "1,234,567", "$0.0013"),
        *("d2", "r1/3", "2030-01-02 03:04Z", "yes"),
    ]


def test_what_is_not_there_is_a_dash(store: RecordStore, capsys: pytest.CaptureFixture[str]) -> None:
    nothing = {"target": None, "ended_at": None, "chain_depth": 0}
    store.write(record("local-1", **nothing))
    line = cells(listed(capsys=capsys)[1][1])
    assert line == ["local-1", "-", "-", "completed", "-", "-", "-", "-", "-", "-", "-", "-"]


@pytest.mark.example("ch8 F14", "a completed run that changed nothing says so in the list")
def test_f14_a_run_that_changed_nothing_says_so(store: RecordStore, capsys: pytest.CaptureFixture[str]) -> None:
    store.write(record("local-1", changed=False))
    lines = listed(capsys=capsys)[1]
    assert cells(lines[0])[-1] == "CHANGED"
    assert cells(lines[1])[-1] == "no"
    assert json.loads("\n".join(listed("--json", capsys=capsys)[1]))[0]["changed"] is False
    for width in (80, 200):
        # Bold and reversed, as NO_COLOR forbids the yellow.
        assert "\x1b[1;7mno" in at_terminal(width, record("local-1", changed=False), color=True)


@pytest.mark.example("ch8 F14", "a completed run that changed nothing is not as green as one that changed something")
def test_f14_it_is_not_green(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    green, yellow = "\x1b[32mcompleted", "\x1b[33mcompleted"
    assert green in at_terminal(200, record(changed=True), color=True)
    assert green in at_terminal(200, record(changed=None), color=True)
    assert yellow in at_terminal(200, record(changed=False), color=True)
    refused = at_terminal(200, record(changed=False, outcome="failed", reason="infra"), color=True)
    assert "\x1b[31mfailed" in refused


def test_a_command_job_shows_its_command(store: RecordStore, capsys: pytest.CaptureFixture[str]) -> None:
    store.write(record("gh-1", flow=None, command="wf\x1b"))
    assert cells(listed(capsys=capsys)[1][1])[2] == "/wf\\u{001B}"


def test_nothing_is_cut_where_no_person_looks(store: RecordStore, capsys: pytest.CaptureFixture[str]) -> None:
    job_id, target = "local-" + "0" * 190, "local:" + "x" * 250
    store.write(record(job_id, target=target, reason="job-image-any-uid-unsupported"))
    lines = listed(capsys=capsys)[1]
    assert len(lines) == 2
    assert cells(lines[1])[:2] == [job_id, target]


def test_a_narrow_terminal_has_two_lines_a_run_and_whole_ids() -> None:
    found = record("local-0123456789abcdef", **(FULL | {"target": "local:a-folder-with-a-long-name"}))
    lines = at_terminal(80, found).splitlines()
    assert len(lines) == 4
    assert all(len(line) <= 80 for line in lines)
    assert [" ".join(line.split()) for line in lines[:2]] == [" ".join(COLUMNS[:6]), " ".join(COLUMNS[6:])]
    assert lines[2].startswith("local-0123456789abcdef local:a-")
    assert lines[3].split() == ["1,234,567", "$0.0013", "d2", "r1/3", "2030-01-02", "03:04Z", "yes"]
    assert len(at_terminal(200, found).splitlines()) == 2


def test_numbers_that_a_box_made_up_leave_the_list_readable(
    store: RecordStore, capsys: pytest.CaptureFixture[str]
) -> None:
    store.write(record("local-1", turns=True, tokens={"total": Decimal("1e300"), "cost": Decimal("2e300")}))
    store.write(record("local-2", tokens={"total": True, "cost": False}))
    lines = listed(capsys=capsys)[1]
    assert all(len(line) < 200 for line in lines)
    assert "$2.0e+300" in "".join(lines)


def test_text_is_escaped_and_no_markup(store: RecordStore, capsys: pytest.CaptureFixture[str]) -> None:
    store.write(record("local-1", target="[red]\x1b[31m\u202e:bug:", reason="a\nb"))
    row = listed(capsys=capsys)[1][1]
    assert "[red]\\u{001B}[31m\\u{202E}:bug:" in row
    assert "a\\u{000A}b" in row


def test_the_newest_fifty_unless_more_are_asked_for(store: RecordStore, capsys: pytest.CaptureFixture[str]) -> None:
    for number in range(60):
        store.write(record(f"local-{number}", ended_at=NOW - timedelta(minutes=number)))
    _, lines, err = listed(capsys=capsys)
    assert [cells(line)[0] for line in lines[1:]] == [f"local-{number}" for number in range(50)]
    assert err == "10 more; all of them: --limit 60\n"
    assert len(listed("--limit", "60", capsys=capsys)[1]) == 61
    assert listed("--limit", "2", capsys=capsys)[2] == "58 more; all of them: --limit 60\n"
    assert len(json.loads("\n".join(listed("--json", capsys=capsys)[1]))) == 60
    assert len(json.loads("\n".join(listed("--json", "--limit", "3", capsys=capsys)[1]))) == 3


def test_json_is_an_array_of_records_by_their_own_keys(store: RecordStore, capsys: pytest.CaptureFixture[str]) -> None:
    path = store.write(record("local-1", **FULL))
    code, lines, _ = listed("--json", capsys=capsys)
    assert code == 0
    assert json.loads("\n".join(lines)) == [json.loads(path.read_text())]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ([], ["now", "failed", "refused", "old"]),
        (["--outcome", "failed"], ["failed"]),
        (["--outcome", "policy"], ["refused", "old"]),
        (["--reason", "runner-policy"], ["refused"]),
        (["--reason", "of-a-later-version"], ["old"]),
        (["--reason", "worker-lost"], []),
        (["--since", "24h"], ["now", "failed"]),
        (["--since", "90m", "--outcome", "completed"], ["now"]),
        (["--since", "30d"], ["now", "failed", "refused"]),
        (["--since", "2020-01-01"], ["now", "failed", "refused", "old"]),
        (["--since", "2999-01-01T00:00Z"], []),
        (["--since", "", "--outcome", "", "--reason", ""], ["now", "failed", "refused", "old"]),
    ],
)
def test_which_runs_are_listed(
    store: RecordStore, arguments: list[str], expected: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    now = datetime.now(UTC)
    store.write(record("now", ended_at=now))
    store.write(record("failed", ended_at=now - timedelta(hours=2), outcome="failed", reason=Reason.INFRA.value))
    store.write(record("refused", ended_at=now - timedelta(days=3), outcome="policy", reason="runner-policy"))
    store.write(record("old", ended_at=now - timedelta(days=300), outcome="policy", reason="of-a-later-version"))
    code, lines, err = listed("--json", *arguments, capsys=capsys)
    assert code == 0
    assert [found["jobId"] for found in json.loads("\n".join(lines))] == expected
    assert ("no run on record is like that" in err) == (not expected)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--outcome", "complete"], "'complete' is no outcome; did you mean completed?"),
        (["--outcome", "xyz"], "'xyz' is no outcome. One of: completed, policy, failed"),
        (["--reason", "runer-policy"], "'runer-policy' is no reason; did you mean runner-policy?"),
        (["--reason", "xyz"], "'xyz' is no reason. On record here: infra"),
        (["--since", "yesterday"], "'yesterday' is no time: write 30m, 24h, 7d"),
        (["--since", "0h"], "is no time"),
        (["--since", "0001-01-01T00:00+05:00"], "is no time"),
        (["--limit", "0"], "'0' must be 1 or more"),
    ],
)
def test_a_wrong_call_says_what_to_write(
    store: RecordStore, arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    store.write(record("a", outcome="failed", reason="infra"))
    code, lines, err = listed(*arguments, capsys=capsys)
    assert (code, lines) == (1, [])
    assert message in " ".join(err.split())


def test_since() -> None:
    assert since("90m") == timedelta(minutes=90)
    assert since("7d") == timedelta(days=7)
    assert since("2030-01-31") == datetime(2030, 1, 31, tzinfo=UTC)
    assert since("2030-01-31T12:00+02:00") == datetime(2030, 1, 31, 10, tzinfo=UTC)


def test_a_run_without_an_end_counts_from_its_start() -> None:
    begun, never = record("a", ended_at=None), record("b", ended_at=None, started_at=None)
    assert [one for one in (begun, never) if Wanted(floor=NOW).admits(one)] == [begun]
    assert not Wanted(floor=NOW + timedelta(seconds=1)).admits(begun)


def test_broken_files_are_named_beside_the_list(store: RecordStore, capsys: pytest.CaptureFixture[str]) -> None:
    store.write(record("good"))
    for number in range(12):
        store.record_path(f"bad{number:02}").write_text("{")
    (store.folder / "\x1b[31m.json").write_text("{")
    code, lines, err = listed(capsys=capsys)
    assert code == 0
    assert [cells(line)[0] for line in lines[1:]] == ["good"]
    assert f"bad00.json in {store.folder} does not hold a run record, or not a whole one; left out" in err
    assert "3 more files there hold no record" in err
    assert "\\u{001B}[31m.json" in err


@pytest.mark.parametrize("arguments", [[], ["--json"], ["--reason", "infra"]])
def test_no_folder_is_no_run_yet_and_none_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PI_LOGS_DIR", str(tmp_path / "none"))
    code, lines, err = listed(*arguments, capsys=capsys)
    assert (code, lines) == (0, ["[]"] if "--json" in arguments else [])
    assert err == f"no runs yet; looked in {tmp_path / 'none'}\n"
    assert not (tmp_path / "none").exists()


def test_a_folder_that_is_none_ends_with_1(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("PI_LOGS_DIR", str(tmp_path / "file"))
    code, lines, err = listed(capsys=capsys)
    assert (code, lines) == (1, [])
    assert "PI_LOGS_DIR=" in err


@pytest.mark.parametrize("arguments", [["runs"], ["show", "local-1"], ["logs", "local-1"]])
def test_looking_back_needs_no_engine(store: RecordStore, arguments: list[str]) -> None:
    store.write(record("local-1"))
    store.log_path("local-1").write_text("local-1 said so\n")
    code = """
import sys
from pidispatch.cli.main import _run
ended = _run(sys.argv[1:])
print("loaded", *sorted({name.split(".")[0] for name in sys.modules}))
sys.exit(ended)
"""
    done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=True)
    told, _, loaded = done.stdout.partition("loaded ")
    assert "local-1" in told
    assert not set(loaded.split()) & {"docker", "requests", "urllib3"}
