"""What makes a request a delivery of GitHub's: its headers, and its signature over the raw body.

https://docs.github.com/en/webhooks/using-webhooks/validating-webhook-deliveries
"""

import hmac
import re
from collections.abc import Mapping
from datetime import datetime
from typing import Final

from pidispatch.forges.protocol import Unverified

SIGNATURE: Final = "x-hub-signature-256"
EVENT: Final = "x-github-event"
DELIVERY: Final = "x-github-delivery"

MISSING_SIGNATURE: Final = Unverified(401, "missing signature")
INVALID_SIGNATURE: Final = Unverified(401, "invalid signature")
MISSING_HEADERS: Final = Unverified(400, "missing event headers")

#: Neither header is signed, and both get into logs and names of jobs. GitHub's ids are GUIDs.
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}", re.ASCII)


def signature(body: bytes, secret: bytes) -> str:
    """The header that GitHub sends with `body`."""
    return f"sha256={hmac.digest(secret, body, 'sha256').hex()}"


class GitHubWire:
    """The requests of a webhook with this secret."""

    def __init__(self, secret: bytes) -> None:
        self._secret = secret

    def missing(self, headers: Mapping[str, str]) -> Unverified | None:
        """What a request lacks that is no delivery."""
        if not headers.get(SIGNATURE):
            return MISSING_SIGNATURE
        if not all(_NAME.fullmatch(headers.get(name, "")) for name in (EVENT, DELIVERY)):
            return MISSING_HEADERS
        return None

    def authentic(self, headers: Mapping[str, str], body: bytes, now: datetime) -> Unverified | None:  # noqa: ARG002
        """Why the request is not GitHub's. The signature does not say when it was made, so `now` does not matter."""
        expected = signature(body, self._secret).encode()
        given = headers.get(SIGNATURE, "").encode("utf-8", "surrogatepass")
        return None if hmac.compare_digest(expected, given) else INVALID_SIGNATURE

    def delivery(self, headers: Mapping[str, str]) -> str | None:
        """The id of the delivery."""
        return headers.get(DELIVERY)
