"""What the agent is told."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pidispatch.values.job import FLOW_NAME, LocalJob, Matched
from pidispatch.workspace.inputs import local_event, local_prompt
from pirunner.checks import Answers, check_flow
from pirunner.environment import parse
from pirunner.lines import Lines
from pirunner.refusal import Refusal, RefusalReason


@given(st.text(min_size=1))
def test_the_prompt_ends_with_the_task_as_it_was_written(task: str) -> None:
    prompt = local_prompt(task)
    assert prompt.endswith(f"\n\n{task}\n")
    assert prompt.removesuffix(f"{task}\n") == local_prompt("").removesuffix("\n")


def test_the_prompt_says_where_things_are() -> None:
    prompt = local_prompt("task")
    assert "/workspace" in prompt
    assert "/job/event.json" in prompt


_FLOWS = st.from_regex(FLOW_NAME, fullmatch=True)


@given(_FLOWS, st.text(min_size=1))
def test_a_flow_is_called_first_and_the_rest_is_as_without_it(flow: str, task: str) -> None:
    assert local_prompt(task, flow) == f"/skill:{flow} {local_prompt(task)}"


@given(_FLOWS, st.text(min_size=1))
def test_pi_finds_the_flow_in_the_call_and_the_task_behind_it(flow: str, task: str) -> None:
    """pi takes the skill's name up to the first blank, and hands on what follows without blanks at its ends."""
    prompt = local_prompt(task, flow)
    name, _, rest = prompt.removeprefix("/skill:").partition(" ")
    assert name == flow
    assert "/job/event.json" in rest.removesuffix(f"{task}\n")
    assert task.strip() in rest.strip()


@pytest.mark.parametrize("loaded", ["other", "fixes"])
def test_the_runner_insists_on_the_flow_that_the_prompt_calls(loaded: str) -> None:
    answers = Answers(state={}, models={}, commands={"commands": [{"name": f"skill:{loaded}", "source": "skill"}]})
    environment = parse({"PI_PROVIDER": "anthropic", "PI_MODEL": "m", "PI_MAX_TURNS": "1", "PI_FLOW": "fix"})
    with pytest.raises(Refusal) as caught:
        check_flow(answers, environment, local_prompt("Mend the greeting.", "fix"), Lines("job"))
    assert caught.value.reason is RefusalReason.FLOW_NOT_LOADED


def test_the_event_holds_the_folders_last_part_only() -> None:
    job = LocalJob(id="local-1", folder=Path("/home/someone/secret place/the folder"), task="a private task")
    text = local_event(job, "a" * 40)
    assert json.loads(text) == {"source": "manual", "folder": "the folder", "sha": "a" * 40}
    assert text.endswith("}\n")
    assert "secret" not in text
    assert "private" not in text


@given(st.text(st.characters(blacklist_characters="/\0"), min_size=1))
def test_any_folder_name_gives_one_line_of_json(name: str) -> None:
    job = LocalJob(id="local-1", folder=Path("/x") / name, task="t")
    text = local_event(job, "a" * 40)
    assert text.count("\n") == 1
    assert json.loads(text)["folder"] == job.folder.name


def test_the_event_of_a_schedule_names_it() -> None:
    matched = Matched(id="nightly", index=3)
    job = LocalJob(id="repeat:nightly:1", folder=Path("/srv/site"), task="a private task", trigger=matched)
    told = json.loads(local_event(job, "a" * 40))
    assert told == {"source": "cron", "trigger": {"id": "nightly"}, "folder": "site", "sha": "a" * 40}
