"""Text of a JSON file that is no text: half of a surrogate pair, which JSON can escape and nothing can write.

https://www.rfc-editor.org/rfc/rfc8259#section-8.2
"""

from collections.abc import Iterator


def broken_places(value: object, place: str = "") -> Iterator[str]:
    """Where such text stands in a parsed file, key or value, as `triggers[0].run.task`."""
    if isinstance(value, str):
        if not _is_text(value):
            yield place
    elif isinstance(value, dict):
        for key, inner in value.items():
            name = f"{place}.{key}" if place else str(key)
            yield from [name] if not _is_text(key) else broken_places(inner, name)
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from broken_places(inner, f"{place}[{index}]")


def _is_text(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
