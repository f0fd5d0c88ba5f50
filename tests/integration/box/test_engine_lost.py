"""An engine that dies or hangs under a running job: the job ends, in bounded time and with a true word for it."""

import os
import signal
import threading
from pathlib import Path

import docker

from pidispatch.box.abort import Abort
from pidispatch.box.engine import Engine
from pidispatch.box.run import ContainerEnd
from pidispatch.values.limits import Limits
from pidispatch.values.reason import AbortReason
from tests.support.box import Box, OwnEngine, engine_process, program_image


def test_an_engine_that_dies_ends_the_job_as_detached(tmp_path: Path) -> None:
    with OwnEngine(tmp_path) as (client, holder):
        box = Box(client, tmp_path)
        image = program_image(client, tmp_path, "#!/bin/sh\necho working\nsleep 600\n")
        spec = box.spec(image, Limits(detached_s=1))
        ends: list[ContainerEnd] = []
        runner = threading.Thread(target=lambda: ends.append(box.run(spec)))
        runner.start()
        assert box.started.wait(30)
        os.kill(holder, signal.SIGKILL)
        runner.join(60)

        assert [(end.detached, end.aborted) for end in ends] == [(True, None)]


def test_an_engine_that_hangs_does_not_hold_up_the_end_of_a_job(tmp_path: Path) -> None:
    own = OwnEngine(tmp_path)
    with own as (client, holder):
        box = Box(client, tmp_path)
        brisk = docker.DockerClient(base_url=own.host, version="auto", timeout=1)
        box.engine = Engine(client, brisk)
        image = program_image(client, tmp_path, "#!/bin/sh\nsleep 600\n")
        spec = box.spec(image, Limits(stop_grace_s=1, stop_take_s=1))
        ends: list[ContainerEnd] = []
        abort = Abort()
        runner = threading.Thread(target=lambda: ends.append(box.run(spec, abort)))
        runner.start()
        assert box.started.wait(30)
        engine = engine_process(holder)
        os.kill(engine, signal.SIGSTOP)
        try:
            abort.set(AbortReason.SHUTDOWN)
            runner.join(30)
            assert [(end.code, end.aborted) for end in ends] == [(137, AbortReason.SHUTDOWN)]
        finally:
            os.kill(engine, signal.SIGCONT)
            brisk.close()
