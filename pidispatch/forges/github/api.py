"""One question to GitHub's API and what it answers, through PyGithub, which here does nothing by itself.

A question is asked once, in a bounded time, and the answer is taken as it comes: nothing is followed, waited for or
tried again.
"""

import json
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

import github
import jwt
import requests
import urllib3
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from github.Auth import Auth
from github.Requester import Requester

from pidispatch.config.text import scrub
from pidispatch.forges.github.connection import IF_NEW, Once, Unanswered
from pidispatch.values.clock import Clock

#: Seconds that one question may take, its answer read to the end.
TIMEOUT_S: Final = 10.0
#: Bytes of the longest answer; those that are asked for are far shorter.
_MOST_BYTES: Final = 1024 * 1024
#: Bytes of the longest list: 100 comments, each of as many letters as GitHub takes (65536), spelled as long as can be.
#: Anybody may write such comments, and a poll that cannot read them sees nothing of what comes after them.
_MOST_LISTED_BYTES: Final = 48 * 1024 * 1024
_REST_VERSION: Final = "2022-11-28"
_ACCEPT: Final = {"Accept": "application/vnd.github+json"}
#: Letters of GitHub's own words that are repeated.
_LONGEST_SAID: Final = 200
#: How long it is left alone where it does not say for how long.
#: https://docs.github.com/en/rest/using-the-rest-api/rate-limits-for-the-rest-api#exceeding-the-rate-limit
_REST: Final = timedelta(seconds=60)
#: Seconds that a forge may ask to be left alone for; it says no more than an hour.
_LONGEST_WAIT_S: Final = 86_400


class Page(NamedTuple):
    """A part of a list, and what is needed to go on with it.

    https://docs.github.com/en/rest/using-the-rest-api/using-pagination-in-the-rest-api and, for the rest,
    https://docs.github.com/en/rest/using-the-rest-api/best-practices-for-using-the-rest-api
    """

    items: list[dict[str, Any]]
    #: What the same question is asked with the next time, to hear whether there is anything new.
    etag: str | None
    #: Seconds after which GitHub wants to be asked this again, and no earlier.
    poll_s: int | None
    #: What the next part is asked for with; `None` at the end.
    next: str | None
    #: 304 where nothing is new; then there are no items.
    status: int


class Api:
    """The API at one address. Several threads may ask at once: each question has a connection of its own."""

    def __init__(self, base_url: str, clock: Clock, timeout_s: float = TIMEOUT_S) -> None:
        self.base_url = base_url
        self._clock = clock
        self._timeout_s = timeout_s

    def ask(self, auth: Auth, verb: str, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        """The JSON object that answers. Raises `Unanswered`, also for a refusal (its `status`)."""
        response, text = self._answer(auth, verb, path, {}, body, _MOST_BYTES)
        return _object(text, response.status_code)

    def listed(self, auth: Auth, path: str, etag: str | None = None) -> Page:
        """The part of a list that `path` asks for, how many items it is to have included (`per_page`).

        With the `etag` of an earlier one: that nothing is new, if so. Raises `Unanswered`.
        """
        asked = {} if etag is None else {IF_NEW: etag}
        response, text = self._answer(auth, "GET", path, asked, None, _MOST_LISTED_BYTES)
        headers, status = response.headers, response.status_code
        poll_s = _digits(headers.get("x-poll-interval"))
        if status == 304:
            return Page([], headers.get("etag", etag), poll_s, None, status)
        return Page(_objects(text, status), headers.get("etag"), poll_s, self._next(response), status)

    def _answer(
        self, auth: Auth, verb: str, path: str, headers: dict[str, str], body: dict[str, Any] | None, most_bytes: int
    ) -> tuple[requests.Response, str]:
        """What answers, and its text, where it is no refusal. Raises `Unanswered`."""
        requester = Requester(
            auth,
            self.base_url,
            timeout=max(1, round(self._timeout_s)),
            user_agent="pi-dispatch",
            per_page=1,
            verify=True,
            retry=None,
            pool_size=None,
            seconds_between_requests=None,
            seconds_between_writes=None,
            api_version=_REST_VERSION,
        )
        connection = Once(self.base_url, self._timeout_s, most_bytes)
        try:
            status, _, text = requester.requestJson(verb, path, headers=_ACCEPT | headers, input=body, cnx=connection)
            assert connection.answered is not None, "there is a status"
            if 200 <= status < 300 or status == 304:
                return connection.answered, text
            failed = self._refused(status, connection.answered.headers, text, auth.token)
        except Unanswered as unanswered:
            failed = Unanswered(unanswered.reason, unanswered.status)
        except (OSError, urllib3.exceptions.HTTPError):
            failed = Unanswered("lookup-unreachable")
        finally:
            if connection.answered is not None:
                connection.answered.close()
            connection.close()
        # Not from within: what went wrong there holds the request, and that the token.
        raise failed

    def _next(self, response: requests.Response) -> str | None:
        """What a list goes on with, as a path of this API: whatever host it names, no other one is asked."""
        url = response.links.get("next", {}).get("url")
        if url is None:
            return None
        try:
            parts = urlsplit(url)
        except ValueError:
            raise Unanswered("lookup-unreadable", response.status_code) from None
        path = parts.path.removeprefix(urlsplit(self.base_url).path)
        if not path.startswith("/"):
            raise Unanswered("lookup-unreadable", response.status_code)
        return f"{path}?{parts.query}"

    def _refused(
        self, status: int, headers: "requests.structures.CaseInsensitiveDict[str]", text: str, token: str
    ) -> Unanswered:
        """What a refusal says.

        https://docs.github.com/en/rest/using-the-rest-api/rate-limits-for-the-rest-api#exceeding-the-rate-limit
        """
        message = _message(text)
        if status in (403, 429):
            spent = headers.get("x-ratelimit-remaining") == "0" or "retry-after" in headers
            if spent or status == 429 or Requester.isRateLimitError(message):
                return Unanswered("lookup-rate-limited", status, self._resets(headers))
        if status >= 500:
            return Unanswered("lookup-server-error", status)
        return Unanswered("lookup-refused", status, said=_said(message, token))

    def _resets(self, headers: "requests.structures.CaseInsensitiveDict[str]") -> datetime:
        if (seconds := _digits(headers.get("retry-after"))) is not None and seconds <= _LONGEST_WAIT_S:
            return self._clock.now() + timedelta(seconds=seconds)
        if (instant := _digits(headers.get("x-ratelimit-reset"))) is not None:
            return datetime.fromtimestamp(instant, UTC)
        return self._clock.now() + _REST


def _digits(text: str | None) -> int | None:
    return int(text) if text is not None and text.isascii() and text.isdigit() and len(text) <= 10 else None


def _json(text: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _object(text: str, status: int) -> dict[str, Any]:
    answer = _json(text)
    if not isinstance(answer, dict):
        raise Unanswered("lookup-unreadable", status)
    return answer


def _objects(text: str, status: int) -> list[dict[str, Any]]:
    answer = _json(text)
    if not isinstance(answer, list) or not all(isinstance(one, dict) for one in answer):
        raise Unanswered("lookup-unreadable", status)
    return answer


def _message(text: str) -> str:
    answer = _json(text)
    message = answer.get("message") if isinstance(answer, dict) else None
    return message if isinstance(message, str) else ""


def _said(message: str, token: str) -> str | None:
    """What may be repeated of GitHub's words."""
    # The token first: where they are cut short, a part of it would be left.
    return scrub(message.replace(token, "[token]"))[:_LONGEST_SAID] if message else None


def app_jwt(app_id: int, private_key: str, now: datetime) -> Auth:
    """What an App calls itself with; valid for nine minutes from `now`, and from a minute before.

    https://docs.github.com/en/apps/creating-github-apps/authenticating-with-a-github-app/generating-a-json-web-token-jwt-for-a-github-app
    """
    second = int(now.timestamp())
    claims = {"iat": second - 60, "exp": second + 540, "iss": str(app_id)}
    return github.Auth.AppAuthToken(jwt.encode(claims, _signing_key(private_key), algorithm="RS256"))


@lru_cache(maxsize=2)
def _signing_key(pem: str) -> RSAPrivateKey:
    """The key in `pem`, kept: to read one takes longer than the question that it is for. Raises `ValueError`."""
    try:
        key = load_pem_private_key(pem.encode(), None)
    except (TypeError, UnsupportedAlgorithm):
        key = None
    if not isinstance(key, RSAPrivateKey):
        raise ValueError("no RSA key")
    return key


def token_auth(token: str) -> Auth:
    """What a token is sent with."""
    return github.Auth.Token(token)
