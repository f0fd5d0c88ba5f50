"""The ASGI application of the receiver: which path is whose, and nothing else. There is no other route."""

from collections.abc import Mapping
from typing import Any, Final

from pidispatch.receiver.body import Receive
from pidispatch.receiver.hook import Hook
from pidispatch.receiver.replies import Send, refusal
from pidispatch.values.forge import FORGES, JobKind

_ROUTES: Final = {row.route: row.kind for row in FORGES.values()}
#: Whose all other paths are: what is not told apart by its path is GitHub's, whatever its headers say.
_REST: Final = JobKind.GITHUB
_NOT_CONFIGURED: Final = {kind: refusal(404, f"{kind} webhooks not configured", close=True) for kind in FORGES}


def forge_at(path: str) -> JobKind:
    """The forge that is heard at a path; one slash at its end makes no difference."""
    return _ROUTES.get(path.removesuffix("/") or "/", _REST)


class Receiver:
    """Hands each request to the hook of its forge. The set of hooks is decided at the start and stays."""

    def __init__(self, hooks: Mapping[JobKind, Hook]) -> None:
        self._hooks = dict(hooks)

    async def __call__(self, scope: Mapping[str, Any], receive: Receive, send: Send) -> None:
        """One request (https://asgi.readthedocs.io/en/stable/specs/www.html)."""
        kind = forge_at(scope["path"])
        hook = self._hooks.get(kind)
        reply = _NOT_CONFIGURED[kind] if hook is None else await hook(scope, receive)
        if reply is not None:
            await reply.send(send)
