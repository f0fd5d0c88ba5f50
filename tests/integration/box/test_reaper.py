"""What a dead worker left on a real engine: settled by what it shows, then gone, and nothing of anybody else's."""

import secrets
from collections.abc import Iterator
from pathlib import Path

import docker
import pytest
from docker.models.containers import Container

from pidispatch.box.engine import Engine
from pidispatch.box.spec import create_arguments
from pidispatch.config.clock import SystemClock
from pidispatch.runs.reaper import Stray, reap
from pidispatch.values.errors import InfraError
from pidispatch.values.limits import Limits
from pidispatch.values.outcome import Completed, InfraFailed, Refused
from pidispatch.values.reason import Reason
from tests.support.box import program_image
from tests.support.engine import left_of
from tests.support.spec import plain_spec

#: Ends at once with the status its folder names, or works on where it names none.
STUB = """#!/bin/sh
[ -e /workspace/code ] || exec sleep 600
code=$(cat /workspace/code)
echo '{"event":"exit","jobId":"x","code":'$code',"reason":"stop","turns":4}'
exit $code
"""


class Wreck:
    """Containers and networks of a deployment of a test's own, without anybody who watches them."""

    def __init__(self, client: docker.DockerClient, home: Path) -> None:
        self.client = client
        self.home = home
        self.deployment = secrets.token_hex(8)
        self.image = program_image(client, home, STUB)
        self.told: list[Stray] = []
        self.made: list[Container] = []

    def leave(self, *, code: int | None, deployment: str | None = None, start: bool = True) -> Container:
        """A container of a job, with its network, as a killed worker leaves it."""
        home = self.home / secrets.token_hex(4)
        (home / "workspace").mkdir(parents=True)
        if code is not None:
            (home / "workspace" / "code").write_text(str(code))
        spec = plain_spec(self.image, home, network=True).model_copy(
            update={
                "deployment": deployment or self.deployment,
                "attempt": 2,
                "job_id": None,
            }
        )
        assert spec.network is not None
        Engine(self.client).create_network(spec.network, spec.deployment)
        container = self.client.containers.create(**create_arguments(spec))
        self.made.append(container)
        if start:
            container.start()
        if code is not None:
            container.wait(timeout=30)
        return container

    def reap(self) -> tuple[str, ...]:
        """One pass of the reaper, which must tell of each container while it is there."""

        def settle(stray: Stray) -> None:
            assert left_of(self.client, f"pi-job-{stray.job_id}") != []
            self.told.append(stray)

        limits = Limits(stop_grace_s=1)
        return reap(Engine(self.client), self.deployment, self.home / "jobs", settle, limits, SystemClock())

    def clear(self) -> None:
        """Remove everything that was made."""
        for container in self.made:
            for name in left_of(self.client, str(container.name)):
                if name.endswith("-net"):
                    Engine(self.client).clear_network(name)
                else:
                    self.client.api.remove_container(name, force=True)
        self.client.images.remove(self.image, force=True)


@pytest.fixture
def wreck(engine: docker.DockerClient, tmp_path: Path) -> Iterator[Wreck]:
    wreck = Wreck(engine, tmp_path)
    yield wreck
    wreck.clear()


def job_of(container: Container) -> str:
    return str(container.name).removeprefix("pi-job-")


def test_each_is_settled_by_what_it_shows_and_then_gone(wreck: Wreck) -> None:
    done, refused, failed = (wreck.leave(code=code) for code in (0, 2, 1))
    working, unstarted = wreck.leave(code=None), wreck.leave(code=None, start=False)

    assert wreck.reap() == ()

    told = {stray.job_id: stray for stray in wreck.told}
    assert len(wreck.told) == 5
    assert isinstance(told[job_of(done)].result.outcome, Completed)
    assert isinstance(told[job_of(refused)].result.outcome, Refused)
    assert isinstance(told[job_of(failed)].result.outcome, InfraFailed)
    assert told[job_of(working)].result.outcome == InfraFailed(reason=Reason.WORKER_LOST)
    assert told[job_of(unstarted)].result.outcome == InfraFailed(reason=Reason.CONTAINER_NEVER_STARTED)
    assert [told[job_of(one)].state for one in (done, working, unstarted)] == ["exited", "running", "created"]
    assert [told[job_of(one)].started for one in (done, working, unstarted)] == [True, True, False]
    assert [told[job_of(one)].result.telemetry.turns for one in (done, unstarted)] == [4, None]
    assert {stray.attempt for stray in wreck.told} == {2}
    assert [name for one in wreck.made for name in left_of(wreck.client, str(one.name))] == []
    assert wreck.reap() == ()
    assert len(wreck.told) == 5


def test_a_network_that_others_are_on_is_cleared_of_them(wreck: Wreck, probe_image: str) -> None:
    left = wreck.leave(code=0)
    outside = wreck.client.networks.create(f"pi-test-{secrets.token_hex(4)}", internal=True)
    gate = wreck.client.containers.create(probe_image, ["sleep", "600"], network=str(outside.name))
    try:
        gate.start()
        wreck.client.networks.get(f"{left.name}-net").connect(gate)
        assert wreck.reap() == ()
        assert left_of(wreck.client, str(left.name)) == []
        gate.reload()
        assert (gate.status, list(gate.attrs["NetworkSettings"]["Networks"])) == ("running", [outside.name])
    finally:
        gate.remove(force=True)
        outside.remove()


def test_nothing_of_another_deployment_and_no_other_container_is_touched(wreck: Wreck, probe_image: str) -> None:
    foreign = wreck.leave(code=None, deployment=secrets.token_hex(8))
    label = {"pi.dispatch.deployment": wreck.deployment}
    named = wreck.client.containers.create(
        probe_image, ["true"], name=f"x-pi-job-{secrets.token_hex(4)}", labels=label, network="none"
    )
    network = wreck.client.networks.create(f"x-pi-job-{secrets.token_hex(4)}-net", internal=True, labels=label)
    try:
        assert wreck.reap() == ()
        assert wreck.told == []
        foreign.reload()
        assert foreign.status == "running"
        assert len(left_of(wreck.client, str(foreign.name))) == 2
        assert left_of(wreck.client, str(named.name)) == [named.name]
        assert left_of(wreck.client, str(network.name)) == [network.name]
    finally:
        named.remove(force=True)
        network.remove()


def test_what_cannot_be_settled_stays_and_is_settled_by_the_next_pass(wreck: Wreck) -> None:
    left, other = wreck.leave(code=0), wreck.leave(code=0)

    def deaf(stray: Stray) -> None:
        if stray.job_id == job_of(left):
            raise InfraError("no answer", "not-started")

    failed = reap(Engine(wreck.client), wreck.deployment, wreck.home / "jobs", deaf, Limits(), SystemClock())
    assert failed == (left.name,)
    assert left_of(wreck.client, str(left.name)) == [left.name]
    assert left_of(wreck.client, str(other.name)) == []
    assert wreck.reap() == ()
    assert [stray.job_id for stray in wreck.told] == [job_of(left)]
    assert left_of(wreck.client, str(left.name)) == []
