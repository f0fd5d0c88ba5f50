"""What the agent is told."""

import json
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from pidispatch.values.job import Job
from pidispatch.workspace.inputs import local_event, local_prompt


@given(st.text(min_size=1))
def test_the_prompt_ends_with_the_task_as_it_was_written(task: str) -> None:
    prompt = local_prompt(task)
    assert prompt.endswith(f"\n\n{task}\n")
    assert prompt.removesuffix(f"{task}\n") == local_prompt("").removesuffix("\n")


def test_the_prompt_says_where_things_are() -> None:
    prompt = local_prompt("task")
    assert "/workspace" in prompt
    assert "/job/event.json" in prompt


def test_the_event_holds_the_folders_last_part_only() -> None:
    job = Job(id="local-1", folder=Path("/home/someone/secret place/the folder"), task="a private task")
    text = local_event(job, "a" * 40)
    assert json.loads(text) == {"source": "manual", "folder": "the folder", "sha": "a" * 40}
    assert text.endswith("}\n")
    assert "secret" not in text
    assert "private" not in text


@given(st.text(st.characters(blacklist_characters="/\0"), min_size=1))
def test_any_folder_name_gives_one_line_of_json(name: str) -> None:
    job = Job(id="local-1", folder=Path("/x") / name, task="t")
    text = local_event(job, "a" * 40)
    assert text.count("\n") == 1
    assert json.loads(text)["folder"] == job.folder.name
