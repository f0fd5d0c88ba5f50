"""The agent's half of pi's RPC protocol, as far as the runner uses it."""

import json
import os
import queue
import sys
import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field

PROVIDER, MODEL = "stub", "stub-1"

Record = Mapping[str, object]


def usage(total: int, cost: float = 0.001) -> Record:
    """Usage of a call that billed `total` tokens, ten of them output."""
    parts = {"input": total - 10, "output": 10, "cacheRead": 0, "cacheWrite": 0, "totalTokens": total}
    return {**parts, "cost": {"input": cost, "output": 0, "cacheRead": 0, "cacheWrite": 0, "total": cost}}


def assistant(stop_reason: str, tokens: int = 100, error: str = "") -> Record:
    """A finished assistant message."""
    message: dict[str, object] = {
        "role": "assistant",
        "content": [{"type": "text", "text": "words"}] if tokens else [],
        "provider": PROVIDER,
        "model": MODEL,
        "usage": usage(tokens) if tokens else {},
        "stopReason": stop_reason,
    }
    return {**message, "errorMessage": error} if error else message


@dataclass
class Wire:
    """Commands in, events out. Start-up questions are answered by `command` itself."""

    skills: tuple[str, ...] = ()
    streaming: bool = False
    _commands: "queue.SimpleQueue[Record | None]" = field(default_factory=queue.SimpleQueue)

    def __post_init__(self) -> None:
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        for line in sys.stdin.buffer:
            self._commands.put(json.loads(line))
        self._commands.put(None)

    def raw(self, data: bytes) -> None:
        """Write bytes as they are."""
        while data:
            data = data[os.write(1, data) :]

    def emit(self, kind: str, **fields: object) -> None:
        """Write one event."""
        self.raw(json.dumps({"type": kind, **fields}).encode() + b"\n")

    def respond(self, command: Record, data: object = None, error: str = "") -> None:
        """Answer one command."""
        outcome = {"success": False, "error": error} if error else {"success": True, "data": data}
        self.emit("response", id=command.get("id"), command=command["type"], **outcome)

    def command(self, patience_seconds: float | None = None) -> Record | None:
        """The next command that is no start-up question; None when stdin ended or the patience did."""
        model = {"provider": PROVIDER, "id": MODEL, "contextWindow": 1000}
        answers: Mapping[str, Record] = {
            "get_state": {"model": model, "isStreaming": self.streaming},
            "get_available_models": {"models": [{"provider": PROVIDER, "id": MODEL}]},
            "get_commands": {"commands": [{"name": f"skill:{name}", "source": "skill"} for name in self.skills]},
        }
        with suppress(queue.Empty):
            while (command := self._commands.get(timeout=patience_seconds)) is not None:
                kind = str(command["type"])
                if kind not in answers:
                    return command
                self.respond(command, answers[kind])
        return None

    def take_prompt(self) -> Record:
        """Accept the prompt and begin the run; return the prompt command."""
        command = self.command()
        if command is None or command["type"] != "prompt":
            raise SystemExit(9)
        self.respond(command, {"disposition": "started"})
        self.emit("agent_start")
        return command

    def turn(self, message: Record, results: int = 0) -> None:
        """One whole turn."""
        self.emit("turn_start")
        self.emit("message_start", message={**message, "usage": {}})
        self.emit("message_update", usage={}, assistantMessageEvent={"type": "text_delta", "delta": "words"})
        self.emit("message_end", message=message)
        for number in range(results):
            self.emit("tool_execution_start", toolCallId=str(number), toolName="bash")
        self.emit("turn_end", message=message, toolResults=[{"role": "toolResult"}] * results)

    def rest(self, *messages: Record, aborted: bool = False) -> None:
        """End the run."""
        self.emit("agent_end", messages=list(messages), willRetry=False)
        self.emit("agent_settled", aborted=aborted)

    def answer(self, message: Record) -> None:
        """A run of one turn with this message."""
        self.turn(message)
        self.rest(message)

    def until_stdin_ends(self) -> None:
        """Answer aborts until the runner closes stdin."""
        while (command := self.command()) is not None:
            self.respond(command)
