"""A job beside the real proxy: its network holds both and is gone afterwards, however the job ended."""

import docker
import pytest
from docker.models.containers import Container

from pidispatch.box.engine import Engine
from pidispatch.box.faults import never_started
from pidispatch.box.run import Neighbour
from pidispatch.values.errors import InfraError
from pidispatch.values.limits import Limits
from tests.support.box import Box
from tests.support.egress import Proxy, from_a_job


class Watching(Engine):
    """Notes what the job's network was like when the job was started; may then fail."""

    def __init__(self, client: docker.DockerClient, *, fails: bool) -> None:
        super().__init__(client)
        self.fails = fails
        self.seen: list[object] = []

    def start(self, container: Container) -> None:
        network = self.client.networks.get(f"{container.name}-net")
        self.seen = [network.attrs["Internal"], [member["Name"] for member in network.attrs["Containers"].values()]]
        self.seen.append(list(container.attrs["NetworkSettings"]["Networks"]))
        if self.fails:
            raise never_started("the job's container could not be started", TimeoutError())
        super().start(container)


@pytest.mark.example(
    "ch3 E18", "armed and running: internal network made, proxy connected; after the exit disconnected, then removed"
)
@pytest.mark.parametrize("fails", [False, True], ids=["ended", "raised"])
def test_the_jobs_network_and_its_end(
    box: Box, engine: docker.DockerClient, network_image: str, proxy: Proxy, fails: bool
) -> None:
    proxy.lists("a.test\n")
    proxy.up()
    box.engine = watching = Watching(engine, fails=fails)
    if fails:
        spec = box.spec(network_image, Limits(), network=True)
        with pytest.raises(InfraError) as raised:
            box.run(spec, neighbour=Neighbour(id=str(proxy.container.id), alias=proxy.name))
        assert raised.value.cause == "container-never-started"
        assert box.left(spec) == []
    else:
        assert from_a_job(box, network_image, proxy, ["tunnel", proxy.name, "b.test:443"]) == ["403"]

    internal, members, own = watching.seen
    assert (internal, members) == (True, [proxy.name])
    assert isinstance(own, list)
    assert [name.startswith("pi-job-test-") and name.endswith("-net") for name in own] == [True]
    assert list(proxy.container.attrs["NetworkSettings"]["Networks"]) == [f"{proxy.name}-out"]
    assert proxy.container.status == "running"
