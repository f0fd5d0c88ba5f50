"""The real program, the real agent, the real proxy: the scripted model is one of the hosts the proxy lets through."""

from collections.abc import Iterator
from pathlib import Path

import docker
import pytest

from pidispatch.box.egress import out_network
from tests.fakes.model.log import RequestLog
from tests.image.assemble import ensure_egress_base
from tests.support.egress import Proxy
from tests.support.model import ModelContainer
from tests.support.program import Stage
from tests.support.repository import Repository


@pytest.fixture
def proxy(engine: docker.DockerClient, tmp_path: Path) -> Iterator[Proxy]:
    made = Proxy(engine, ensure_egress_base(engine), tmp_path)
    yield made
    made.remove()


@pytest.fixture
def model_log(engine: docker.DockerClient, model_image: str, proxy: Proxy, tmp_path: Path) -> Iterator[RequestLog]:
    """The model as a host behind the proxy, which is brought up for it by the verb: model.test, plain HTTP on 443."""
    proxy.lists("# as an operator with a model in the own network\nmodel.test\n", "model.test\n")
    up = proxy.call("up", "--base", proxy.base)
    assert up.code == 0, up
    model = ModelContainer(engine, model_image, tmp_path, behind=out_network(proxy.name))
    try:
        yield model.log
    finally:
        model.remove()


def test_the_agent_reaches_its_model_through_the_proxy(
    stage: Stage, repository: Repository, proxy: Proxy, model_log: RequestLog
) -> None:
    ran = stage.run_job(repository.path, "edit", PI_EGRESS_PROXY=proxy.name)

    assert (ran.code, ran.document["outcome"]) == (0, "completed"), ran
    assert repository.read("hello.txt") == "hello pi\n"
    assert len(model_log.requests(key=stage.key)) == 3
    assert stage.requests() == 0
    tunnels = [line for line in proxy.log.splitlines() if "CONNECT model.test:443 200" in line]
    assert tunnels
    assert list(proxy.container.attrs["NetworkSettings"]["Networks"]) == [out_network(proxy.name)]


def test_the_agent_finds_no_way_past_the_proxy(
    stage: Stage, repository: Repository, proxy: Proxy, model_log: RequestLog
) -> None:
    ran = stage.run_job(repository.path, "escape", PI_EGRESS_PROXY=proxy.name)

    assert (ran.code, ran.document["outcome"]) == (0, "completed"), ran
    attempts = [line.split() for line in repository.read("escape.txt").splitlines()]
    found = {(kind, outcome) for kind, _, outcome in attempts}
    assert found == {("write", "refused"), ("connect", "closed"), ("resolve", "closed"), ("proxy", "403")}
    assert model_log.requests(key=stage.key)


def test_a_model_that_is_taken_off_the_list_is_reached_no_more(
    stage: Stage, repository: Repository, proxy: Proxy, model_log: RequestLog
) -> None:
    proxy.lists("other.test\n")
    proxy.until_status(lambda now: now.allowed == ("other.test",), "the edit to be in force")
    ran = stage.run_job(repository.path, "edit", PI_EGRESS_PROXY=proxy.name)

    assert (ran.code, ran.document["reason"]) == (1, "infra"), ran
    assert model_log.requests(key=stage.key) == []
    assert "CONNECT model.test:443 403" in proxy.log


@pytest.mark.example("ch3 E18", "a run with its proxy stopped is refused before anything is made, with the remedy")
def test_a_run_with_the_proxy_stopped_is_refused(stage: Stage, repository: Repository, proxy: Proxy) -> None:
    proxy.lists("model.test\n")
    assert proxy.call("up", "--base", proxy.base).code == 0
    proxy.container.stop(timeout=10)
    ran = stage.run_job(repository.path, "edit", PI_EGRESS_PROXY=proxy.name)

    document = ran.document
    assert (ran.code, document["outcome"], document["reason"]) == (2, "policy", "egress-proxy-stopped"), ran
    assert "pi-dispatch egress up" in document["remedy"]
    assert list(proxy.container.attrs["NetworkSettings"]["Networks"]) == [out_network(proxy.name)]
