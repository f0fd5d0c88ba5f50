"""A list of GitHub's, page after page."""

from collections.abc import Iterator, Mapping
from typing import Any, Final
from urllib.parse import urlencode

from github.Auth import Auth

from pidispatch.forges.github.api import Api

#: Items of one page; what they hold can be long.
_PER_PAGE: Final = 30
#: Pages that are read at most; who looks for something in a longer list does not find it.
_MOST_PAGES: Final = 20


def each(api: Api, auth: Auth, path: str, query: Mapping[str, str] | None = None) -> Iterator[dict[str, Any]]:
    """Its items, each page asked for when it is come to. Raises `Unanswered`."""
    next_path: str | None = f"{path}?{urlencode({'per_page': _PER_PAGE, **(query or {})})}"
    for _ in range(_MOST_PAGES):
        if next_path is None:
            return
        page = api.listed(auth, next_path)
        yield from page.items
        next_path = page.next
