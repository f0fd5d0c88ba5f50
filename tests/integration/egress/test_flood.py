"""One job that takes all the connections it can, and what the others still get."""

import json
import threading
from pathlib import Path

import docker

from pidispatch.box.abort import Abort
from pidispatch.box.egress import out_network
from pidispatch.box.run import Neighbour
from pidispatch.values.limits import Limits
from pidispatch.values.reason import AbortReason
from tests.support.box import Box
from tests.support.egress import Proxy, Server, from_a_job, until

OPEN = "200 then 200"
#: More than the proxy has descriptors.
FLOOD = 4300


def test_a_job_that_takes_all_connections_shuts_out_itself_alone(
    box: Box, engine: docker.DockerClient, network_image: str, proxy: Proxy, tmp_path: Path
) -> None:
    proxy.lists(".test", ".test")
    proxy.up()
    site = Server(engine, network_image, out_network(proxy.name), "http", "0.0.0.0", "443")
    (tmp_path / "flood").mkdir()
    flooding = Box(engine, tmp_path / "flood")
    spec = flooding.spec(network_image, Limits(stop_grace_s=1), network=True)
    target = f"{site.name}:443"
    spec = spec.model_copy(update={"env": {"PROBES": json.dumps([["hold", proxy.name, target, FLOOD]])}})
    abort = Abort()
    neighbour = Neighbour(id=str(proxy.container.id), alias=proxy.name)
    runner = threading.Thread(target=flooding.run, args=(spec, abort, neighbour))
    runner.start()
    try:
        assert flooding.started.wait(30)
        flood = engine.containers.get(spec.name)
        held = json.loads(until(lambda: flood.logs().decode().partition("holding ")[2], "the flood"))
        sibling = from_a_job(box, network_image, proxy, ["tunnel", proxy.name, target])

        # The flood was one: it had what a job has, and then its own share and nothing beyond it.
        assert (held["before"], held["during"]) == (OPEN, "closed")
        assert 250 <= held["standing"] <= 257
        assert sibling == [OPEN]
    finally:
        abort.set(AbortReason.SHUTDOWN)
        runner.join(30)
        site.remove()
