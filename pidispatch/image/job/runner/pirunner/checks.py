"""What pi must confirm about itself before it gets the prompt: the exact model, and the job's skill.

pi is lenient where a paid job cannot be: it picks a similar model for an unknown name, and sends an unknown
``/skill:name`` to the model as plain text. Both would spend tokens on something else than what was asked.
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass

from pirunner import records
from pirunner.agent import Agent
from pirunner.environment import Environment
from pirunner.lines import Lines
from pirunner.records import Record
from pirunner.refusal import InfraFailure, Refusal, RefusalReason, config

_STATE, _MODELS, _COMMANDS = "get_state", "get_available_models", "get_commands"
_QUESTIONS = (_STATE, _MODELS, _COMMANDS)


@dataclass(frozen=True, kw_only=True)
class Answers:
    """pi's answers to the start-up questions, as the ``data`` of each response."""

    state: Record
    models: Record
    commands: Record


def ask(agent: Agent) -> None:
    """Queue all questions at once. pi finds them waiting when it has started, so they cost one exchange."""
    for question in _QUESTIONS:
        agent.send(question, id=question)


def collect(agent: Agent, seconds: float) -> Answers:
    """Wait for the answers; raises InfraFailure when they do not come in time."""
    answers: dict[str, Record] = {}
    deadline = time.monotonic() + seconds
    while len(answers) < len(_QUESTIONS):
        record = agent.receive(deadline)
        if record is None:
            missing = ", ".join(question for question in _QUESTIONS if question not in answers)
            raise InfraFailure(f"pi did not answer {missing} within {seconds:g} s")
        if record.get("type") == "response" and record.get("id") in _QUESTIONS:
            answers[records.text(record, "id")] = records.mapping(record, "data")
    return Answers(state=answers[_STATE], models=answers[_MODELS], commands=answers[_COMMANDS])


def check_model(answers: Answers, environment: Environment) -> None:
    """pi selected exactly the model that was asked for, and has a key for it; else raises Refusal ``config``."""
    wanted = (environment.provider, environment.model)
    selected = _names(records.mapping(answers.state, "model"))
    offered = [_names(model) for model in records.objects(answers.models, "models")]
    if selected != wanted or wanted not in offered:
        raise config(
            f"the agent cannot use model {environment.provider}/{environment.model}: "
            "it does not know that exact name, or there is no key for the provider; "
            "set PI_PROVIDER and PI_MODEL to a model it offers, and the provider's key"
        )


def _names(model: Record) -> tuple[str, str]:
    return records.text(model, "provider"), records.text(model, "id")


def context_window(answers: Answers) -> int | None:
    """Tokens the selected model's context can hold, or None when pi does not say."""
    return records.integer(records.mapping(answers.state, "model"), "contextWindow")


def check_flow(answers: Answers, environment: Environment, prompt: str, lines: Lines) -> None:
    """The job's skill is loaded when the prompt calls it; else raises Refusal ``flow-not-loaded``.

    A flow that the prompt does not call by name is guidance only: an advisory line, and the job goes on.
    """
    flow = environment.flow
    if not flow:
        return
    skills = skill_names(answers.commands)
    if flow in skills:
        return
    if prompt.startswith(f"/skill:{flow} "):
        message = f"the skill {flow} is not loaded: its SKILL.md needs that name and a description"
        raise Refusal(RefusalReason.FLOW_NOT_LOADED, message)
    lines.event("flow_not_loaded", flow=flow, skills=len(skills))


def skill_names(commands: Mapping[str, object]) -> set[str]:
    """Names of the loaded skills."""
    names = {
        records.text(command, "name")
        for command in records.objects(commands, "commands")
        if command.get("source") == "skill"
    }
    return {name.removeprefix("skill:") for name in names}
