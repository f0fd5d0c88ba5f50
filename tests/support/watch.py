"""What others can see of jobs while they run: events, and the keys of the server beside the rows."""

import base64
import threading
from contextlib import suppress
from typing import Any, Self

import redis

from tests.support.post import Post
from tests.support.server import OwnServer, content


class Watch:
    """Every event of workers and tasks, as any monitor hears them, and everything on the server beside `job:*`."""

    def __init__(self, post: Post, server: OwnServer) -> None:
        self.events: list[dict[str, Any]] = []
        #: Each key with what it held, whenever that changed.
        self.kept: set[str] = set()
        #: The types of these keys.
        self.types: set[str] = set()
        self._prefix = post.prefix
        self._app = post.producer()
        self._client = server.client()
        self._end = threading.Event()
        self._listening = threading.Event()
        self._threads = [threading.Thread(target=act, daemon=True) for act in (self._hear, self._look)]

    def beat(self) -> None:
        """Have workers send a heartbeat at once."""
        self._app.control.heartbeat()

    def _hear(self) -> None:
        with self._app.connection_for_read() as connection:
            receiver = self._app.events.Receiver(connection, handlers={"*": self.events.append})
            with receiver.consumer_context() as (own, _, _):
                self._listening.set()
                while not self._end.is_set():
                    with suppress(TimeoutError):
                        own.drain_events(timeout=0.2)

    def _look(self) -> None:
        while not self._end.wait(0.05):
            for name in self._client.scan_iter("*"):
                if not name.startswith(f"{self._prefix}job:"):
                    self.types.add(str(self._client.type(name)))
                    # It may be gone by now, and another kind of key under its name.
                    with suppress(redis.ResponseError):
                        self.kept.add(f"{name} {content(self._client, name)}")

    def of(self, job_id: str) -> list[str]:
        """The kinds of events that there were of a job, in their order."""
        return [event["type"] for event in self.events if event.get("uuid") == job_id]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        assert self._listening.wait(30)
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        for thread in self._threads:
            thread.join(10)
        self._client.close()
        self._app.close()


def decoded(text: str) -> str:
    """`text`, and beside it whatever in it is base64, as the bodies of messages are."""
    found = [text]
    for word in text.replace('"', " ").replace("'", " ").split():
        try:
            found.append(base64.b64decode(word, validate=True).decode())
        except (ValueError, UnicodeDecodeError):
            continue
    return "\n".join(found)
