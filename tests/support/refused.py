"""What holds of every job that ends before its container: nothing spent, nothing asked, nothing left."""

import json
from pathlib import Path
from typing import Any

from tests.support.program import Ran, Stage


def assert_turned_away(stage: Stage, ran: Ran, cause: str, *words: str) -> None:
    """`run` itself refused the job: it says so twice, and leaves neither a record nor a server."""
    document = ran.document
    told = {"jobId": document["jobId"], "status": "refused", "cause": cause, "why": document["why"]}
    assert (ran.code, document) == (2, told), ran
    assert all(word in document["why"] for word in words), document["why"]
    assert document["why"] in ran.err
    assert not (stage.home / ".pi-dispatch").exists()
    assert not (stage.home / "state").exists()
    assert stage.requests() == 0


def assert_refused(
    stage: Stage, ran: Ran, reason: str, cause: str | None, *words: str, code: int = 2
) -> dict[str, Any]:
    """A worker took the job and ended it before its container; its record."""
    document = ran.document
    assert (ran.code, document["reason"], document["cause"]) == (code, reason, cause), ran
    said = f"{document['why']} {document['remedy']}"
    assert all(word in said for word in words), said
    assert document["exitCode"] is None
    assert document["tokens"] is None
    # A refusal is never tried again; what may be mended is, once.
    assert document["attempt"] == (1 if code == 2 else 2)
    assert stage.requests() == 0
    assert "Traceback" not in ran.err
    record: dict[str, Any] = json.loads(Path(document["record"]).read_text())
    assert Path(document["record"]) == stage.home / ".pi-dispatch" / "logs" / f"{record['jobId']}.json"
    assert record == {key: document[key] for key in record}
    assert (record["turns"], record["usage"], record["gitRestored"]) == (None, None, None)
    assert record["budgetReserved"] is False
    return record
