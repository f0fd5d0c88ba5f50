"""`make test-next` lifts the bounds of Celery and kombu and no other, and says which tests failed and why."""

from pathlib import Path

from tools.test_next import ROOT, SUITE, failures, requirements

REPORT = """<testsuites><testsuite>
<testcase classname="tests.unit.a" name="test_fine" />
<testcase classname="tests.unit.a" name="test_broken"><failure message="assert 1 == 2&#10;more">x</failure></testcase>
<testcase classname="tests.unit.b" name="test_unmade"><error message="no engine">trace</error></testcase>
</testsuite></testsuites>"""


def test_only_the_two_are_taken_as_new_as_they_are() -> None:
    found = requirements((ROOT / "setup.cfg").read_text())

    assert {"celery[redis]", "kombu"} <= {*found}
    # Its development tools are in it; what merely begins like one of the two keeps its version, as all others do.
    for name in ("pydantic >=", "pytest >=", "celery-types =="):
        assert [one for one in found if one.startswith(name)]
    assert not [one for one in found if one.startswith("#")]


def test_the_suite_is_there() -> None:
    assert [path for path in SUITE if not (ROOT / path).is_dir()] == []


def test_what_failed_is_told_with_the_first_line_of_why(tmp_path: Path) -> None:
    report = tmp_path / "report.xml"
    report.write_text(REPORT)

    assert failures(report) == [
        "failure  tests.unit.a::test_broken  assert 1 == 2",
        "error    tests.unit.b::test_unmade  no engine",
    ]
