"""Deliveries that nobody here wrote: every example of npm's `@octokit/webhooks-examples`, fetched once.

With them comes what GitHub says its answers and deliveries look like (`schemas`). They lie in the virtual environment,
in a folder named by what was asked for. `python -m tests.payloads` fetches them.
"""

import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple

#: The source of the few that were made of another one.
CHANGED: Final = "changed here"
_HERE: Final = Path(__file__).resolve().parent
#: A triggers file with a rule of each kind, which these payloads can fire.
TRIGGERS: Final = _HERE / "triggers.json"
_DECLARED: Final = (".npmrc", "package.json", "package-lock.json")
_PACKAGE: Final = Path("node_modules", "@octokit", "webhooks-examples")
#: Descriptions of GitHub Enterprise Server and of all without references, which nobody here reads: 380 MB.
_UNREAD: Final = ("node_modules/@octokit/openapi*/generated/gh*.json", "node_modules/@octokit/*/generated/*.deref.json")
#: As it was before a test changed it: which registry is asked may stand in the account's own .npmrc.
_ENVIRONMENT: Final = dict(os.environ)
_HOW: Final = """the payloads of npm's @octokit/webhooks-examples could not be fetched:
{error}
They are fetched once, by the npm of the virtual environment (tools/setup) from the registry that npm is set to: in
~/.npmrc, or with NPM_CONFIG_REGISTRY=URL. Try it alone: .venv/bin/python -m tests.payloads"""


class Payload(NamedTuple):
    """One example."""

    #: Whose it is: `api.github.com`, a version of GitHub Enterprise Server, or `CHANGED`.
    source: str
    event: str
    document: Any


def payloads() -> Iterator[tuple[str, bytes]]:
    """Every example: the name of its event, and its body as a webhook would send it."""
    for one in examples():
        yield one.event, json.dumps(one.document).encode()


@cache
def examples() -> tuple[Payload, ...]:
    """All of them, in an order that is always the same. Raises `RuntimeError` where they cannot be fetched."""
    found = []
    for index in sorted((fetched() / _PACKAGE).glob("*/index.json")):
        for group in json.loads(index.read_text(encoding="utf-8")):
            found += [Payload(index.parent.name, group["name"], document) for document in group["examples"]]
    return (*found, *_changed(found))


def _changed(found: list[Payload]) -> Iterator[Payload]:
    """What no example shows: a review that says something, and an issue that is closed."""
    review = next(one.document for one in found if one.event == "pull_request_review")
    yield Payload(CHANGED, "pull_request_review", review | {"review": review["review"] | {"state": "approved"}})
    opened = next(one.document for one in found if one.event == "issues" and one.document["action"] == "opened")
    yield Payload(CHANGED, "issues", opened | {"action": "closed"})


def fetched() -> Path:
    """The folder that they lie in; they are fetched where they do not. Raises `RuntimeError`."""
    digest = hashlib.sha256()
    for name in _DECLARED:
        digest.update((_HERE / name).read_bytes())
    cache = Path(sys.prefix) / "pi-dispatch-payloads"
    folder = cache / digest.hexdigest()[:16]
    if folder.is_dir():
        return folder
    try:
        cache.mkdir(exist_ok=True)
        # Tiers that run side by side take turns; the second finds the work done.
        with (cache / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not folder.is_dir():
                _fetch(folder)
    except (OSError, RuntimeError) as error:
        raise RuntimeError(_HOW.format(error=error)) from None
    return folder


def _fetch(folder: Path) -> None:
    npm = Path(sysconfig.get_path("scripts")) / "npm"
    with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
        work = Path(scratch) / "work"
        work.mkdir()
        for name in _DECLARED:
            shutil.copyfile(_HERE / name, work / name)
        command = [str(npm), "ci", "--no-audit", "--no-fund"]
        done = subprocess.run(command, cwd=work, env=_ENVIRONMENT, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise RuntimeError("\n".join(done.stderr.splitlines()[:10]))
        for path in (path for pattern in _UNREAD for path in work.glob(pattern)):
            path.unlink()
        work.rename(folder)
