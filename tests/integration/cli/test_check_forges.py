"""What `check` says of the accounts at forges and of the repositories that are named, on a GitHub of the test's own."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pidispatch.cli.checks import forges
from pidispatch.cli.checks.row import Finding, Row, Told
from pidispatch.cli.checks.scene import Scene
from pidispatch.cli.checks.table import CHECKS, look_around
from pidispatch.cli.main import _run
from tests.fakes.github import apps
from tests.fakes.github.faults import Fault, Reply
from tests.integration.forges.scripted import APP_TOKEN, MINT, USER_TOKEN, Scripted
from tests.support.oneshots import marked, write
from tests.support.oneshots import rule as one_shot
from tests.unit.triggers.entries import entry, rule

NAMES = ("accounts", "permissions", "repositories")
FULL = {"metadata": "read", "contents": "write", "issues": "write", "pull_requests": "write"}
SHA = "0123456789abcdef" * 2 + "01234567"
WEB, SHOP = "GET /repos/acme/web", "GET /repos/acme/shop"


@pytest.fixture(autouse=True)
def _nothing_is_set(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("PI_TRIGGERS_FILE", "GITHUB_AUTH_SOURCE", "POLL_REPOS", "WEBHOOK_SECRET"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/no-engine.sock")
    monkeypatch.setenv("VALKEY_URL", f"unix://{tmp_path}/no-server.sock")
    monkeypatch.setenv("NO_PROXY", "*")
    # No folder of pi-dispatch's own is made in this account's home.
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> Iterator[Scripted]:
    """GitHub, where the account of a token may write to two repositories whose branches are protected."""
    with Scripted() as server:
        user = {"login": "someone", "id": 9001}
        server.replies["GET /user"] = Reply(200, user, {"X-OAuth-Scopes": "repo"})
        for line in (WEB, SHOP):
            repository(server, line)
        monkeypatch.setenv("GITHUB_API_URL", server.url)
        monkeypatch.setenv("GITHUB_PAT", USER_TOKEN)
        yield server


def repository(script: Scripted, line: str, *, protected: bool = True, **levels: bool) -> None:
    permissions = {"admin": False, "push": True, "pull": True} | levels
    whole = {"default_branch": "main", "permissions": permissions}
    script.replies[line] = Reply(200, whole, {"X-OAuth-Scopes": "repo"})
    branch = {"name": "main", "commit": {"sha": SHA}, "protected": protected}
    script.replies[f"{line}/branches/main"] = Reply(200, branch)
    script.replies[f"{line}/rules/branches/main"] = Reply(200, [])


@pytest.fixture
def token(script: Scripted, monkeypatch: pytest.MonkeyPatch) -> Scripted:
    monkeypatch.setenv("GITHUB_AUTH_SOURCE", "pat")
    return script


@pytest.fixture
def app(script: Scripted, monkeypatch: pytest.MonkeyPatch) -> Scripted:
    monkeypatch.setenv("GITHUB_AUTH_SOURCE", "app")
    monkeypatch.setenv("GITHUB_APP_ID", "77")
    monkeypatch.setenv("GITHUB_APP_INSTALLATION_ID", "88")
    monkeypatch.setenv("GITHUB_APP_PRIVATE_KEY", apps.private_key())
    installation = {"id": 88, "account": {"login": "acme"}, "repository_selection": "all", "permissions": FULL}
    script.replies["GET /app"] = Reply(200, {"slug": "pi"})
    script.replies["GET /users/pi%5Bbot%5D"] = Reply(200, {"id": 9002})
    script.replies["GET /app/installations/88"] = Reply(200, installation)
    script.replies[f"{WEB}/installation"] = Reply(200, installation)
    return script


def looked(*repositories: str, patience_s: float = 30) -> list[Row]:
    chosen = [check for check in CHECKS if check.name in NAMES]
    return look_around(chosen, repositories=repositories, patience_s=patience_s, whole_s=60)


def of(rows: list[Row], check: str) -> list[tuple[str, str]]:
    return [(row.status, row.found) for row in rows if row.check == check]


def test_where_no_forge_is_used_nothing_is_said_or_asked(script: Scripted, tmp_path: Path) -> None:
    assert looked() == []
    write(tmp_path / "triggers.json", entry(), marked(one_shot()), rule("gitlab"))
    assert looked() == []
    assert script.asked == []


@pytest.mark.parametrize("by", ["setting", "rule", "schedule", "name"])
def test_it_is_used_where_it_is_chosen_asked_for_or_named(
    by: str, script: Scripted, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    # Without a choice it is gh's login.
    monkeypatch.setenv("PATH", str(tmp_path))
    entries = {"rule": rule(), "schedule": entry(run={"github": True})}
    if by in entries:
        monkeypatch.setenv("PI_TRIGGERS_FILE", str(write(tmp_path / "triggers.json", entries[by])))
    if by == "setting":
        monkeypatch.setenv("GITHUB_AUTH_SOURCE", "gh")
    rows = looked(*(["acme/web"] if by == "name" else []))
    # What stands on the account says nothing where there is none.
    assert [(row.check, row.status) for row in rows] == [("accounts", "fail")]
    assert rows[0].found.startswith("GitHub: GITHUB_AUTH_SOURCE is gh, and the program gh is not on the PATH")


def test_a_token_that_is_as_it_should_be(token: Scripted) -> None:
    rows = looked("acme/web", "acme/shop", "acme/web")
    assert [(row.check, row.status, row.found) for row in rows] == [
        ("accounts", "pass", "GitHub: the token in GITHUB_PAT, of someone, id 9001"),
        ("permissions", "pass", "GitHub: scopes: repo"),
        ("repositories", "pass", "acme/web: the account may write to it; its default branch main is protected"),
        ("repositories", "pass", "acme/shop: the account may write to it; its default branch main is protected"),
    ]


def test_an_app_that_is_as_it_should_be(app: Scripted) -> None:
    rows = looked("acme/web")
    assert [(row.check, row.status, row.found) for row in rows] == [
        ("accounts", "pass", "GitHub: the App of GITHUB_APP_ID=77, installed on all repositories of acme, id 9002"),
        (
            "permissions",
            "pass",
            "GitHub: metadata: read, contents: write, issues: write, pull_requests: write",
        ),
        ("repositories", "pass", "acme/web: the App is installed on it; its default branch main is protected"),
    ]
    # The branch is looked at with such a token as a job gets.
    made = [one for one in app.asked if one.line == MINT]
    assert made[-1].body == {"repositories": ["web"]}
    assert app.asked[-1].token == APP_TOKEN


def test_what_is_missing_and_what_is_beyond_is_named_one_by_one(app: Scripted) -> None:
    permissions = {"metadata": "read", "contents": "write", "administration": "write"}
    answer = {"id": 88, "account": {"login": "acme"}, "repository_selection": "all", "permissions": permissions}
    app.replies["GET /app/installations/88"] = Reply(200, answer)
    rows = looked()
    assert of(rows, "permissions") == [
        ("fail", "GitHub: issues: write is missing, so that nothing can be said on an issue"),
        ("fail", "GitHub: pull_requests: write is missing, so that no pull request can be opened"),
    ]
    assert [status for status, _ in of(rows, "accounts")] == ["pass", "warn"]
    assert of(rows, "repositories")[0][0] == "pass"
    assert "--repo owner/name" in of(rows, "repositories")[0][1]


def test_a_branch_that_is_not_protected_is_told_with_what_to_do(token: Scripted) -> None:
    repository(token, WEB, protected=False, admin=True)
    administers, unprotected = [row for row in looked("acme/web") if row.check == "repositories"]
    assert (administers.status, "the account administers it" in administers.found) == ("warn", True)
    assert unprotected.status == "warn"
    assert unprotected.found == (
        "acme/web: its default branch main is not protected, so its jobs are refused (unprotected-branch)"
    )
    assert unprotected.remedy is not None
    assert 'docs/how-to/github.md, "Protect the default branch"' in unprotected.remedy


def test_where_nothing_can_be_pushed_the_branch_is_not_asked_about(token: Scripted) -> None:
    repository(token, WEB, push=False)
    [found] = of(looked("acme/web"), "repositories")
    assert found == (
        "fail",
        "acme/web: the account of the token in GITHUB_PAT may not write to it: no branch can be pushed",
    )
    assert f"{WEB}/branches/main" not in token.lines()


def test_one_repository_takes_no_other_with_it(token: Scripted) -> None:
    token.replies[WEB] = Fault.NOT_FOUND
    token.replies[f"{SHOP}/branches/main"] = Fault.NOT_FOUND
    repository(token, "GET /repos/acme/good")
    unseen, empty, good = of(looked("acme/web", "acme/shop", "acme/good"), "repositories")
    assert (unseen[0], "give the account access to it" in unseen[1]) == ("fail", True)
    assert (empty[0], "acme/shop has no commit" in empty[1]) == ("fail", True)
    assert good[0] == "pass"


@pytest.mark.parametrize(
    ("fault", "words", "remedy"),
    [
        (Fault.RATE_LIMITED, "lookup-rate-limited", "check again after 2030-01-02T03:04:05Z"),
        (Fault.BAD_GATEWAY, "lookup-server-error", "check again later"),
        (Fault.HANG_UP, "lookup-unreachable", "check again later"),
    ],
)
@pytest.mark.parametrize("line", ["GET /user", WEB])
def test_what_cannot_be_told_now_is_said_to_be_that(
    line: str, fault: Fault, words: str, remedy: str, token: Scripted
) -> None:
    token.replies[line] = fault
    rows = looked("acme/web")
    [row] = [row for row in rows if row.status != "pass"]
    assert (row.check, row.status) == ("accounts" if line == "GET /user" else "repositories", "warn")
    assert f"not known: GitHub ({token.url})" in row.found
    assert words in row.found
    assert row.remedy is not None
    assert row.remedy.startswith(remedy)


def test_what_does_not_answer_is_not_waited_for_long(token: Scripted) -> None:
    token.replies["GET /user"] = Fault.SLOW
    [row] = looked("acme/web", patience_s=0.2)
    assert (row.check, row.status) == ("accounts", "warn")
    assert row.found == "GitHub: not known: no answer within 0.2 s"


def test_nor_is_a_repository(token: Scripted) -> None:
    token.replies[WEB] = Fault.SLOW
    scene = Scene(30, ["acme/web"])
    assert [one.status for one in forges.accounts(scene)] == ["pass"]
    scene.patience_s = 0.2
    [found] = forges.repositories(scene)
    assert (found.status, found.found) == ("warn", "acme/web: not known: no answer within 0.2 s")


def test_a_refused_credential_is_told_once(token: Scripted) -> None:
    token.replies["GET /user"] = Fault.BAD_CREDENTIALS
    [row] = looked("acme/web")
    assert (row.check, row.status, '"Bad credentials"' in row.found) == ("accounts", "fail", True)


def test_a_malformed_variable_has_a_row_of_its_own(token: Scripted, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_APP_ID", "seven")
    assert looked("acme/web") == []


def test_schedules_get_no_token_of_an_app(app: Scripted, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    file = write(tmp_path / "triggers.json", rule(), entry(run={"github": True}))
    monkeypatch.setenv("PI_TRIGGERS_FILE", str(file))
    _, refused = of(looked(), "accounts")
    assert refused[0] == "fail"
    assert refused[1].startswith("triggers 1 ask for a token, and their jobs are refused: GITHUB_AUTH_SOURCE is app")


def test_schedules_get_a_persons_token(token: Scripted, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    file = write(tmp_path / "triggers.json", entry(run={"github": True}))
    monkeypatch.setenv("PI_TRIGGERS_FILE", str(file))
    assert [status for status, _ in of(looked(), "accounts")] == ["pass"]
    write(file, rule())
    assert [status for status, _ in of(looked(), "accounts")] == ["pass"]


def test_many_repositories_are_not_all_looked_at(token: Scripted) -> None:
    names = [f"acme/r{number}" for number in range(22)]
    rows = of(looked(*names), "repositories")
    assert len(rows) == 21
    assert rows[-1] == ("pass", "not looked at: acme/r20, acme/r21; name them with --repo")
    assert len({one.line for one in token.asked if "/repos/" in one.line}) == 20


def test_each_repository_is_named_once(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Scene(30, ["a/b", "c/d", "a/b"]).repositories == ("a/b", "c/d")
    monkeypatch.setenv("POLL_REPOS", "e/f, c/d")
    assert Scene(30, ["a/b", "c/d"]).repositories == ("a/b", "c/d", "e/f")


def test_what_is_polled_is_looked_at(token: Scripted, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POLL_REPOS", "acme/shop")
    assert [found.split(":")[0] for _, found in of(looked("acme/web"), "repositories")] == ["acme/web", "acme/shop"]


def test_no_token_is_printed(token: Scripted, capsys: pytest.CaptureFixture[str]) -> None:
    repository(token, WEB, protected=False)
    assert _run(["check", "--json", "--repo", "acme/web", "--repo", "acme/shop"]) == 1
    printed = capsys.readouterr()
    rows = json.loads(printed.out)["checks"]
    assert [row["status"] for row in rows if row["check"] == "repositories"] == ["warn", "pass"]
    assert USER_TOKEN not in printed.out + printed.err


@pytest.mark.parametrize("name", ["acme", "acme/web/x", "acme/..", "https://github.com/acme/web"])
def test_a_name_that_is_none_is_refused(name: str, token: Scripted, capsys: pytest.CaptureFixture[str]) -> None:
    assert _run(["check", "--repo", name]) == 2
    assert "Write owner/name" in capsys.readouterr().err
    assert token.asked == []


def test_files_and_repositories_do_not_go_together(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file: Any = write(tmp_path / "triggers.json", rule())
    assert _run(["check", str(file), "--repo", "acme/web"]) == 1
    assert "do not go together" in capsys.readouterr().err


def test_a_look_without_an_account_ends_without_a_row(token: Scripted) -> None:
    token.replies["GET /user"] = Fault.BAD_CREDENTIALS
    scene = Scene(30, ["acme/web"])
    for look in (forges.permissions, forges.repositories):
        found: list[Finding] = []
        with pytest.raises(Told):
            found.extend(look(scene))
        assert found == []
