"""The catalogue: every script the end-to-end tests ask for by model id, one sentence each."""

from __future__ import annotations

from collections.abc import Mapping

from . import programs
from .script import Call, Calls, Cut, Echo, Fault, Hang, Length, NoUsage, Say, Scenario, Slow, Step
from .usage import Usage


def _bash(command: str) -> Call:
    return Call("bash", {"command": command})


def _named(name: str, *steps: Step, usage: Usage | None = None) -> Scenario:
    return Scenario(name, steps, usage)


_ALL = (
    # Says hello and stops: the shortest run.
    _named("say", Say("Hello from the scripted model.")),
    # Writes hello.txt, edits it to "hello pi", says so: 3 requests, a file really changed.
    _named(
        "edit",
        Call("write", {"path": "hello.txt", "content": "hello world\n"}),
        Call("edit", {"path": "hello.txt", "edits": [{"oldText": "world", "newText": "pi"}]}),
        Say("Done: hello.txt says hello pi."),
    ),
    # The demo's story: reads greet.py, mends its spelling, runs it, says so: 4 requests.
    _named(
        "greeter",
        Call("read", {"path": "greet.py"}),
        Call("edit", {"path": "greet.py", "edits": [{"oldText": "Helo", "newText": "Hello"}]}),
        _bash("python3 greet.py"),
        Say('Done: greet.py now says "Hello, world!".'),
    ),
    # Two tool calls in one answer, then says so.
    _named("multi", Calls((_bash("echo a > a.txt"), _bash("echo b > b.txt"))), Say("Both are written.")),
    # Appends a line to loop.txt, for ever: only a budget ends it.
    _named("loop", _bash("echo turn >> loop.txt")),
    # One bash call that sleeps 600 seconds: only a time limit or an abort ends it in time.
    _named("sleepy", _bash("sleep 600; echo woke > woke.txt"), Say("I slept.")),
    # Says it could not do the work and changes nothing: still a completed run.
    _named("nochange", Say("I could not do what was asked, so I changed nothing.")),
    # 503 twice, then recovers: the agent's own retries get through.
    _named(
        "flaky",
        Fault(503, "The engine is currently overloaded, please try again later", 2),
        Say("Recovered."),
    ),
    # 429 for ever: retries run out.
    _named("overloaded", Fault(429, "Rate limit reached for requests")),
    # 500 for ever: retries run out.
    _named("broken", Fault(500, "The server had an error while processing your request")),
    # 401: the key is refused, nothing to retry.
    _named("refused", Fault(401, "Incorrect API key provided")),
    # 403: the key may not use this model, nothing to retry.
    _named("forbidden", Fault(403, "Your API key does not have permission to use the specified resource")),
    # The first stream breaks off in the middle of a sentence, the next one is whole.
    _named("cut", Cut("This sentence breaks off in the", 1), Say("Recovered after the cut.")),
    # Every stream breaks off.
    _named("cutalways", Cut("This sentence always breaks off in the")),
    # Streams a text for 10 seconds, a piece every 0.1 s.
    _named("slow", Slow("word " * 100, 0.1, 100)),
    # Never answers: only a time-out ends it.
    _named("hang", Hang()),
    # The answer ends at the token limit.
    _named("length", Length("This answer is too long for its limit and ends here, because")),
    # Reports no usage.
    _named("nousage", NoUsage("Nobody counted these tokens.")),
    # Leaves sleeping children in the background (plain, setsid, nohup, orphaned), then says done.
    _named("background", _bash(programs.BACKGROUND), Say("Started in the background.")),
    # Writes 100 MiB to the container's stdout past the runner, then says done.
    _named("flood", _bash(programs.FLOOD), Say("Flooded the container's stdout.")),
    # Prints 32 MiB on the tool's own stdout, then says done.
    _named("floodtool", _bash(programs.FLOOD_TOOL), Say("Printed a lot.")),
    # Writes forged exit lines to every stdout it can open, then says done.
    _named("forge", _bash(programs.FORGE), Say("Forged the exit line.")),
    # Leaves a daemon that goes on forging exit lines, then says done.
    _named("forgelate", _bash(programs.FORGE_LATE), Say("Forging in the background.")),
    # A tool that takes memory until the container's limit stops it, then says so.
    _named("oom", _bash(programs.OOM), Say("Survived running out of memory.")),
    # Tries to write outside the workspace and to reach other hosts; outcomes in escape.txt.
    _named("escape", _bash(programs.ESCAPE), Say("Tried to escape.")),
    # Writes the environment of the tool and of PID 1 to env.txt.
    _named("env", _bash(programs.ENVIRONMENT), Say("Wrote the environment.")),
    # Says back the text of the last user message, so that a test sees what the agent made of skill and
    # prompt.
    _named("skillecho", Echo("I was told:\n")),
    # Commits a new file in the workspace's git repository.
    _named("commit", _bash(programs.COMMIT), Say("Committed committed.txt.")),
    # Tries to write the runner's memory and its output; outcomes in meddle.txt.
    _named("meddle", _bash(programs.MEDDLE), Say("Tried to meddle.")),
    # Leaves two requests for follow-up jobs in the outbox.
    _named("outbox", _bash("echo '{}' > /outbox/request-1.json; echo '{}' > /outbox/request-2.json"), Say("Asked.")),
    # Reports 60,000 tokens a turn, for ever: a token budget ends it.
    _named("big", _bash("echo big >> big.txt"), usage=Usage(input=50_000, output=10_000)),
    # Runs the shell script .plant of the workspace, whatever it does, then says done.
    _named("plant", _bash("sh .plant"), Say("Planted.")),
    # Runs .plant and then sleeps 600 seconds, so that the run can be ended after the planting.
    _named("plantandsleep", _bash("sh .plant"), _bash("sleep 600"), Say("Slept on it.")),
    # An issue's whole story: a branch, a pull request, a comment on each.
    _named("pullrequest", _bash(programs.PULL_REQUEST), Say("Opened a pull request.")),
    # Tries to push to the default branch, and comments on what came of it.
    _named("pushmain", _bash(programs.PUSH_MAIN), Say("Tried to push to the default branch.")),
    # Comments on a pull request and reviews it.
    _named("review", _bash(programs.REVIEW), Say("Reviewed it.")),
    # Waits until its token has ended, then tries to push.
    _named("waitthenpush", _bash(programs.WAIT_THEN_PUSH), Say("Waited, then tried to push.")),
    # A tool that ignores every polite signal: only SIGKILL ends it.
    _named("stubborn", _bash(programs.STUBBORN), Say("Could not be stopped.")),
)

#: Model id -> scenario.
CATALOGUE: Mapping[str, Scenario] = {scenario.name: scenario for scenario in _ALL}
