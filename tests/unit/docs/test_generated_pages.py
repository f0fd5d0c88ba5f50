"""The generated pages are current, and come out the same on every machine."""

import json
import tempfile
from pathlib import Path

import pytest

from pidispatch.gates.pause_windows import parse_pause_windows
from pidispatch.values.outcome import InfraFailed, recorded_outcome
from pidispatch.values.reason import AbortReason, Reason
from tools import docs, docs_page, docs_source, docs_values


def test_generated_pages_are_current() -> None:
    outdated = docs.stale()
    assert not outdated, f"stale: {', '.join(outdated)}. Run: make docs"


def test_check_names_a_stale_page(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(docs, "PAGES", {"docs/reference/none.md": lambda: "text\n"})
    assert docs.main(["--check"]) == 1
    assert "docs/reference/none.md is stale: make docs" in capsys.readouterr().err


def test_pages_are_written_where_they_are_missing_and_then_current(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(docs, "ROOT", tmp_path)
    monkeypatch.setattr(docs, "PAGES", {"docs/reference/one.md": lambda: "text\n"})
    assert docs.main([]) == 0
    assert (tmp_path / "docs/reference/one.md").read_text() == "text\n"
    assert docs.stale(tmp_path) == []


def test_a_wrong_call_writes_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert docs.main(["--chekc"]) == 1
    assert "usage" in capsys.readouterr().err


def test_settings_are_the_same_for_every_account_and_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here = docs_values.settings_page()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "home" / "scratch"))
    monkeypatch.setattr("os.getuid", lambda: 4242)
    monkeypatch.setenv("PI_MAX_TURNS", "7")
    assert docs_values.settings_page() == here
    assert "`~/.pi-dispatch/jobs`" in here
    assert "`~/.pi-dispatch`" in here


def test_a_cell_cannot_break_its_table_or_turn_into_html() -> None:
    assert docs_page.table(["a"], [["x | <y> `<z>`"]]).splitlines()[2] == "| x \\| &lt;y> `<z>` |"


def test_every_abort_and_every_failure_is_in_the_tables() -> None:
    page = docs_values.reasons_page()
    for abort in AbortReason:
        assert f"| `{abort.value}` |" in page
    failed = {reason for reason in Reason if isinstance(docs_values.outcome_of(reason), InfraFailed)}
    assert failed == {
        Reason.INFRA,
        Reason.CONTAINER_NEVER_STARTED,
        Reason.CONTAINER_DETACHED,
        Reason.WORKER_LOST,
    }
    assert {recorded_outcome(docs_values.outcome_of(reason)) for reason in Reason} == {"policy", "failed"}


def test_every_bound_carries_its_meaning() -> None:
    for path, name in (
        (docs_source.PACKAGE / "values/limits.py", "Limits"),
        (docs_source.RUNNER / "layout.py", "Layout"),
    ):
        notes = docs_source.field_notes(path, name)
        assert notes
        assert all(notes.values()), f"without a comment: {[field for field, note in notes.items() if not note]}"


def test_events_are_merged_and_must_be_literal(tmp_path: Path) -> None:
    package = tmp_path / "package"
    package.mkdir()
    source = package / "one.py"
    source.write_text('log().info("lost", a=1)\nlog().info("lost", b=2)\nother().info("kept out")\n')
    assert docs_source.log_events(package) == [docs_source.Call("lost", "info", ("a", "b"), "package/one.py")]
    source.write_text("log().info(name)\n")
    with pytest.raises(ValueError, match=r"package/one\.py:1: the name of an event must be a literal"):
        docs_source.log_events(package)


def test_an_event_that_begins_with_a_varying_part_is_told_for_each_of_them(tmp_path: Path) -> None:
    package = tmp_path / "package"
    package.mkdir()
    (package / "one.py").write_text('log().info(f"{self.name}_lost", a=1)\n')
    assert docs_source.log_events(package, {"self.name": ["x", "y"]}) == [
        docs_source.Call("x_lost", "info", ("a",), "package/one.py"),
        docs_source.Call("y_lost", "info", ("a",), "package/one.py"),
    ]
    for name in ('f"{other}_lost"', 'f"lost_{self.name}"', 'f"{self.name}_{self.name}"'):
        (package / "one.py").write_text(f"log().info({name})\n")
        with pytest.raises(ValueError, match="must be a literal"):
            docs_source.log_events(package, {"self.name": ["x", "y"]})


def test_the_schemas_say_what_their_models_read() -> None:
    document = json.loads(docs.PAGES["docs/reference/schemas/pause-windows.schema.json"]())
    window = document["$defs"]["PauseWindow"]
    assert document["required"] == ["windows"]
    assert list(window["properties"]) == ["scope", "from", "to", "tz", "days", "dateFrom", "dateTo"]
    assert all(field["description"] and field["examples"] for field in window["properties"].values())
    # What is shown as good is good.
    for example in (*document["examples"], {"windows": window["examples"]}):
        assert parse_pause_windows(json.dumps(example), Path("windows.json"))


def test_causes_are_found_also_behind_a_helper(tmp_path: Path) -> None:
    package = tmp_path / "package"
    package.mkdir()
    (package / "one.py").write_text(
        "def helper(text, cause):\n    raise ConfigError(text, cause)\n"
        'helper("x", "behind")\nraise InfraError("y", cause="plain")\nRefused(reason=1, cause=2)\n'
    )
    assert docs_source.causes_in(package) == [
        docs_source.Cause("behind", "ConfigError", "package/one.py"),
        docs_source.Cause("plain", "InfraError", "package/one.py"),
    ]


def test_examples_come_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    tests = tmp_path / "tests"
    tests.mkdir()
    (tests / "test_one.py").write_text(
        '@pytest.mark.example("a E10", "later")\ndef test_b(): ...\n'
        'class TestX:\n    @pytest.mark.example("a E2", "first")\n    def test_a(self): ...\n'
    )
    assert docs_source.examples_in(tests) == [
        docs_source.Example("a E2", "first", "tests/test_one.py::TestX::test_a"),
        docs_source.Example("a E10", "later", "tests/test_one.py::test_b"),
    ]
