"""The operator's own files: read as JSON, checked against a model, refused as a whole and in words that name the place.

A message names file, entry, field, reason and what to write. It never repeats a value: any of them may be a secret, or
the path of a folder, and messages get into logs.
"""

import json
import os
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NoReturn, TypeVar

from pydantic import BaseModel, ValidationError

from pidispatch.config.text import printable
from pidispatch.values.errors import ConfigError

M = TypeVar("M", bound=BaseModel)
#: How an entry of a list is called, from its index (from 0) and what stands there.
Named = Callable[[int, Any], str]
#: Where something stands: names of fields and indexes.
Place = tuple[int | str, ...]

#: Bytes of the largest file that is read; one that people edit is far smaller.
MOST_BYTES: Final = 4 * 1024 * 1024
#: Faults that are told of one file.
_MOST_FAULTS: Final = 20
#: Kinds of fault that pydantic words for programmers. https://docs.pydantic.dev/latest/errors/validation_errors/
_WORDS: Final[Mapping[str, str]] = {
    "missing": "is missing",
    "extra_forbidden": "is no field of this file",
    "string_type": "must be text",
    "string_too_short": "must not be empty",
    "int_type": "must be a whole number",
    "bool_type": "must be true or false",
    "tuple_type": "must be a list",
    "list_type": "must be a list",
    "too_short": "must not be empty",
    "model_type": "must be an object",
    "dict_type": "must be an object",
}


def read_bytes(path: Path) -> bytes:
    """What stands in the file. Raises `ConfigError` (cause `operator-file`) where it is missing or cannot be read."""
    try:
        with open(path, "rb", opener=_open) as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                refuse(path, ("is no ordinary file. Name one",))
            content = file.read(MOST_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else "its name cannot be used"
        refuse(path, (f"cannot be read: {reason}. Make it readable for this account, or name another file",))
    if len(content) > MOST_BYTES:
        refuse(path, (f"is larger than {MOST_BYTES:,} bytes. Name another file",))
    return content


def _open(path: str, flags: int) -> int:
    # Without waiting for a writer, where somebody put a pipe in its place.
    return os.open(path, flags | os.O_NONBLOCK)


def text_of(content: bytes, path: Path) -> str:
    """`content` as text. Raises `ConfigError` where it is not UTF-8."""
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        refuse(path, (f"is not UTF-8 at byte {error.start}. Save it as UTF-8",))


def read_text(path: Path) -> str:
    """What stands in the file, as text. Raises `ConfigError` as both of the above do."""
    return text_of(read_bytes(path), path)


def parse_json(text: str, path: Path, *, unique_keys: bool = False) -> Any:
    """`text` as JSON. Raises `ConfigError`; with `unique_keys` also for a key that stands twice in one object."""
    try:
        parsed = json.loads(text, object_pairs_hook=_Object, parse_constant=_no_number)
        twice = [_twice(place, key) for place, key in _doubled(parsed, ())] if unique_keys else []
    except json.JSONDecodeError as error:
        refuse(path, (f"line {error.lineno}, column {error.colno}: is no JSON: {error.msg}. Mend it there",))
    except (ValueError, RecursionError):
        # Digits without end, NaN, brackets without end.
        refuse(path, ("is no JSON that can be read: a number or a nesting is out of bounds. Write plain JSON",))
    if twice:
        refuse(path, twice)
    return parsed


def parse_file(model: type[M], text: str, path: Path, *, named: Named | None = None, unique_keys: bool = False) -> M:
    """The file's content as `model`. Raises one `ConfigError` (cause `operator-file`) that tells all its faults.

    `named` calls an entry of the file's list by a name; without it that is its index.
    """
    parsed = parse_json(text, path, unique_keys=unique_keys)
    try:
        return model.model_validate(parsed)
    except ValidationError as error:
        faults = error.errors(include_url=False, include_input=False)
        refuse(path, [_fault(model, parsed, fault, named or at_index("entry")) for fault in faults])


def at_index(word: str) -> Named:
    """Calls entries by their place alone: `window at index 2`."""
    return lambda index, _entry: f"{word} at index {index}"


def refuse(path: Path, faults: Sequence[str]) -> NoReturn:
    """Raise the `ConfigError` of a file with these faults, each a reason and a remedy."""
    told = [f"{printable(str(path))}: {fault}" for fault in faults[:_MOST_FAULTS]]
    if len(faults) > _MOST_FAULTS:
        told.append(f"{printable(str(path))}: and {len(faults) - _MOST_FAULTS} more")
    raise ConfigError("\n".join(told), "operator-file")


class _Object(dict[str, Any]):
    """An object of the file that knows which of its keys stand in it more than once."""

    def __init__(self, pairs: Sequence[tuple[str, Any]]) -> None:
        super().__init__(pairs)
        self.doubled = [] if len(pairs) == len(self) else _repeated([key for key, _ in pairs])


def _repeated(keys: Sequence[str]) -> list[str]:
    return [key for key in dict.fromkeys(keys) if keys.count(key) > 1]


def _no_number(_: str) -> NoReturn:
    raise ValueError


def _doubled(value: Any, place: Place) -> Iterator[tuple[Place, str]]:
    """Every key that stands twice in one object, with the place of the object."""
    if isinstance(value, _Object):
        yield from ((place, key) for key in value.doubled)
        for key, one in value.items():
            yield from _doubled(one, (*place, key))
    elif isinstance(value, list):
        for index, one in enumerate(value):
            yield from _doubled(one, (*place, index))


def _twice(place: Place, key: str) -> str:
    where = f'in "{_path(place)}"' if place else "at the top"
    return f'field "{printable(key)}" stands twice {where}. Leave one of them'


def _fault(model: type[BaseModel], parsed: Any, fault: Mapping[str, Any], named: Named) -> str:
    place: Place = fault["loc"]
    own = fault.get("ctx", {}).get("error")
    reason = str(own) if own is not None else _WORDS.get(fault["type"], fault["msg"])
    remedy = _example(model, place)
    where = _where(parsed, place, named)
    return f"{where}{reason}. {f'Write for example: {remedy}' if remedy else 'See the schema of the file'}"


def _where(parsed: Any, place: Place, named: Named) -> str:
    """The place in words: the entry of the file's list, then the field in it."""
    parts: list[str] = []
    match place:
        case (str(lists), int(index), *rest):
            parts.append(named(index, parsed[lists][index]))
            place = tuple(rest)
    if place:
        parts.append(f'field "{_path(place)}"')
    return f"{', '.join(parts)}: " if parts else ""


def _path(place: Place) -> str:
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{printable(part)}" for part in place)
    return text.removeprefix(".")


def _example(model: type[BaseModel], place: Place) -> str | None:
    """The example that the model gives for the place, or for the nearest thing around it."""
    schema = model.model_json_schema()
    node: Any = schema
    found = _shown(node, None)
    for part in place:
        node = _resolved(node, schema)
        node = node.get("items") if isinstance(part, int) else node.get("properties", {}).get(part)
        if not isinstance(node, dict):
            break
        found = _shown(_resolved(node, schema) | node, part) or found
    return found


def _resolved(node: dict[str, Any], schema: dict[str, Any]) -> dict[str, Any]:
    """What a node of the schema refers to; of a field that may be null what else it may be."""
    for one in node.get("anyOf", ()):
        if one.get("type") != "null":
            node = one
            break
    if (reference := node.get("$ref")) is not None:
        found: dict[str, Any] = schema["$defs"][reference.rpartition("/")[2]]
        return found
    return node


def _shown(node: dict[str, Any], part: int | str | None) -> str | None:
    examples = node.get("examples")
    if not examples:
        return None
    text = json.dumps(examples[0], ensure_ascii=False)
    return f'"{part}": {text}' if isinstance(part, str) else text
