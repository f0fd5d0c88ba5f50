"""What the generated pages need from the source as text: events, causes, comments of fields, worked examples.

Everything is read from the syntax tree; nothing that is read is run.
"""

import ast
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

#: Where the package lies, and in it what runs inside of the box.
PACKAGE: Final = Path(__file__).resolve().parents[1] / "pidispatch"
RUNNER: Final = PACKAGE / "image" / "job" / "runner" / "pirunner"


@dataclass(frozen=True)
class Call:
    """One place where an event is written."""

    name: str
    level: str
    fields: tuple[str, ...]
    module: str


def sources(folder: Path) -> Iterator[tuple[Path, ast.Module]]:
    """Every Python file below `folder` with its tree, in one fixed order."""
    for path in sorted(folder.rglob("*.py")):
        yield path, ast.parse(path.read_text(encoding="utf-8"))


def _calls(tree: ast.AST) -> Iterator[ast.Call]:
    return (node for node in ast.walk(tree) if isinstance(node, ast.Call))


def _text(node: ast.expr | None) -> str | None:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None


def _merged(found: Iterable[Call]) -> list[Call]:
    """One call per name and module, fields of all of them in first-seen order."""
    calls: dict[tuple[str, str], Call] = {}
    for call in found:
        key = (call.name, call.module)
        fields = calls[key].fields if key in calls else ()
        calls[key] = Call(call.name, call.level, tuple(dict.fromkeys((*fields, *call.fields))), call.module)
    return [calls[key] for key in sorted(calls)]


#: What the varying part of an event's name is written as in the source, and what it can be.
Parts = Mapping[str, Iterable[str]]


def _event(call: ast.Call, level: str, path: Path, root: Path, parts: Parts) -> list[Call]:
    names = _names(call.args[0], parts) if call.args else []
    where = path.relative_to(root).as_posix()
    if not names:
        raise ValueError(f"{where}:{call.lineno}: the name of an event must be a literal")
    fields = tuple(keyword.arg for keyword in call.keywords if keyword.arg)
    return [Call(name, level, fields, where) for name in names]


def _names(node: ast.expr, parts: Parts) -> list[str]:
    """The names that an event can have; one varying part at its beginning is told by `parts`."""
    match node:
        case ast.Constant(value=str(name)):
            return [name]
        case ast.JoinedStr(values=[ast.FormattedValue(value=part), ast.Constant(value=str(rest))]):
            return [f"{one}{rest}" for one in parts.get(ast.unparse(part), ())]
    return []


def log_events(folder: Path, parts: Parts | None = None) -> list[Call]:
    """Every `log().level("name", field=...)` below `folder`; also `f"{part}_name"`, for each of `parts["part"]`."""
    found = [
        event
        for path, tree in sources(folder)
        for call in _calls(tree)
        if isinstance(call.func, ast.Attribute)
        and isinstance(call.func.value, ast.Call)
        and isinstance(call.func.value.func, ast.Name)
        and call.func.value.func.id == "log"
        for event in _event(call, call.func.attr, path, folder.parent, parts or {})
    ]
    return _merged(found)


def runner_lines(folder: Path) -> list[Call]:
    """Every `lines.event("name", field=...)` of the runner, and the exit line."""
    found = [
        event
        for path, tree in sources(folder)
        for call in _calls(tree)
        if isinstance(call.func, ast.Attribute) and call.func.attr == "event"
        for event in _event(call, "line", path, folder, {})
    ]
    return _merged([*found, Call("exit", "line", ("code", "reason", "..."), "lines.py")])


@dataclass(frozen=True, order=True)
class Cause:
    """A literal cause and what it is raised or returned as."""

    token: str
    kind: str
    module: str


#: What carries a cause, and the place of the cause among the positional arguments.
_CARRIERS: Final[Mapping[str, int | None]] = {
    "ConfigError": 1,
    "InfraError": 1,
    "RateLimited": 2,
    "Refused": None,
    "InfraFailed": None,
}


def causes_in(folder: Path) -> list[Cause]:
    """Every cause written as a literal, also where a helper of the same module takes it as its parameter `cause`."""
    found = set()
    for path, tree in sources(folder):
        carriers = {name: (name, place) for name, place in _CARRIERS.items()}
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef) and (helper := _helper(node)) is not None:
                carriers[node.name] = helper
        for call in _calls(tree):
            if isinstance(call.func, ast.Name) and call.func.id in carriers:
                kind, place = carriers[call.func.id]
                token = _text(_argument(call, place))
                if token is not None:
                    found.add(Cause(token, kind, path.relative_to(folder.parent).as_posix()))
    return sorted(found)


def _helper(function: ast.FunctionDef) -> tuple[str, int] | None:
    parameters = [argument.arg for argument in function.args.args]
    if "cause" not in parameters:
        return None
    for call in _calls(function):
        if isinstance(call.func, ast.Name) and call.func.id in _CARRIERS:
            passed = _argument(call, _CARRIERS[call.func.id])
            if isinstance(passed, ast.Name) and passed.id == "cause":
                return call.func.id, parameters.index("cause")
    return None


def _argument(call: ast.Call, place: int | None) -> ast.expr | None:
    for keyword in call.keywords:
        if keyword.arg == "cause":
            return keyword.value
    return call.args[place] if place is not None and len(call.args) > place else None


def _class(path: Path, name: str) -> tuple[list[str], list[ast.AnnAssign]]:
    text = path.read_text(encoding="utf-8")
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ClassDef) and node.name == name:
            return text.splitlines(), [item for item in node.body if isinstance(item, ast.AnnAssign)]
    raise ValueError(f"{path.name} has no class {name}")


def field_notes(path: Path, name: str) -> dict[str, str]:
    """The `#:` comments above the fields of class `name`, by field."""
    lines, fields = _class(path, name)
    return {ast.unparse(field.target): _note_above(lines, field.lineno) for field in fields}


def member_notes(path: Path, name: str) -> dict[str, str]:
    """The `#:` comments above the members of the enumeration `name`, by member."""
    source = path.read_text(encoding="utf-8")
    lines, notes = source.splitlines(), {}
    [found] = [node for node in ast.parse(source).body if isinstance(node, ast.ClassDef) and node.name == name]
    for item in found.body:
        if isinstance(item, ast.Assign):
            notes[ast.unparse(item.targets[0])] = _note_above(lines, item.lineno)
    return notes


def _note_above(lines: list[str], number: int) -> str:
    above: list[str] = []
    for line in reversed(lines[: number - 1]):
        if not line.strip().startswith("#:"):
            break
        above.insert(0, line.strip().removeprefix("#:").strip())
    return " ".join(above)


def constant_default(path: Path, name: str, field: str) -> float | None:
    """The default of a field when it is written as a plain number."""
    for item in _class(path, name)[1]:
        if ast.unparse(item.target) == field and isinstance(item.value, ast.Constant):
            value: Any = item.value.value
            return value if isinstance(value, int | float) and not isinstance(value, bool) else None
    return None


@dataclass(frozen=True)
class Example:
    """One worked example and the test that proves it."""

    id: str
    sentence: str
    test: str


def examples_in(folder: Path) -> list[Example]:
    """Every `@pytest.mark.example(id, sentence)` below `folder`, in the natural order of their ids."""
    found = []
    for path, tree in sources(folder):
        where = path.relative_to(folder.parent).as_posix()
        for owner, function in _tests(tree):
            for call in (call for decorator in function.decorator_list for call in _calls(decorator)):
                if ast.unparse(call.func) == "pytest.mark.example":
                    texts = [_text(argument) for argument in call.args]
                    if len(texts) != 2 or None in texts:
                        raise ValueError(f"{where}:{call.lineno}: an example has an id and a sentence, both literal")
                    found.append(Example(str(texts[0]), str(texts[1]), f"{where}::{owner}{function.name}"))
    return sorted(found, key=lambda example: (_natural(example.id), example.test))


def _tests(tree: ast.Module) -> Iterator[tuple[str, ast.FunctionDef]]:
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            yield "", node
        elif isinstance(node, ast.ClassDef):
            yield from ((f"{node.name}::", item) for item in node.body if isinstance(item, ast.FunctionDef))


def _natural(text: str) -> list[tuple[int, str]]:
    return [(int(part), "") if part.isdigit() else (0, part) for part in re.split(r"(\d+)", text)]
