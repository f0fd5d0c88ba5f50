"""What the agent is told: the prompt and the event, written by the host (docs/explanation/prompt.md)."""

import json

from pidispatch.values.job import LocalJob


def local_prompt(task: str, flow: str | None = None) -> str:
    """The user's turn of a local job: where its context lies, then the task as it was written.

    With a flow it begins with `/skill:<flow> `, which pi replaces by the skill's text; the rest comes below that. The
    runner asks for the skill before it sends anything when a prompt begins so (docs/explanation/prompt.md).
    """
    call = f"/skill:{flow} " if flow else ""
    return (
        f"{call}You work in the git repository at /workspace, which is a person's own folder: edit it in place. "
        "Where this job comes from is written in /job/event.json.\n\n"
        f"{task}\n"
    )


def local_event(job: LocalJob, sha: str) -> str:
    """`event.json` of a job on a folder, which goes in by its last part only."""
    came: dict[str, object] = {"source": "manual"}
    if job.trigger is not None:
        came = {"source": job.trigger.type, "trigger": {"id": job.trigger.id}}
    return json.dumps({**came, "folder": job.folder.name, "sha": sha}) + "\n"
