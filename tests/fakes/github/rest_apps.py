"""REST: the App, its installation and its tokens. https://docs.github.com/en/rest/apps

An App is asked with a word of its own (`apps.refused`) and not with a token, so these are not among the other routes.
"""

import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from tests.fakes.github import apps
from tests.fakes.github.calls import Call, route
from tests.fakes.github.faults import NOT_FOUND, Reply, message
from tests.fakes.github.model import FULL, RANK, Installation, Token
from tests.fakes.github.shapes import Shapes, node, shown
from tests.fakes.github.state import State

#: The paths at which an App speaks for itself.
PATHS = ("/app", "/app/installations/{installation_id}", "/app/installations/{installation_id}/access_tokens")
_PATH = re.compile(r"/app(?:/installations/(?P<installation>\d+)(?P<mint>/access_tokens)?)?")
#: Minutes for which a token is good.
_MINUTES = 60


@dataclass
class App:
    """The one App there is."""

    id: int = 77
    slug: str = "pi-dispatch-test"
    #: How many tokens it has been given, which names them.
    minted: int = field(default=0, init=False)

    @property
    def bot(self) -> str:
        """The login as which it acts."""
        return f"{self.slug}[bot]"


def answer(
    app: App, state: State, shapes: Shapes, word: str, method: str, path: str, body: Mapping[str, Any]
) -> Reply | None:
    """What the App is told; `None` for a path that is not one of these."""
    found = _PATH.fullmatch(path)
    if found is None:
        return None
    if (refusal := apps.refused(word, app.id, state.now())) is not None:
        return refusal
    if found["installation"] is None:
        return Reply(200, _shown(app, state, shapes))
    installation = state.installations.get(int(found["installation"]))
    if installation is None:
        return NOT_FOUND
    if found["mint"] is None:
        return Reply(200, shapes.installation(installation, app.id, app.slug))
    return NOT_FOUND if method != "POST" else _minted(app, state, shapes, installation, body)


def _minted(app: App, state: State, shapes: Shapes, installation: Installation, body: Mapping[str, Any]) -> Reply:
    """https://docs.github.com/en/rest/apps/apps#create-an-installation-access-token-for-an-app"""
    owner = installation.account.login
    known = {name.partition("/")[2]: name for name in installation.repositories}
    wanted = body.get("repositories", [*known])
    if not {*wanted} <= {*known}:
        return message(
            422, "There is at least one repository that does not exist or is not accessible to the parent installation."
        )
    granted = {**installation.permissions, **body.get("permissions", {})}
    if any(RANK[level] > RANK[installation.permissions.get(name, "none")] for name, level in granted.items()):
        return message(422, "The permissions requested are not granted to this installation.")
    narrowed = body.get("permissions") or installation.permissions
    app.minted += 1
    made = state.add_token(
        Token(
            value=f"ghs_{secrets.token_hex(18)}",
            name=f"installation-{installation.id}-{app.minted}",
            user=state.user(app.bot),
            installation=installation,
            repositories=frozenset(known[name] for name in wanted),
            permissions={**narrowed, "metadata": "read"},
            expires=state.instant() + timedelta(minutes=_MINUTES),
        )
    )
    told: dict[str, Any] = {
        "token": made.value,
        "expires_at": shown(made.expires),
        "permissions": made.permissions,
        "repository_selection": "selected",
    }
    if "repositories" in body:
        told["repositories"] = [shapes.repository(state.repository(f"{owner}/{name}"), made) for name in wanted]
    return Reply(201, told)


def _shown(app: App, state: State, shapes: Shapes) -> dict[str, Any]:
    """`integration`: https://docs.github.com/en/rest/apps/apps#get-the-authenticated-app"""
    owner = state.user("maker")
    return {
        "id": app.id,
        "slug": app.slug,
        "client_id": "Iv1.0123456789abcdef",
        "node_id": node("A", app.id),
        "owner": shapes.user(owner),
        "name": "pi-dispatch test",
        "description": None,
        "external_url": shapes.pages,
        "html_url": f"{shapes.pages}/apps/{app.slug}",
        **dict.fromkeys(("created_at", "updated_at"), "2020-01-01T00:00:00Z"),
        "permissions": FULL,
        "events": ["issues"],
        "installations_count": len(state.installations),
    }


@route("GET", "/installation/repositories")
def repositories(call: Call) -> Reply:
    """https://docs.github.com/en/rest/apps/installations#list-repositories-accessible-to-the-app-installation"""
    if call.token.installation is None:
        return message(403, "You must authenticate with an installation access token in order to list repositories.")
    names = sorted(call.token.repositories or ())
    found = [call.state.repository(name) for name in names]
    rows, headers = call.cut(found, lambda one: call.shapes.repository(one, call.token))
    return Reply(200, {"total_count": len(found), "repository_selection": "selected", "repositories": rows}, headers)
