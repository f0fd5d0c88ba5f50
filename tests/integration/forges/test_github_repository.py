"""The default branch of a repository as GitHub has it now, and whether it is kept from being pushed to."""

from typing import Any

import pytest

from pidispatch.forges.protocol import Branch, Token
from pidispatch.values.errors import ConfigError, DispatchError, InfraError, RateLimited
from tests.fakes.github.faults import Fault, Reply, message
from tests.integration.forges.scripted import USER_TOKEN, Scripted, by_app, by_token

REPO = "GET /repos/acme/web"
BRANCH = f"{REPO}/branches/main"
RULES = f"{REPO}/rules/branches/main"
SHA = "0123456789abcdef" * 2 + "01234567"
TOKEN = Token("ghs_of_the_job")


def stands(script: Scripted, *, protected: Any = False, name: Any = "main", sha: Any = SHA, rules: Any = ()) -> None:
    """Have the repository answer so."""
    script.replies[REPO] = Reply(200, {"full_name": "acme/web", "default_branch": name})
    script.replies[BRANCH] = Reply(200, {"name": name, "commit": {"sha": sha}, "protected": protected})
    script.replies[RULES] = Reply(200, [{"type": kind, "ruleset_id": 1} for kind in rules])


def failure(script: Scripted, repo: str = "acme/web") -> DispatchError:
    with pytest.raises(DispatchError) as caught:
        by_token(script, timeout_s=0.5).default_branch(repo, TOKEN)
    return caught.value


def test_a_protected_branch_is_asked_no_more_about(script: Scripted) -> None:
    stands(script, protected=True)
    assert by_token(script).default_branch("acme/web", TOKEN) == Branch("main", SHA, True)
    assert script.lines() == [REPO, BRANCH]
    assert {one.token for one in script.asked} == {"ghs_of_the_job"}


@pytest.mark.parametrize("protected", [False, None, "true", 1])
def test_one_that_github_does_not_call_protected_is_not(script: Scripted, protected: Any) -> None:
    stands(script, protected=protected)
    assert by_token(script).default_branch("acme/web", TOKEN) == Branch("main", SHA, False)
    assert script.lines() == [REPO, BRANCH, RULES]


@pytest.mark.parametrize(
    ("rules", "protected"),
    [
        (["pull_request"], True),
        (["update"], True),
        (["merge_queue"], True),
        (["deletion", "non_fast_forward", "pull_request"], True),
        (["deletion", "non_fast_forward", "required_signatures", "required_status_checks", "creation"], False),
        (["PULL_REQUEST", None, ["update"]], False),
    ],
)
def test_a_rule_that_lets_no_push_through_protects(script: Scripted, rules: list[Any], protected: bool) -> None:
    stands(script, rules=rules)
    if not all(isinstance(one, str) for one in rules):
        script.replies[RULES] = Reply(200, [{"type": "PULL_REQUEST"}, {"type": None}, {}])
    assert by_token(script).default_branch("acme/web", TOKEN).protected is protected


def test_a_server_without_rulesets_says_that_the_branch_is_not_protected(script: Scripted) -> None:
    stands(script)
    del script.replies[RULES]
    assert by_token(script).default_branch("acme/web", TOKEN) == Branch("main", SHA, False)
    script.replies[RULES] = message(403, "Upgrade to GitHub Pro or make this repository public to enable this feature.")
    assert by_token(script).default_branch("acme/web", TOKEN) == Branch("main", SHA, False)
    script.replies[RULES] = message(403, "Resource not accessible by personal access token")
    assert failure(script).cause == "forge-refused"


def test_a_rule_on_a_later_page_is_found(script: Scripted) -> None:
    stands(script)
    script.replies[RULES] = script.pages([{"type": "deletion"}], [{"type": "update"}])
    assert by_token(script).default_branch("acme/web", TOKEN).protected
    assert [one.query.get("page") for one in script.asked[2:]] == [None, "2"]


def test_rules_without_end_are_left(script: Scripted) -> None:
    stands(script)
    script.replies[RULES] = script.pages(*[[{"type": "deletion"}]] * 30)
    assert not by_token(script).default_branch("acme/web", TOKEN).protected
    assert len(script.asked) == 22


def test_a_branch_with_slashes_stays_one_part_of_the_address(script: Scripted) -> None:
    stands(script, name="release/a%b#1")
    script.replies[f"{REPO}/branches/release%2Fa%25b%231"] = script.replies[BRANCH]
    script.replies[f"{REPO}/rules/branches/release%2Fa%25b%231"] = Reply(200, [{"type": "update"}])
    assert by_token(script).default_branch("acme/web", TOKEN) == Branch("release/a%b#1", SHA, True)


def test_a_repository_with_odd_letters_stays_one_part_of_the_address(script: Scripted) -> None:
    script.replies["GET /repos/acme/a%25b"] = Reply(200, {"default_branch": "main"})
    script.replies["GET /repos/acme/a%25b/branches/main"] = Reply(200, {"commit": {"sha": SHA}, "protected": True})
    assert by_token(script).default_branch("acme/a%b", TOKEN).sha == SHA


def test_a_commit_may_have_the_longer_name(script: Scripted) -> None:
    stands(script, sha="ab" * 32, protected=True)
    assert by_token(script).default_branch("acme/web", TOKEN).sha == "ab" * 32


@pytest.mark.parametrize(
    "sha", [None, 7, "", "main", SHA[:-1], SHA + "0", SHA.upper(), SHA[:-1] + "\n", "--upload-pack"]
)
def test_what_is_no_commit_is_unreadable(script: Scripted, sha: Any) -> None:
    stands(script, sha=sha)
    found = failure(script)
    assert (type(found), found.cause) == (InfraError, "forge-unanswered")
    assert "lookup-unreadable" in found.message


@pytest.mark.parametrize(
    "name", [None, 7, "", "-x", "a b", "a\nb", "a\x7f", "a..:b", "a~1", "x" * 256, "\ud800", "a\udfff"]
)
def test_what_is_no_branch_is_unreadable(script: Scripted, name: Any) -> None:
    stands(script, name=name)
    assert failure(script).cause == "forge-unanswered"
    assert script.lines() == [REPO]


def test_a_branch_without_a_commit_that_is_an_object_is_unreadable(script: Scripted) -> None:
    stands(script)
    script.replies[BRANCH] = Reply(200, {"commit": SHA, "protected": True})
    assert failure(script).cause == "forge-unanswered"


def test_a_repository_without_a_commit_is_told(script: Scripted) -> None:
    stands(script)
    script.replies[BRANCH] = message(404, "Branch not found")
    found = failure(script)
    assert (type(found), found.cause) == (ConfigError, "repository-empty")
    assert "acme/web has no commit on its default branch main" in found.message


def test_a_repository_that_is_not_seen_is_told(script: Scripted) -> None:
    found = failure(script)
    assert (type(found), found.cause) == (ConfigError, "repository-unseen")
    assert ("HTTP 404" in found.message, found.said) == (True, "Not Found")
    assert "the token in GITHUB_PAT does not see it" in found.message
    assert "Check the name of acme/web, or give the account access to it" in found.message


def test_an_app_is_told_to_be_installed_on_it(script: Scripted) -> None:
    with pytest.raises(ConfigError, match="or install the App on it") as caught:
        by_app(script).default_branch("acme/web", TOKEN)
    assert caught.value.cause == "repository-unseen"


def test_a_repository_that_moved_is_told(script: Scripted) -> None:
    script.replies[REPO] = Fault.MOVED_PERMANENTLY
    found = failure(script)
    assert (type(found), found.cause) == (ConfigError, "repository-unseen")
    assert "HTTP 301" in found.message
    assert script.lines() == [REPO]


@pytest.mark.parametrize("asked", [REPO, BRANCH, RULES])
@pytest.mark.parametrize(
    ("fault", "kind", "cause"),
    [
        (Fault.FORBIDDEN, ConfigError, "forge-refused"),
        (Fault.BAD_CREDENTIALS, ConfigError, "forge-refused"),
        (Fault.BAD_GATEWAY, InfraError, "forge-unanswered"),
        (Fault.RATE_LIMITED, RateLimited, "forge-rate-limited"),
    ],
)
def test_each_question_may_fail(
    script: Scripted, asked: str, fault: Fault, kind: type[DispatchError], cause: str
) -> None:
    stands(script)
    script.replies[asked] = fault
    found = failure(script)
    assert (type(found), found.cause) == (kind, cause)
    assert script.lines()[-1] == asked
    assert USER_TOKEN not in found.message


def test_a_refusal_names_the_repository_and_the_page(script: Scripted) -> None:
    script.replies[REPO] = Fault.FORBIDDEN
    told = failure(script).message
    assert 'does not show acme/web to the token in GITHUB_PAT: HTTP 403, "Resource not accessible by' in told
    assert "docs/how-to/github.md" in told
