"""Webhooks of the edge: what happened, as GitHub tells it, signed and sent to whoever has asked for it.

https://docs.github.com/en/webhooks/webhook-events-and-payloads
"""

import http.client
import queue
import threading
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from tests.fakes.github.model import Pull
from tests.fakes.github.payloads import encode, headers
from tests.fakes.github.shapes import Shapes
from tests.fakes.github.state import Happening

#: Seconds that GitHub waits for an answer.
ANSWER_S = 10


@dataclass(frozen=True)
class Hook:
    """One webhook: where its deliveries go and what they are signed with."""

    id: int
    url: str
    secret: str = field(repr=False)
    #: Names of events; none: all of them.
    events: frozenset[str] = frozenset()


@dataclass
class Delivery:
    """One delivery; each time it was sent leaves a status, 0 where nobody answered."""

    hook: Hook
    guid: str
    event: str
    payload: dict[str, Any]
    statuses: list[int] = field(default_factory=list)

    @property
    def action(self) -> str:
        """What happened."""
        return str(self.payload["action"])


def payload(happening: Happening, shapes: Shapes) -> dict[str, Any]:
    """The body of a delivery."""
    repository, issue = happening.repository, happening.issue
    told: dict[str, Any] = {"action": happening.action}
    if happening.event == "pull_request":
        assert isinstance(issue, Pull)
        told |= {"number": issue.number, "pull_request": shapes.whole_pull(repository, issue)}
    elif happening.event == "pull_request_review":
        assert isinstance(issue, Pull)
        told |= {"pull_request": shapes.pull(repository, issue)}
    else:
        told |= {"issue": shapes.issue(repository, issue)}
    for name, value in happening.more.items():
        told[name] = _more(name, value, happening, shapes)
    told |= {"repository": shapes.repository(repository), "sender": shapes.user(happening.sender)}
    return told


def _more(name: str, value: Any, happening: Happening, shapes: Shapes) -> Any:
    repository, issue = happening.repository, happening.issue
    if name == "label":
        return shapes.label(repository, value)
    if name == "comment":
        return shapes.comment(repository, issue, value)
    if name == "review":
        assert isinstance(issue, Pull)
        # The one place where GitHub writes the state of a review in small letters.
        return {**shapes.review(repository, issue, value), "state": value.state.lower()}
    return value


class Sender:
    """Sends deliveries one after the other, in the order in which things happened, without holding up who did them."""

    def __init__(self, shapes: Callable[[], Shapes]) -> None:
        """`shapes`: with the addresses that payloads tell."""
        self._shapes = shapes
        self.hooks: list[Hook] = []
        #: All that were sent or are about to be.
        self.deliveries: list[Delivery] = []
        self._queue: queue.Queue[Delivery | None] = queue.Queue()
        self._thread = threading.Thread(target=self._run, name="edge-webhooks", daemon=True)
        self._thread.start()

    def hear(self, happening: Happening) -> None:
        """Tell the hooks of it."""
        for hook in self.hooks:
            if not hook.events or happening.event in hook.events:
                made = Delivery(hook, str(uuid.uuid4()), happening.event, payload(happening, self._shapes()))
                self.deliveries.append(made)
                self._queue.put(made)

    def redeliver(self, delivery: Delivery) -> None:
        """Send it once more, under the same GUID."""
        self._queue.put(delivery)

    def flush(self) -> None:
        """Wait until everything was sent and answered."""
        self._queue.join()

    def close(self) -> None:
        """Send what is waiting, and no more."""
        self._queue.put(None)
        self._thread.join(2 * ANSWER_S)

    def _run(self) -> None:
        while (delivery := self._queue.get()) is not None:
            delivery.statuses.append(_post(delivery))
            self._queue.task_done()


def _post(delivery: Delivery) -> int:
    hook, body = delivery.hook, encode(delivery.payload)
    url = urlsplit(hook.url)
    sent = {
        **headers(delivery.event, body, delivery.guid, hook.secret),
        "User-Agent": "GitHub-Hookshot/044aadd",
        "Accept": "*/*",
        "X-GitHub-Hook-ID": str(hook.id),
        "X-GitHub-Hook-Installation-Target-ID": str(delivery.payload["repository"]["id"]),
        "X-GitHub-Hook-Installation-Target-Type": "repository",
    }
    connection = http.client.HTTPConnection(url.hostname or "", url.port, timeout=ANSWER_S)
    try:
        connection.request("POST", url.path or "/", body, sent)
        return connection.getresponse().status
    except (OSError, http.client.HTTPException):
        return 0
    finally:
        connection.close()
