"""What a job is told of where GitHub is, which asks nobody."""

import pytest

from pidispatch.config.clock import SystemClock
from pidispatch.forges.github.account import GitHubAccount
from pidispatch.forges.protocol import Token
from pidispatch.workspace import process
from tests.support.settings import settings_of

TOKEN = Token("ghp_x")


def account(url: str | None = None) -> GitHubAccount:
    environment = {"GITHUB_AUTH_SOURCE": "pat", "GITHUB_PAT": "ghp_x"} | ({} if url is None else {"GITHUB_URL": url})
    return GitHubAccount.of(settings_of(environment), environment, process, SystemClock())


@pytest.mark.parametrize(
    ("url", "cloned"),
    [
        (None, "https://github.com/acme/web.git"),
        ("https://github.example.org/", "https://github.example.org/acme/web.git"),
        ("https://example.org:8443/github", "https://example.org:8443/github/acme/web.git"),
        ("http://127.0.0.1:8080", "http://127.0.0.1:8080/acme/web.git"),
        ("http://[::1]:80", "http://[::1]/acme/web.git"),
        # In the box the name of the host is compared letter by letter with the one that the token is for.
        ("https://GitHub.com:443", "https://github.com/acme/web.git"),
        ("HTTPS://GHE.example.org:8443/Git/", "https://ghe.example.org:8443/Git/acme/web.git"),
    ],
)
def test_a_repository_is_cloned_from_where_github_is(url: str | None, cloned: str) -> None:
    assert account(url).clone_url("acme/web") == cloned


def test_a_name_stays_one_part_of_the_address() -> None:
    assert account().clone_url("acme/a%2Fb@c:d") == "https://github.com/acme/a%252Fb%40c%3Ad.git"


@pytest.mark.parametrize("url", [None, "https://github.com", "https://GitHub.com/", "https://github.com:443"])
def test_gh_finds_github_by_itself(url: str | None) -> None:
    assert account(url).variables(TOKEN) == {}


@pytest.mark.parametrize(
    ("url", "host"),
    [
        ("https://github.example.org", "github.example.org"),
        ("https://10.1.2.3:8443", "10.1.2.3:8443"),
        ("https://GHE.example.org:443", "ghe.example.org"),
    ],
)
def test_gh_is_told_of_an_enterprise_server(url: str, host: str) -> None:
    assert account(url).variables(TOKEN) == {"GH_HOST": host, "GH_ENTERPRISE_TOKEN": "ghp_x"}


@pytest.mark.parametrize("url", ["http://127.0.0.1:8080", "http://localhost:8080", "http://[::1]:8080"])
def test_an_address_of_this_machine_says_nothing_in_the_box(url: str) -> None:
    assert account(url).variables(TOKEN) == {}
