"""Fills node's compile cache while the image is built: starts pi once and lets it try each kind of API.

No request leaves the build: every client is sent to a closed port of this machine.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

CLI = "/app/node_modules/@earendil-works/pi-coding-agent/dist/bundle/cli.js"
EXTENSION = str(Path(__file__).with_name("budget.js"))
#: One model for each of pi's clients that a first request would have to load.
MODELS = (("anthropic", "claude-sonnet-4-5-20250929"), ("openai", "gpt-4.1"), ("openrouter", "openai/gpt-4.1"))
CLOSED = "http://127.0.0.1:9"


def main(cache: str) -> int:
    """Start pi with its cache in `cache`; the exit code."""
    with tempfile.TemporaryDirectory() as home:
        settings = {"retry": {"enabled": False}, "compaction": {"enabled": False}}
        Path(home, "settings.json").write_text(json.dumps(settings))
        variables = {
            "PATH": os.environ["PATH"],
            "HOME": home,
            "PI_CODING_AGENT_DIR": home,
            "PI_OFFLINE": "1",
            "NODE_COMPILE_CACHE": cache,
            "NODE_USE_ENV_PROXY": "1",
            "HTTPS_PROXY": CLOSED,
            "HTTP_PROXY": CLOSED,
            "RUN_MAX_TURNS": "1",
            **{f"{provider.upper()}_API_KEY": "none" for provider, _ in MODELS},
        }
        command = ["/usr/local/bin/node", CLI, "--mode", "rpc", "--offline", "--no-session", "--no-approve"]
        command += ["--no-extensions", "-e", EXTENSION, "--provider", MODELS[0][0], "--model", MODELS[0][1]]
        with subprocess.Popen(
            command, env=variables, cwd=home, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as pi:
            for provider, model in MODELS:
                say(pi, type="set_model", provider=provider, modelId=model)
                say(pi, type="prompt", message="warm")
                if not settled(pi):
                    return 1
            assert pi.stdin is not None
            pi.stdin.close()
        return pi.returncode


def say(pi: "subprocess.Popen[str]", **command: str) -> None:
    """Send one command."""
    assert pi.stdin is not None
    pi.stdin.write(json.dumps(command) + "\n")
    pi.stdin.flush()


def settled(pi: "subprocess.Popen[str]") -> bool:
    """Whether pi came to rest; False when it ended instead."""
    assert pi.stdout is not None
    return any(json.loads(line).get("type") == "agent_settled" for line in pi.stdout)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
