"""``python3 -m tests.fakes.agent SCENARIO ARGUMENT``: one stub agent. Options of pi that follow are ignored."""

import sys

from tests.fakes.agent.scenarios import SCENARIOS

if __name__ == "__main__":
    SCENARIOS[sys.argv[1]](sys.argv[2])
