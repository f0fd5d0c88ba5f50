"""A client of the edge that hides nothing of what it answers."""

import http.client
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tests.fakes.github.edge import Edge


@dataclass(frozen=True)
class Told:
    """One answer."""

    status: int
    headers: Mapping[str, str]
    body: Any


def ask(
    edge: Edge, method: str, path: str, token: str | None, body: Any = None, headers: Mapping[str, str] | None = None
) -> Told:
    """One request, on a connection of its own; JSON is read, anything else comes as it is."""
    connection = http.client.HTTPConnection("127.0.0.1", edge.port, timeout=30)
    sent = {"Authorization": f"Bearer {token}"} if token is not None else {}
    content = None if body is None else json.dumps(body).encode()
    try:
        connection.request(method, path, content, {**sent, **(headers or {})})
        response = connection.getresponse()
        data = response.read()
    finally:
        connection.close()
    told = {name.lower(): value for name, value in response.getheaders()}
    is_json = bool(data) and told["content-type"].startswith("application/json")
    return Told(response.status, told, json.loads(data) if is_json else data or None)
