"""What goes wrong with answers, on demand: GitHub's own refusals, and what comes when something stands between."""

import json
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import Enum, auto
from typing import Any

#: When a used-up rate limit is full again.
RESET = datetime(2030, 1, 2, 3, 4, 5, tzinfo=UTC)
RETRY_AFTER_S = 60


@dataclass(frozen=True)
class Reply:
    """An answer: what becomes JSON, or bytes as they are."""

    status: int
    body: Any
    headers: dict[str, str] = field(default_factory=dict)

    def encoded(self) -> bytes:
        """Its body as it is sent; nothing where there can be none."""
        if self.status in (204, 304):
            return b""
        return self.body if isinstance(self.body, bytes) else json.dumps(self.body).encode()


def message(status: int, text: str, **headers: str) -> Reply:
    """A refusal in GitHub's shape; `_` stands for `-` in names of headers."""
    body = {"message": text, "documentation_url": "https://docs.github.com/rest"}
    # These are described without it.
    told = {} if status in (405, 422) else {"status": str(status)}
    return Reply(status, body | told, {name.replace("_", "-"): value for name, value in headers.items()})


class Fault(Enum):
    """What goes wrong with an answer."""

    SERVER_ERROR = auto()
    BAD_GATEWAY = auto()
    NOT_FOUND = auto()
    BAD_CREDENTIALS = auto()
    FORBIDDEN = auto()
    FORBIDDEN_BY_A_PROXY = auto()
    RATE_LIMITED = auto()
    SECONDARY_LIMIT = auto()
    LIMIT_IN_WORDS = auto()
    TOO_MANY_REQUESTS = auto()
    ODD_LIMIT = auto()
    GONE = auto()
    #: To a place that would say yes.
    MOVED_PERMANENTLY = auto()
    FOUND = auto()
    TEMPORARY_REDIRECT = auto()
    ACCEPTED = auto()
    GARBAGE = auto()
    NO_JSON = auto()
    DEEP = auto()
    A_LIST = auto()
    WRONG_SHAPE = auto()
    UNKNOWN_WORD = auto()
    HUGE = auto()
    #: No answer before the test is over.
    SLOW = auto()
    #: One byte after the other.
    DRIP = auto()
    HANG_UP = auto()
    CUT_OFF = auto()


BAD_CREDENTIALS = message(401, "Bad credentials")
NOT_FOUND = message(404, "Not Found")
YES = {"permission": "admin", "role_name": "admin", "user": {"login": "bob", "id": 1002, "type": "User"}}
#: Where a redirect leads.
ELSEWHERE = "/repositories/1/yes"
_PAGE = {"content-type": "text/html; charset=utf-8"}
#: What is answered in the place of an answer.
FAULTS: dict[Fault, Reply] = {
    Fault.SERVER_ERROR: message(500, "Server Error"),
    Fault.BAD_GATEWAY: Reply(502, b"<html><title>Unicorn! \xc2\xb7 GitHub</title></html>", _PAGE),
    Fault.NOT_FOUND: NOT_FOUND,
    Fault.BAD_CREDENTIALS: BAD_CREDENTIALS,
    Fault.FORBIDDEN: message(403, "Resource not accessible by integration"),
    Fault.FORBIDDEN_BY_A_PROXY: Reply(403, b"<html>API rate limit exceeded</html>", _PAGE),
    Fault.RATE_LIMITED: message(
        403,
        "API rate limit exceeded for user ID 1.",
        x_ratelimit_remaining="0",
        x_ratelimit_reset=str(int(RESET.timestamp())),
    ),
    Fault.SECONDARY_LIMIT: message(403, "You have been limited.", retry_after=str(RETRY_AFTER_S)),
    Fault.LIMIT_IN_WORDS: message(403, "You have exceeded a secondary rate limit. Please wait."),
    Fault.TOO_MANY_REQUESTS: message(429, "Too many requests", x_ratelimit_reset=str(int(RESET.timestamp()))),
    Fault.ODD_LIMIT: message(429, "no", x_ratelimit_limit="a", x_ratelimit_remaining="b", x_ratelimit_reset="nan"),
    Fault.GONE: Reply(410, {"message": 7}),
    Fault.MOVED_PERMANENTLY: message(301, "Moved Permanently", location=ELSEWHERE),
    Fault.FOUND: message(302, "Found", location=ELSEWHERE),
    Fault.TEMPORARY_REDIRECT: message(307, "Temporary Redirect", location=ELSEWHERE),
    Fault.ACCEPTED: Reply(202, YES),
    Fault.GARBAGE: Reply(200, b'{"permission":"wri'),
    Fault.NO_JSON: Reply(200, b"admin"),
    Fault.DEEP: Reply(200, b"[" * 200_000),
    Fault.A_LIST: Reply(200, [YES]),
    Fault.WRONG_SHAPE: Reply(200, {"permission": ["admin"], "id": "9", "slug": "a/b", "token": "a\nb"}),
    Fault.UNKNOWN_WORD: Reply(200, {"permission": "owner", "id": 0, "slug": "", "token": "é"}),
    Fault.HUGE: Reply(200, b'{"permission":"admin","x":"' + b"x" * 3_000_000 + b'"}'),
}
