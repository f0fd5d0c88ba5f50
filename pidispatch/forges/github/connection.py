"""A connection to GitHub for one request: what answers is read in a bounded time, and not acted upon.

PyGithub's own follows a permanent redirect, with the token; it waits and asks again where an answer is still being
made. So it is given this one, which hands it no answer which it would act upon.
"""

import logging
from collections.abc import ItemsView
from datetime import datetime
from typing import Final
from urllib.parse import urlsplit

import requests
import urllib3
from github.Requester import HTTPSRequestsConnectionClass, Requester, RequestsResponse

from pidispatch.forges.github.cutting import Cutting

#: The header that names an earlier answer.
IF_NEW: Final = "If-None-Match"
_CHUNK: Final = 65536


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
    now, `resets` says until when. `said` is a refusal in GitHub's own words, which are short and hold no secret.
    """

    def __init__(
        self, reason: str, status: int | None = None, resets: datetime | None = None, said: str | None = None
    ) -> None:
        super().__init__(reason)
        self.reason = reason
        self.status = status
        self.resets = resets
        self.said = said


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


class Once(HTTPSRequestsConnectionClass):
    """A connection for one request."""

    def __init__(self, base_url: str, timeout_s: float, most_bytes: int) -> None:
        parts = urlsplit(base_url)
        super().__init__(parts.hostname or "", parts.port)
        self._root = f"{parts.scheme}://{parts.netloc}"
        self._timeout_s = timeout_s
        self._most_bytes = most_bytes
        self.answered: requests.Response | None = None
        self._cutting = Cutting()
        for scheme in ("http://", "https://"):
            self.session.mount(scheme, self._cutting)

    def getresponse(self) -> RequestsResponse:
        try:
            with self._cutting.within(self._timeout_s):
                return self._response()
        except (TimeoutError, requests.Timeout, urllib3.exceptions.TimeoutError):
            # Whichever clock says so first.
            raise Unanswered("lookup-timeout") from None

    def _response(self) -> RequestsResponse:
        self.answered = response = self.session.request(
            self.verb,
            f"{self._root}{self.url}",
            headers=self.headers,
            data=self.input,
            timeout=self._timeout_s,
            allow_redirects=False,
            stream=True,
        )
        if 300 <= response.status_code < 400 and not self._unchanged(response):
            raise Unanswered("lookup-redirected", response.status_code)
        if response.status_code == 202:
            raise Unanswered("lookup-unfinished", 202)
        return _Bounded(response, _read(response, self._most_bytes))

    def _unchanged(self, response: requests.Response) -> bool:
        """Whether nothing is new since an answer that was named."""
        return response.status_code == 304 and IF_NEW in self.headers


def _read(response: requests.Response, most_bytes: int) -> bytes:
    body = bytearray()
    while piece := response.raw.read1(_CHUNK, decode_content=True):
        body += piece
        if len(body) > most_bytes:
            raise Unanswered("lookup-unreadable", response.status_code)
    return bytes(body)
