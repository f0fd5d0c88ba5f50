"""One container on a real engine, from its creation to its removal, with a small image whose program is a test's."""

import os
import threading
import uuid
from collections.abc import Iterator
from pathlib import Path

import docker
import pytest
from docker.models.containers import Container
from structlog.testing import capture_logs

from pidispatch.box.abort import Abort
from pidispatch.box.engine import Engine, State
from pidispatch.box.faults import never_started
from pidispatch.box.images import build_image, pack
from pidispatch.box.run import ContainerEnd, Hooks, Neighbour
from pidispatch.box.spec import BoxMount, create_arguments
from pidispatch.values.errors import InfraError
from pidispatch.values.limits import Limits
from pidispatch.values.progress import Stopping
from pidispatch.values.reason import AbortReason
from tests.support.box import Box


@pytest.mark.example("ch8 F7", "a container that ends within milliseconds keeps its status and its last output")
def test_an_instant_end_is_never_missed(box: Box) -> None:
    image = box.image("#!/bin/sh\necho last words\nexit 7\n")
    for _ in range(40):
        spec = box.spec(image, Limits())
        end = box.run(spec)
        assert (end.code, end.tail, end.aborted) == (7, "last words\n", None)
    assert box.left(spec) == []


@pytest.mark.example("ch8 F7", "a container that is silent for longer than the client's time-out is waited for")
def test_silence_past_the_clients_timeout_ends_nothing(box: Box, tmp_path: Path) -> None:
    image = box.image("#!/bin/sh\nread line </workspace/go\necho $line\nexit 5\n")
    impatient = docker.from_env(version="auto", timeout=1)
    box.engine = Engine(impatient)
    (tmp_path / "workspace").mkdir()
    os.mkfifo(tmp_path / "workspace" / "go")
    os.chmod(tmp_path / "workspace" / "go", 0o666)
    ends: list[ContainerEnd] = []
    spec = box.spec(image, Limits())
    runner = threading.Thread(target=lambda: ends.append(box.run(spec)))
    runner.start()
    assert box.started.wait(30)
    # Three times the time-out pass in silence, by the engine's own clock.
    runner.join(3)
    assert runner.is_alive()
    (tmp_path / "workspace" / "go").write_text("spoke at last\n")
    runner.join(30)
    impatient.close()

    assert [(end.code, end.tail) for end in ends] == [(5, "spoke at last\n")]


def test_the_end_of_the_output_is_not_the_end_of_the_job(box: Box) -> None:
    image = box.image("#!/bin/sh\nexec >&- 2>&-\nsleep 1\nexit 9\n")
    assert box.run(box.spec(image, Limits())).code == 9


def test_a_polite_stop_and_one_that_is_not_heard(box: Box) -> None:
    polite = box.image('#!/bin/sh\ntrap "echo bye; exit 143" TERM\necho ready\nwhile :; do sleep 0.1; done\n')
    deaf = box.image('#!/bin/sh\ntrap "" TERM\necho ready\nwhile :; do sleep 0.1; done\n')
    for image, code, tail in ((polite, 143, "ready\nbye\n"), (deaf, 137, "ready\n")):
        abort, said = Abort(), bytearray()

        def stop_once_ready(chunk: bytes, abort: Abort = abort, said: bytearray = said) -> None:
            said.extend(chunk)
            if b"ready\n" in said:
                abort.set(AbortReason.SHUTDOWN)

        spec = box.spec(image, Limits(stop_grace_s=1))
        end = box.run(spec, abort, hooks=Hooks(sink=stop_once_ready))

        assert (end.code, end.aborted, end.tail) == (code, AbortReason.SHUTDOWN, tail)
        assert said.decode() == tail
        assert Stopping(reason="shutdown") in box.told
        assert box.left(spec) == []


class DeafEngine(Engine):
    """An engine that says it stopped a container and did not."""

    def stop(self, name: str, grace_s: int) -> str | None:
        return None


def test_a_stop_that_does_not_take_does_not_hold_the_job(box: Box) -> None:
    image = box.image("#!/bin/sh\nsleep 600\n")
    abort = Abort()
    box.engine = DeafEngine(box.client)
    ender = threading.Thread(target=lambda: box.started.wait(30) and abort.set(AbortReason.SHUTDOWN))
    ender.start()
    spec = box.spec(image, Limits(stop_take_s=0.5))
    with capture_logs() as events:
        end = box.run(spec, abort)
    ender.join()
    job = spec.name.removeprefix("pi-job-")
    [told] = [event for event in events if event["event"] == "stop_did_not_take"]
    assert told == {"event": "stop_did_not_take", "job": job, "graceMs": 500, "log_level": "error"}

    assert (end.code, end.aborted) == (137, AbortReason.SHUTDOWN)
    assert box.left(spec) == []


def test_a_start_that_is_answered_too_late_is_no_start_that_failed(box: Box) -> None:
    """What runs may have spent: it is watched to its end, or removed, and never called unstarted."""

    class LateEngine(Engine):
        def start(self, container: Container) -> None:
            super().start(container)
            raise never_started("the job's container could not be started", TimeoutError())

    box.engine = LateEngine(box.client)
    spec = box.spec(box.image("#!/bin/sh\necho ran\nexit 3\n"), Limits())
    end = box.run(spec)

    assert (end.code, end.tail, end.detached) == (3, "ran\n", False)
    assert box.left(spec) == []


def test_a_start_that_nobody_can_speak_of_ends_as_detached(box: Box) -> None:
    class MuteEngine(Engine):
        def start(self, container: Container) -> None:
            super().start(container)
            raise never_started("the job's container could not be started", TimeoutError())

        def state(self, container: Container) -> State:
            raise TimeoutError

    box.engine = MuteEngine(box.client)
    spec = box.spec(box.image("#!/bin/sh\nsleep 600\n"), Limits(stop_grace_s=0))
    end = box.run(spec)

    assert (end.detached, end.aborted) == (True, None)
    assert box.left(spec) == []


def test_a_creation_that_is_answered_too_late_leaves_nothing(box: Box, probe_image: str) -> None:
    spec = box.spec(probe_image, Limits())
    box.client.containers.create(**create_arguments(spec))
    late = docker.DockerClient(base_url="tcp://127.0.0.1:1", version="1.41", timeout=1)
    try:
        with pytest.raises(InfraError):
            Engine(late, box.client).create(spec)
    finally:
        late.close()

    assert box.left(spec) == []


def test_an_abort_between_creation_and_start_starts_nothing(box: Box, probe_image: str) -> None:
    abort = Abort()

    class AbortingEngine(Engine):
        def output(self, container: Container) -> Iterator[bytes]:
            abort.set(AbortReason.OPERATOR_CANCEL)
            return super().output(container)

    box.engine = AbortingEngine(box.client)
    spec = box.spec(probe_image, Limits())
    end = box.run(spec, abort)

    assert (end.code, end.aborted, end.seconds) == (137, AbortReason.OPERATOR_CANCEL, None)
    assert box.told == []
    assert box.left(spec) == []


def test_a_job_out_of_memory_is_told_from_a_killed_one(box: Box, job_image: str) -> None:
    hungry = program_image_of(
        box, job_image, "#!/usr/bin/python3\nhoard = []\nwhile True: hoard.append(b'x' * 2**24)\n"
    )
    end = box.run(box.spec(hungry, Limits(memory_mib=64)))
    assert (end.code, end.oom_killed, end.aborted) == (137, True, None)

    killed = box.image("#!/bin/sh\nkill -9 $$\n")
    end = box.run(box.spec(killed, Limits()))
    assert (end.code, end.oom_killed) == (137, False)


def program_image_of(box: Box, base: str, script: str) -> str:
    (box.folder / "program").write_text(script)
    (box.folder / "Dockerfile.program").write_text(
        "ARG BASE\nFROM ${BASE}\nCOPY program /program\nUSER 0\nRUN chmod 755 /program\nUSER 1001\n"
        'ENTRYPOINT ["/program"]\n'
    )
    tag = f"pi-test-program:{uuid.uuid4().hex[:12]}"
    files = {"Dockerfile": box.folder / "Dockerfile.program", "program": box.folder / "program"}
    build_image(box.client, pack(files), tag, {"BASE": base})
    box.images.append(tag)
    return tag


@pytest.mark.parametrize(("script", "mode", "code"), [("#!/nowhere\n", 0o755, 127), ("#!/bin/sh\n", 0o644, 126)])
def test_an_entry_point_that_cannot_run(box: Box, script: str, mode: int, code: int) -> None:
    end = box.run(box.spec(box.image(script, mode), Limits()))
    assert (end.code, end.tail.count('"event"')) == (code, 0)


def test_an_absent_image_or_source_never_starts(box: Box, probe_image: str) -> None:
    absent = box.spec("pi-test-nowhere:none", Limits())
    no_source = box.spec(probe_image, Limits())
    mount = BoxMount(source=box.folder / "nowhere", target="/workspace")
    no_source = no_source.model_copy(update={"mounts": (no_source.mounts[0], mount)})
    for spec in (absent, no_source):
        with pytest.raises(InfraError) as raised:
            box.run(spec)
        assert raised.value.cause == "container-never-started"
        assert box.left(spec) == []


def test_a_name_that_is_taken_leaves_the_other_container_alone(box: Box, probe_image: str) -> None:
    spec = box.spec(probe_image, Limits(), network=True)
    other = box.client.containers.create(probe_image, name=spec.name, network="none")
    neighbour = box.client.containers.create(probe_image, ["sleep", "60"], network=private_network(box))
    neighbour.start()
    try:
        with pytest.raises(InfraError) as raised:
            box.run(spec, neighbour=Neighbour(id=str(neighbour.id), alias="gate"))
        assert raised.value.cause == "container-never-started"
        assert box.left(spec) == [spec.name]
        other.reload()
        assert other.status == "created"
    finally:
        other.remove(force=True)
        remove_neighbour(box, neighbour)


def private_network(box: Box) -> str:
    network = box.client.networks.create(f"pi-test-{uuid.uuid4().hex[:8]}", internal=True)
    return str(network.name)


def remove_neighbour(box: Box, neighbour: Container) -> None:
    neighbour.reload()
    networks = list(neighbour.attrs["NetworkSettings"]["Networks"])
    neighbour.remove(force=True)
    for name in networks:
        box.client.networks.get(name).remove()


def test_the_jobs_network_holds_the_job_and_one_neighbour(box: Box, probe_image: str) -> None:
    neighbour = box.client.containers.create(probe_image, ["sleep", "60"], network=private_network(box))
    neighbour.start()
    image = box.image("#!/bin/sh\nread line </workspace/go\n")
    (box.folder / "workspace").mkdir()
    os.mkfifo(box.folder / "workspace" / "go")
    os.chmod(box.folder / "workspace" / "go", 0o666)
    spec = box.spec(image, Limits(), network=True)
    ends: list[ContainerEnd] = []
    gate = Neighbour(id=str(neighbour.id), alias="gate")
    runner = threading.Thread(target=lambda: ends.append(box.run(spec, neighbour=gate)))
    runner.start()
    try:
        assert box.started.wait(30)
        network = box.client.networks.get(f"{spec.name}-net")
        members = {member["Name"] for member in network.attrs["Containers"].values()}
        assert members == {spec.name, neighbour.name}
        assert network.attrs["Internal"] is True
        assert network.attrs["Options"]["com.docker.network.bridge.inhibit_ipv4"] == "true"
        assert network.attrs["Labels"]["pi.dispatch.deployment"] == "0" * 16
        container = box.client.containers.get(spec.name)
        assert container.labels["pi.dispatch.job"] == spec.name.removeprefix("pi-job-")
        (box.folder / "workspace" / "go").write_text("go\n")
        runner.join(30)
        assert [end.code for end in ends] == [0]
        assert box.left(spec) == []
    finally:
        remove_neighbour(box, neighbour)
