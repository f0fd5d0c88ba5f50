"""Many at once ask for the last places: the store lets in as many as there are."""

import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from pidispatch.money.budget import Budget
from tests.integration.jobs.world import PREFIX
from tests.support.server import OwnServer
from tests.support.settings import settings_of

PROGRAM = """
import sys, redis
from datetime import datetime, UTC
from pidispatch.jobs.store import JobStore
from pidispatch.money.budget import Budget
from pidispatch.values.limits import Limits
from tests.integration.jobs.world import World
from tests.support.settings import settings_of
world = World(redis.Redis(unix_socket_path=sys.argv[1], decode_responses=True))
lease = world.active(sys.argv[2])
print("ready", flush=True)
sys.stdin.readline()
print(world.store.spend(lease, Budget(settings_of({"PI_DAILY_CAP": "10"})).ask(datetime(2026, 5, 4, tzinfo=UTC))).kind)
"""
ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.example("ch2 EX-2", "twenty ask for the last three places of ten at once: three are let in")
def test_twenty_processes_share_the_last_three_places(tmp_path: Path) -> None:
    with OwnServer("valkey", tmp_path) as server:
        client = server.client()
        key = PREFIX + Budget(settings_of({})).ask(datetime(2026, 5, 4, tzinfo=UTC)).ledgers[0].counters[0].key
        client.set(key, 7)
        asking = [
            subprocess.Popen(
                [sys.executable, "-c", PROGRAM, str(server.socket), f"local-{number}"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                cwd=ROOT,
            )
            for number in range(20)
        ]
        try:
            for one in asking:
                assert one.stdout is not None
                assert one.stdout.readline() == "ready\n"
            answers = []
            for one in asking:
                assert one.stdin is not None
                one.stdin.write("go\n")
                one.stdin.flush()
            answers = [one.communicate(timeout=60)[0].strip() for one in asking]
        finally:
            for one in asking:
                one.kill()
                one.communicate()
        assert sorted(answers) == ["over"] * 17 + ["reserved"] * 3
        assert int(str(client.get(key))) == 27
        client.close()
