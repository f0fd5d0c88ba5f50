"""What is told at a worker's terminal."""

from pathlib import Path

import pytest

from pidispatch.runs.words import say, say_settled
from pidispatch.values.progress import CheckPassed, ContainerStarted, Progress, ProviderRetry, Stopping, TurnEnded

NASTY = "[red]x[/red] [/] [link=y] :bug: \x1b[31m\u202e\x07"
SHOWN = "[red]x[/red] [/] [link=y] :bug: \\u{001B}[31m\\u{202E}\\u{0007}"
PROGRESS: list[tuple[Progress, str]] = [
    (CheckPassed(name="folder"), "checked folder"),
    (CheckPassed(name="image", detail=NASTY), f"checked image: {SHOWN}"),
    (ContainerStarted(name="pi-job-1"), "container pi-job-1 started"),
    (TurnEnded(turns=3, tokens=1234567), "turn 3: 1,234,567 tokens so far"),
    (ProviderRetry(attempt=1, max_attempts=2), "the model provider failed; retry 1 of 2"),
    (Stopping(reason="shutdown"), "stopping (shutdown)"),
]


@pytest.mark.parametrize(("progress", "words"), PROGRESS)
def test_a_step_in_words(progress: Progress, words: str) -> None:
    assert say(progress) == words


@pytest.mark.parametrize(
    ("restored", "replaced", "end"),
    [
        ((), False, "it is settled now"),
        ((".git/config",), False, ": .git/config; what stood there until now is kept in /jobs/kept-1"),
        ((), True, "look at its .git/config and .git/hooks before you use git in it"),
    ],
)
def test_a_settled_run_is_told(restored: tuple[str, ...], replaced: bool, end: str) -> None:
    told = say_settled("local-1", "local:site", restored, Path("/jobs/kept-1"), replaced=replaced)
    assert told.startswith("the earlier run local-1 (local:site) was broken off; it is settled now")
    assert told.endswith(end)
