"""One question to GitHub's API and what it answers, through PyGithub, which here does nothing by itself.

PyGithub's own calls follow a permanent redirect, with the token; they wait and ask again where an answer is still being
made; and they pause between two requests. A question that decides whose word counts is asked once, in a bounded time,
and the answer is taken as it comes. So PyGithub is given a connection that hands it no answer which it would act upon.
"""

import json
import logging
import time
from collections.abc import ItemsView
from datetime import UTC, datetime, timedelta
from typing import Any, Final
from urllib.parse import urlsplit

import github
import requests
import urllib3
from github.Auth import Auth
from github.Requester import HTTPSRequestsConnectionClass, Requester, RequestsResponse

from pidispatch.values.clock import Clock

#: Seconds that one question may take, its answer read to the end.
TIMEOUT_S: Final = 10.0
#: Bytes of the longest answer; those that are asked for are far shorter.
_MOST_BYTES: Final = 1024 * 1024
_CHUNK: Final = 65536
_REST_VERSION: Final = "2022-11-28"
_ACCEPT: Final = {"Accept": "application/vnd.github+json"}
#: Seconds that a forge may ask to be left alone for; it says no more than an hour.
_LONGEST_WAIT_S: Final = 86_400


class _Quiet(logging.Logger):
    """PyGithub logs addresses and answers, which hold names."""

    def isEnabledFor(self, level: int) -> bool:  # noqa: ARG002 - the name is given
        return False


Requester.injectLogger(_Quiet("github"))
# Likewise: it logs the address of every request.
logging.getLogger("urllib3.connectionpool").setLevel(logging.INFO)


class Unanswered(Exception):
    """A question without an answer that can be used.

    `reason` is a fixed token, `status` the HTTP status, where there was one. Where GitHub will not be asked more for
    now, `resets` says until when.
    """

    def __init__(self, reason: str, status: int | None = None, resets: datetime | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.status = status
        self.resets = resets


class _Bounded(RequestsResponse):
    """An answer that was read to its end."""

    def __init__(self, response: requests.Response, body: bytes) -> None:
        super().__init__(response)
        self._body = body

    def getheaders(self) -> ItemsView[str, str]:
        # None of them: PyGithub keeps numbers of some, and fails where they are none.
        return {}.items()

    def read(self) -> str:
        return self._body.decode("utf-8", "replace")


class _Once(HTTPSRequestsConnectionClass):
    """A connection for one request."""

    def __init__(self, base_url: str, timeout_s: float) -> None:
        parts = urlsplit(base_url)
        super().__init__(parts.hostname or "", parts.port)
        self._root = f"{parts.scheme}://{parts.netloc}"
        self._timeout_s = timeout_s
        self.answered: requests.Response | None = None

    def getresponse(self) -> RequestsResponse:
        until = time.monotonic() + self._timeout_s
        self.answered = response = self.session.request(
            self.verb,
            f"{self._root}{self.url}",
            headers=self.headers,
            data=self.input,
            timeout=self._timeout_s,
            allow_redirects=False,
            stream=True,
        )
        if 300 <= response.status_code < 400:
            raise Unanswered("lookup-redirected", response.status_code)
        if response.status_code == 202:
            raise Unanswered("lookup-unfinished", 202)
        return _Bounded(response, _read(response, until))


def _read(response: requests.Response, until: float) -> bytes:
    body = b""
    # One piece at a time, so that a server that sends few of them is left too.
    while piece := response.raw.read1(_CHUNK, decode_content=True):
        body += piece
        if time.monotonic() > until:
            raise Unanswered("lookup-timeout")
        if len(body) > _MOST_BYTES:
            raise Unanswered("lookup-unreadable", response.status_code)
    return body


class Api:
    """The API at one address. Several threads may ask at once: each question has a connection of its own."""

    def __init__(self, base_url: str, clock: Clock, timeout_s: float = TIMEOUT_S) -> None:
        self.base_url = base_url
        self._clock = clock
        self._timeout_s = timeout_s

    def ask(self, auth: Auth, verb: str, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        """The JSON object that answers. Raises `Unanswered`, also for a refusal (its `status`)."""
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
        connection = _Once(self.base_url, self._timeout_s)
        try:
            status, _, text = requester.requestJson(verb, path, headers=dict(_ACCEPT), input=body, cnx=connection)
            assert connection.answered is not None, "there is a status"
            if not 200 <= status < 300:
                raise self._refused(status, connection.answered.headers, text)
            return _object(text, status)
        except (requests.Timeout, urllib3.exceptions.TimeoutError):
            raise Unanswered("lookup-timeout") from None
        except (OSError, urllib3.exceptions.HTTPError):
            raise Unanswered("lookup-unreachable") from None
        finally:
            if connection.answered is not None:
                connection.answered.close()
            connection.close()

    def _refused(self, status: int, headers: "requests.structures.CaseInsensitiveDict[str]", text: str) -> Unanswered:
        """What a refusal says.

        https://docs.github.com/en/rest/using-the-rest-api/rate-limits-for-the-rest-api#exceeding-the-rate-limit
        """
        if status in (403, 429):
            spent = headers.get("x-ratelimit-remaining") == "0" or "retry-after" in headers
            if spent or status == 429 or Requester.isRateLimitError(_message(text)):
                return Unanswered("lookup-rate-limited", status, self._resets(headers))
        if status >= 500:
            return Unanswered("lookup-server-error", status)
        return Unanswered("lookup-refused", status)

    def _resets(self, headers: "requests.structures.CaseInsensitiveDict[str]") -> datetime | None:
        if (seconds := _digits(headers.get("retry-after"))) is not None and seconds <= _LONGEST_WAIT_S:
            return self._clock.now() + timedelta(seconds=seconds)
        if (instant := _digits(headers.get("x-ratelimit-reset"))) is not None:
            return datetime.fromtimestamp(instant, UTC)
        return None


def _digits(text: str | None) -> int | None:
    return int(text) if text is not None and text.isascii() and text.isdigit() and len(text) <= 10 else None


def _object(text: str, status: int) -> dict[str, Any]:
    try:
        answer = json.loads(text)
    except (ValueError, RecursionError):
        answer = None
    if not isinstance(answer, dict):
        raise Unanswered("lookup-unreadable", status)
    return answer


def _message(text: str) -> str:
    try:
        message = _object(text, 0).get("message")
    except Unanswered:
        return ""
    return message if isinstance(message, str) else ""


def app_jwt(app_id: int, private_key: str, now: datetime) -> Auth:
    """What an App calls itself with; valid for nine minutes from `now`, and from a minute before.

    https://docs.github.com/en/apps/creating-github-apps/authenticating-with-a-github-app/generating-a-json-web-token-jwt-for-a-github-app
    """
    second = int(now.timestamp())
    sign = github.Auth.AppAuth.create_jwt_sign(private_key, "RS256")
    token = sign({"iat": second - 60, "exp": second + 540, "iss": str(app_id)})
    return github.Auth.AppAuthToken(token.decode() if isinstance(token, bytes) else token)


def token_auth(token: str) -> Auth:
    """What a token is sent with."""
    return github.Auth.Token(token)
