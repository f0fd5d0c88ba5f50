"""No credential stands in anything that an exception shows, whatever goes wrong."""

import json
import logging
import traceback
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from pidispatch.forges.github.account import GitHubAccount
from pidispatch.forges.protocol import Token
from pidispatch.values.errors import DispatchError
from pidispatch.values.job import Target
from tests.fakes.github.apps import private_key
from tests.fakes.github.faults import Fault, Reply, message
from tests.integration.forges.scripted import APP_TOKEN, MINT, USER_TOKEN, Scripted, by_app, by_token

SINCE = datetime(2026, 1, 31, tzinfo=UTC)
STRANGER = "a stranger's words"
TEXT = f"{STRANGER} m"
TARGET = Target(type="pull_request", number=7, title=STRANGER, body=STRANGER)
JOB_TOKEN = "ghs_MARKEDjob"
#: A line out of the middle of the key.
KEY_LINE = private_key().split("\n")[5]
COMMENTS = "/repos/acme/web/issues/7/comments"


def _echo(script: Scripted) -> Callable[[object], Reply]:
    return lambda _: message(403, json.dumps([script.asked[-1].token, script.asked[-1].token]))


def _asks(script: Scripted) -> Iterator[tuple[str, str, Callable[[GitHubAccount], object]]]:
    """What is asked, the question that fails, and how it is asked."""
    script.replies |= {
        "GET /app": Reply(200, {"slug": "robot"}),
        "GET /user": Reply(200, {"id": 1}),
        "GET /users/robot%5Bbot%5D": Reply(200, {"id": 2}),
        "GET /repos/acme/web": Reply(200, {"default_branch": "main"}),
        f"GET {COMMENTS}": Reply(200, []),
    }
    token = Token(JOB_TOKEN)
    yield "GET /user", "pat", lambda one: one.identity()
    yield "GET /app", "app", lambda one: one.identity()
    yield MINT, "app", lambda one: one.mint("acme/web")
    yield "GET /repos/acme/web", "app", lambda one: one.default_branch("acme/web", token)
    yield "GET /repos/acme/web/branches/main", "pat", lambda one: one.default_branch("acme/web", token)
    yield f"GET {COMMENTS}", "app", lambda one: one.acted("acme/web", TARGET, SINCE, token)
    yield f"POST {COMMENTS}", "pat", lambda one: one.comment("acme/web", TARGET, TEXT, "m", SINCE)
    yield f"POST {COMMENTS}", "app", lambda one: one.comment("acme/web", TARGET, TEXT, "m", SINCE)


@pytest.mark.parametrize(
    ("fault", "failing"),
    [
        (None, 8),
        (Fault.BAD_CREDENTIALS, 8),
        (Fault.RATE_LIMITED, 8),
        (Fault.MOVED_PERMANENTLY, 8),
        (Fault.GARBAGE, 8),
        (Fault.WRONG_SHAPE, 6),
        (Fault.HANG_UP, 8),
        (Fault.SLOW, 8),
    ],
    ids=lambda one: getattr(one, "name", str(one)),
)
def test_no_failure_shows_a_credential(
    script: Scripted,
    fault: Fault | None,
    failing: int,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    told, failed = "", 0
    with caplog.at_level(logging.DEBUG):
        for question, source, ask in _asks(script):
            usual = dict(script.replies)
            script.replies[question] = _echo(script) if fault is None else fault
            account = (by_app if source == "app" else by_token)(script, timeout_s=0.05 if fault is Fault.SLOW else 10)
            try:
                ask(account)
            except DispatchError as error:
                failed += 1
                told += "".join(_shown(error))
            told += f"{account!r}{vars(account)}"
            script.replies = usual
    told += caplog.text + "".join(capfd.readouterr())
    assert failed == failing
    used = {one.token for one in script.asked}
    assert used >= {APP_TOKEN, USER_TOKEN, JOB_TOKEN} or fault is Fault.SLOW
    for secret in {*used, APP_TOKEN, USER_TOKEN, JOB_TOKEN, "MARKED", KEY_LINE, STRANGER}:
        assert secret not in told


def _shown(error: BaseException | None) -> Iterator[str]:
    """All that is shown of an exception and of those that it comes from, also of those that it hides."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield f"{error}{error!r}{error.args}{vars(error)}"
        yield from traceback.format_exception(error)
        # What hides in it would be shown by one who looks further: a request has its headers.
        assert not hasattr(error, "request"), type(error)
        error = error.__cause__ or error.__context__


def test_a_token_is_kept_nowhere(script: Scripted, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    account = by_app(script)
    account.mint("acme/web")
    kept = json.dumps([vars(account), vars(account._api), vars(account._credential)], default=lambda one: vars(one))
    assert APP_TOKEN not in kept
    assert "BEGIN RSA" in kept, "it looked where something is kept"
    assert list(tmp_path.iterdir()) == []
