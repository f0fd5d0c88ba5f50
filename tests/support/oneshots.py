"""Rules that fire once, the jobs they fire, and files that hold them."""

import json
from pathlib import Path
from typing import Any

from pidispatch.triggers.file import parse_triggers
from pidispatch.triggers.identity import oneshot_of
from pidispatch.values.forge import JobKind
from pidispatch.values.job import ForgeJob, Matched, Origin, Sender, Target

MARK = {"at": "2026-05-04T03:00:00Z", "jobId": "gh-0"}


def rule(number: int = 40, kind: str = "issue", **run: Any) -> dict[str, Any]:
    """An entry for closing one item, once."""
    on = {"type": kind, "action": ["closed"], "number": number, "once": True}
    return {"on": on, "run": {"kind": "github", **(run or {"flow": "deploy"})}}


def marked(entry: dict[str, Any], mark: Any = MARK) -> dict[str, Any]:
    """The same with a mark."""
    return {**entry, "on": {**entry["on"], "disarmed": mark}}


def write(path: Path, *entries: Any) -> Path:
    """A triggers file with these entries."""
    path.write_text(json.dumps({"triggers": list(entries)}))
    return path


def entries_of(path: Path) -> list[Any]:
    """What stands in one."""
    found: list[Any] = json.loads(path.read_text())["triggers"]
    return found


def identity(entry: dict[str, Any]) -> str:
    """What the store keeps the mark of an entry under."""
    [one] = parse_triggers(json.dumps({"triggers": [entry]}), Path("triggers.json")).triggers
    name = oneshot_of(one)
    assert name is not None
    return name


def fired_by(entry: dict[str, Any], index: int = 0, job_id: str = "gh-1", **more: Any) -> ForgeJob:
    """The job of a closing that the entry at `index` takes."""
    on, run = entry["on"], entry["run"]
    kind, number = on["type"], on["number"]
    matched = Matched(index=index, type=kind, action="closed", once=True, number=number if kind == "issue" else None)
    given: dict[str, Any] = {
        "id": job_id,
        "kind": JobKind(run["kind"]),
        "repo": "acme/web",
        "target": Target(type=kind, number=number, title="a private title"),
        "flow": run.get("flow"),
        "command": run.get("command"),
        "trigger": Origin(event="issues", action="closed", delivery_id="1", sender=Sender(id=7), matched=matched),
        "oneshot": identity(entry),
    }
    return ForgeJob(**{**given, **more})
