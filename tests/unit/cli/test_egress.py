"""The verb `egress` without an engine: how it is called, and the words for what was found."""

from pathlib import Path

import pytest

from pidispatch.box.egress import EgressStatus
from pidispatch.cli.egress import _show_lists, _words
from pidispatch.cli.main import _run
from pidispatch.config.settings import Settings


def test_without_a_verb_the_usage_is_shown_and_the_call_was_wrong(capsys: pytest.CaptureFixture[str]) -> None:
    assert _run(["egress"]) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("Usage: pi-dispatch egress")
    for verb in ("up", "status", "down"):
        assert f"  {verb} " in captured.err


@pytest.mark.parametrize("verb", [[], ["up"], ["status"], ["down"]])
def test_help_is_no_wrong_call(verb: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert _run(["egress", *verb, "--help"]) == 0
    assert capsys.readouterr().out.startswith(f"Usage: pi-dispatch {' '.join(['egress', *verb])}")


@pytest.mark.parametrize("arguments", [["unheard-of"], ["up", "x"], ["up", "--base", "--x"], ["status", "--yaml"]])
def test_a_wrong_call_ends_with_1(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert _run(["egress", *arguments]) == 1
    assert capsys.readouterr().err.startswith("Usage: pi-dispatch egress")


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (EgressStatus(present=False), "does not exist. Bring it up with: pi-dispatch egress up"),
        (EgressStatus(present=True, running=True), "runs; pi-dispatch did not make it, so its lists are not known"),
        (EgressStatus(present=True), "does not run; pi-dispatch did not make it, so its lists are not known"),
        (EgressStatus(present=True, ours=True), "does not run. Start it with: pi-dispatch egress up"),
        (EgressStatus(present=True, ours=True, running=True), "runs, but does not accept connections"),
        (EgressStatus(present=True, ours=True, running=True, accepting=True), "runs and accepts"),
    ],
)
def test_the_words_for_what_was_found(found: EgressStatus, words: str) -> None:
    assert _words(found) == words


def test_what_the_proxy_says_cannot_write_on_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    settings = Settings.model_validate({"PI_EGRESS_DIR": "/srv/lists", "PI_EGRESS": "0"})
    found = EgressStatus.model_validate(
        {
            "present": True,
            "allowed": ["a\x1b[31m"],
            "since": "2030\x1b",
            "refused": {"at": "\x1b", "faults": ["b\x1b[2J"]},
        }
    )
    _show_lists(settings, found)
    out = capsys.readouterr().out
    assert "\x1b" not in out
    assert str(Path("/srv/lists/egress-allowlist.conf")) in out
    assert "PI_EGRESS=0 is set: jobs do not use the proxy" in out
