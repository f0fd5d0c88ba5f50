"""What the verbs print as JSON has the keys that its page tells, and no other."""

import json
from pathlib import Path
from typing import Any

import click
import pytest

from pidispatch.box.egress import EgressStatus, RefusedEdit
from pidispatch.box.image_checks import Check
from pidispatch.cli.cancel import Told
from pidispatch.cli.egress import status_document
from pidispatch.cli.handing_in import submitted_document
from pidispatch.cli.image import verify_document
from pidispatch.cli.main import cli
from pidispatch.cli.pause import told_document
from pidispatch.cli.run import refusal_document
from pidispatch.cli.server import document as server_document
from pidispatch.config.settings import Settings
from pidispatch.jobs.rows import Submitted
from pidispatch.server.address import Address
from pidispatch.values.errors import ConfigError
from pidispatch.values.job import LocalJob
from pidispatch.values.record import RunRecord
from tests.support.documented import DOCS, documented, keys
from tests.support.facts import server_facts

PAGE = "reference/json.md"
FACTS = server_facts()
REFUSED = RefusedEdit(at="2026-01-01T00:00:00Z", faults=("x",))
JOB = LocalJob(id="local-1", folder=Path("/srv/site"), task="x")
ADDRESS = Address.parse("redis://h:6379/0")
DOCUMENTS: dict[str, Any] = {
    "## run, retry": submitted_document(Submitted(status="duplicate", job_id="local-1"), "local-1", "pi-jobs", "here"),
    "### Refused": refusal_document(JOB, ConfigError("why", "cause")),
    "## cancel": Told(True, "cancelled", "cancelled", "text").document("local-1"),
    "## pause, resume": told_document(["pi-jobs"], {"*"}, "text"),
    "## server status": server_document(ADDRESS, None, FACTS, None),
    "## egress status": status_document(
        Settings.model_validate({}), EgressStatus(present=True, refused=REFUSED, since="2026-01-01T00:00:00Z")
    ),
    "## image verify": verify_document("pi-job:latest", [Check("user", True, "1001")]),
}


@pytest.mark.parametrize("heading", DOCUMENTS, ids=lambda heading: heading.strip("# "))
def test_the_keys_are_those_of_the_page(heading: str) -> None:
    assert keys(json.loads(json.dumps(DOCUMENTS[heading]))) == documented(PAGE, heading)


def test_the_keys_of_a_record_are_those_of_its_page() -> None:
    assert set(RunRecord.of_no_run(job_id="x", outcome="failed", attempt=1).model_dump(mode="json")) == documented(
        "reference/record.md", "## Its keys"
    )


def _commands(command: click.Command, name: str = "") -> dict[str, click.Command]:
    """Every verb that does something, by its whole name."""
    if not isinstance(command, click.Group):
        return {name: command}
    context = click.Context(command)
    found: dict[str, click.Command] = {}
    for verb in command.list_commands(context):
        under = command.get_command(context, verb)
        assert under is not None
        found |= _commands(under, f"{name} {verb}".strip())
    return found


def test_every_verb_with_json_is_on_the_page() -> None:
    page = (DOCS / PAGE).read_text(encoding="utf-8")
    with_json = {
        name for name, command in _commands(cli).items() if any("--json" in option.opts for option in command.params)
    }
    assert {"status", "check", "runs", "show", "server status", "egress status"} <= with_json
    for name in with_json:
        assert f"`{name}`" in page or any(
            name in heading.strip("# ").split(", ") for heading in page.splitlines() if heading.startswith("## ")
        ), name
