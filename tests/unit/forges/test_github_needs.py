"""What jobs need at GitHub, what they are given beyond it, and that the page says both."""

import re
from pathlib import Path

import pytest

from pidispatch.forges.github.needs import NEEDS, lacking, lent, missing_scope, more_than_needed, told_needs

PAGE = Path(__file__).resolve().parents[3] / "docs/how-to/github.md"
FULL = {"metadata": "read", "contents": "write", "issues": "write", "pull_requests": "write"}


def test_an_app_with_what_is_needed_lacks_nothing_and_may_no_more() -> None:
    assert (lacking(FULL), more_than_needed(FULL)) == ((), ())
    assert told_needs(FULL) == told_needs() == "metadata: read, contents: write, issues: write, pull_requests: write"


@pytest.mark.parametrize("level", [None, "none", "read", "WRITE", 1, ["write"]])
def test_each_missing_permission_is_named_with_what_it_is_for(level: object) -> None:
    [flaw] = lacking({**FULL, "contents": level})
    assert flaw.found == "contents: write is missing, so that no branch can be pushed"
    assert "Permissions & events" in flaw.remedy
    assert told_needs({**FULL, "contents": level}) == "metadata: read, issues: write, pull_requests: write"


def test_an_app_with_no_permission_lacks_all() -> None:
    assert [flaw.found.split(" is ")[0] for flaw in lacking({})] == [str(need) for need in NEEDS]
    assert told_needs({}) == "nothing that is needed"


def test_more_than_read_suffices_where_reading_is_needed() -> None:
    assert lacking({**FULL, "metadata": "write", "contents": "admin"}) == ()


def test_what_an_app_may_write_beyond_is_named() -> None:
    found = {**FULL, "checks": "write", "statuses": "write", "members": "read", "secrets": "no", "a\x1b": "write"}
    [flaw] = more_than_needed({**found, "workflows": "write", "administration": "write", "organization_hooks": "admin"})
    assert flaw.found == (
        "the token of each job may also a\\u{001B}: write, administration: write, organization_hooks: admin, "
        "workflows: write, which no job needs"
    )


@pytest.mark.parametrize("scopes", [["repo"], ["public_repo"], ["gist", "repo"]])
def test_a_token_with_either_scope_lacks_nothing(scopes: list[str]) -> None:
    assert missing_scope(scopes) == ()


@pytest.mark.parametrize("scopes", [[], ["repo:status", "read:org"]])
def test_a_token_without_is_told(scopes: list[str]) -> None:
    [flaw] = missing_scope(scopes)
    assert "the scope repo is missing" in flaw.found


def test_scopes_beyond_are_named() -> None:
    assert lent(["repo", "public_repo", "repo:status", "read:org"], login=False) == ()
    [flaw] = lent(["repo", "admin:org", "delete_repo", "workflow"], login=False)
    assert flaw.found == (
        "every job is given this token with the scopes admin:org, delete_repo, workflow, which no job needs"
    )


def test_a_login_is_told_whatever_its_scopes() -> None:
    [bare] = lent([], login=True)
    [more] = lent(["repo", "gist"], login=True)
    assert bare.found == "every job is given the whole of a person's login"
    assert more.found == f"{bare.found}, with the scopes gist, which no job needs"
    assert "an App" in bare.remedy


def test_the_page_names_every_permission_and_its_level() -> None:
    rows = re.findall(r"^\| ([A-Z][a-z ]+) \| (Read-only|Read and write) \|", PAGE.read_text(), re.MULTILINE)
    told = {
        name.lower().replace(" ", "_"): {"Read-only": "read", "Read and write": "write"}[level] for name, level in rows
    }
    assert told == {need.name: need.level for need in NEEDS}
