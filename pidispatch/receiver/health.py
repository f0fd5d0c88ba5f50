"""The second listener, off by default: whether the receiver lives, whether it can do its work, and what it counted."""

import asyncio
from collections.abc import Callable
from typing import Any, Final

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from pidispatch.receiver.measures import CONTENT_TYPE, Measures

#: Seconds in which the store must have answered.
_ANSWER_S: Final = 2.0


class Health:
    """Answers on that listener. `rules` counts those in force, `fault` says whether the file's newest are not."""

    def __init__(
        self,
        answers: Callable[[], bool],
        rules: Callable[[], int],
        faulty: Callable[[], bool],
        measures: Measures,
        answer_s: float = _ANSWER_S,
    ) -> None:
        self._answer_s = answer_s
        self._answers = answers
        self._rules = rules
        self._faulty = faulty
        self._measures = measures
        # One question at a time, whoever asks how often.
        self._asking: asyncio.Task[bool] | None = None

    def app(self) -> Starlette:
        """The application."""
        return Starlette(
            routes=[
                Route("/healthz", self._lives),
                Route("/readyz", self._ready),
                Route("/metrics", self._counts),
            ]
        )

    async def _lives(self, _: Request) -> Response:
        return PlainTextResponse("ok\n")

    async def _ready(self, _: Request) -> Response:
        if self._asking is None or self._asking.done():
            self._asking = asyncio.create_task(self._ask())
        found: dict[str, Any] = {"store": await asyncio.shield(self._asking), "rules": not self._faulty()}
        # With a broken edit the old rules serve on: a balancer must not take that for a reason to send nothing.
        return JSONResponse(found, 200 if found["store"] else 503)

    async def _counts(self, _: Request) -> Response:
        shown = self._measures.shown(rules=self._rules(), faulty=self._faulty())
        return Response(shown, media_type=CONTENT_TYPE)

    async def _ask(self) -> bool:
        try:
            return await asyncio.wait_for(asyncio.to_thread(self._answers), self._answer_s)
        except TimeoutError:
            return False
