"""What `check` says of a real engine: its image, the user of jobs, the proxy, and whose engine it is."""

import os
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import docker
import pytest

from pidispatch.box.engine import Engine
from pidispatch.cli.checks.row import Row
from pidispatch.cli.checks.table import CHECKS, look_around
from pidispatch.workspace.locks import engine_lock
from tests.image.assemble import ensure_egress_base, ensure_probe
from tests.integration.cli.bench import Bench
from tests.support.box import program_image
from tests.support.egress import Proxy
from tests.support.oneshots import marked, write
from tests.support.oneshots import rule as one_shot
from tests.support.rootless import rootless_engine
from tests.unit.triggers.entries import entry, rule

BOXED = ("engine", "engine-lock", "image", "named-images", "job-user", "egress")


@pytest.fixture
def _place(engine: docker.DockerClient, bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The engine of all tests and a server; every other variable of ours is unset."""
    for name in [name for name in os.environ if name.startswith("PI_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PI_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setenv("PI_EGRESS_PROXY", "pi-test-nobody")
    monkeypatch.setenv("VALKEY_URL", bench.server.url)
    # Where nobody else's worker is.
    (tmp_path / "locks").mkdir()
    monkeypatch.setattr("pidispatch.workspace.locks._engine_folders", lambda: (tmp_path / "locks",))


pytestmark = pytest.mark.usefixtures("_place")


@pytest.fixture
def image(engine: docker.DockerClient, tmp_path: Path) -> Iterator[str]:
    """An image whose labels say what a job image says."""
    made = program_image(engine, tmp_path, "#!/bin/sh\n", more="LABEL dev.pi-dispatch.forges=github")
    yield made
    engine.images.remove(made, force=True)


def looked(*names: str) -> list[Row]:
    return look_around([check for check in CHECKS if check.name in (names or BOXED)])


def test_an_engine_that_answers_says_which_it_is(engine: docker.DockerClient) -> None:
    rows = {row.check: row for row in looked()}
    info = engine.info()
    assert rows["engine"] == Row("engine", "pass", f"version {info['ServerVersion']} answers, id {info['ID']}", None)
    assert rows["engine-lock"] == Row("engine-lock", "pass", "free: no worker serves this engine", None)
    assert rows["image"].status == "fail"
    assert rows["image"].found == "job-image-missing: there is no image 'pi-job:latest' on this engine"
    assert "pi-dispatch image build" in (rows["image"].remedy or "")
    assert (rows["egress"].status, rows["egress"].found) == (
        "fail",
        "egress-proxy-missing: there is no container 'pi-test-nobody'",
    )
    assert "job-user" not in rows


def test_an_engine_that_is_not_there_is_told_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/none.sock")
    monkeypatch.setenv("PI_TRIGGERS_FILE", str(write(tmp_path / "t.json", entry(run={"image": "pi-test-none:1"}))))
    (row,) = looked()
    assert (row.check, row.status) == ("engine", "fail")
    assert "DOCKER_HOST" in (row.remedy or "")


def test_an_image_and_the_user_of_its_jobs(image: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PI_JOB_IMAGE", image)
    found, user = looked("image", "job-user")
    assert found.status == user.status == "pass"
    assert found.found.startswith(f"{image} (sha256:")
    assert found.found.endswith("): anyUid; forges: github")
    assert "the owner of each job's folder" in user.found
    # As another account than root, which needs no engine's consent.
    monkeypatch.setattr("os.geteuid", lambda: 4242)
    monkeypatch.setattr("os.getegid", lambda: 4242)
    (user,) = looked("job-user")
    assert (user.status, user.found) == ("pass", "4242:4242")
    monkeypatch.setattr("os.getegid", lambda: 0)
    (user,) = looked("job-user")
    assert user.status == "fail"
    assert user.found.startswith("job-user-unmappable (root-group): ")


def test_an_image_without_labels_serves_one_user_alone(
    engine: docker.DockerClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PI_JOB_IMAGE", ensure_probe(engine))
    found, user = looked("image", "job-user")
    assert found.found.endswith(": no capability")
    assert (user.status, "runs as 1001 alone" in user.found) == ("warn", True)
    monkeypatch.setattr("os.geteuid", lambda: 4242)
    (user,) = looked("job-user")
    assert (user.status, user.found.split(":")[0]) == ("fail", "job-image-any-uid-unsupported")


def test_each_image_that_the_triggers_file_names_is_looked_for(
    image: str, engine: docker.DockerClient, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    plain = ensure_probe(engine)
    path = tmp_path / "triggers.json"
    monkeypatch.setenv("PI_TRIGGERS_FILE", str(path))
    monkeypatch.setenv("PI_JOB_IMAGE", image)
    write(path, entry(run={"image": plain}), rule(run={"image": image}))
    (row,) = looked("named-images")
    assert (row.status, row.found) == ("pass", f"on the engine: {plain}, {image}")

    missing = [rule(run={"image": "pi-test-none:1"}), entry(run={"image": "pi-test-none:1"})]
    write(path, entry(on={"id": "other"}), *missing, rule(run={"image": image}))
    failed, passed = looked("named-images")
    assert (failed.status, passed.found) == ("fail", f"on the engine: {image}")
    assert failed.found == (
        "job-image-missing: there is no image 'pi-test-none:1' on this engine; named by the triggers 1, 2"
    )
    assert "pi-dispatch image build --tag REF; or name another" in (failed.remedy or "")

    write(path, entry(run={"image": image}), rule(), marked(one_shot(flow="x", image="pi-test-none:1")))
    assert [one.status for one in looked("named-images")] == ["pass"]
    write(path, entry())
    assert looked("named-images") == []


def test_an_image_that_does_not_serve_the_forge_of_an_entry(
    engine: docker.DockerClient, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    other = program_image(engine, tmp_path, "#!/bin/sh\n", more="LABEL dev.pi-dispatch.forges=gitlab")
    try:
        path = write(tmp_path / "triggers.json", entry(run={"image": other}), rule(), rule(run={"image": other}))
        monkeypatch.setenv("PI_TRIGGERS_FILE", str(path))
        (row,) = looked("named-images")
    finally:
        engine.images.remove(other, force=True)
    assert (row.status, row.found) == (
        "fail",
        f"job-image-forge-unsupported: the image {other!r} serves gitlab, and this is a job of github; named by the "
        "triggers 2",
    )


def test_an_engine_that_maps_users_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with rootless_engine(tmp_path) as host:
        monkeypatch.setenv("DOCKER_HOST", host)
        (row,) = looked("engine")
        assert (row.check, row.status) == ("engine", "fail")
        assert row.found.startswith("job-user-unmappable (rootless): ")
        assert row.remedy == "use a rootful engine"
        # It has no image, and says no more of it than that.
        assert [row.check for row in looked("image", "job-user")] == ["image"]


def test_an_engine_that_another_worker_serves_is_told(engine: docker.DockerClient, bench: Bench) -> None:
    with closing(Engine.connect()) as connection:
        engine_id = connection.facts().id
    lock = engine_lock(engine_id)
    try:
        (row,) = looked("engine-lock")
        assert (row.status, "another worker serves this container engine" in row.found) == ("fail", True)
        bench.store.beat("build-1", {"engine": engine_id})
        (row,) = looked("engine-lock")
        assert (row.status, row.found) == ("pass", "held by the worker build-1")
    finally:
        lock.release()


def test_an_open_network_is_warned_of(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PI_EGRESS", "0")
    (row,) = looked("egress")
    assert (row.status, row.found.partition(":")[0]) == ("warn", "PI_EGRESS=0")


def test_the_proxy_and_what_it_lets_through(
    engine: docker.DockerClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    proxy = Proxy(engine, ensure_egress_base(engine), tmp_path)
    monkeypatch.setenv("PI_EGRESS_PROXY", proxy.name)
    many = [f"host-{number}.example.com" for number in range(30)]
    proxy.lists("\n".join(["forge.example.com", *many]), "forge.example.com\n")
    try:
        proxy.up()
        proxy.until_status(lambda status: status.accepting, "the proxy to accept")
        (row,) = looked("egress")
        assert row.status == "pass"
        assert row.found.startswith(f"{proxy.name} accepts; allowed: ")
        assert row.found.endswith(" and 11 more; of these private addresses too: forge.example.com")

        proxy.lists("https://no.example.com/\n")
        proxy.until_status(lambda status: status.refused is not None, "the edit to be refused")
        rows = looked("egress")
        assert [row.status for row in rows] == ["pass", "warn"]
        assert "is refused and changed nothing" in rows[1].found

        proxy.container.stop(timeout=1)
        (row,) = looked("egress")
        assert (row.status, row.found.split(":")[0]) == ("fail", "egress-proxy-stopped")
        assert row.remedy == "start it: pi-dispatch egress up"
    finally:
        proxy.remove()


def test_a_proxy_that_is_not_ours_or_does_not_accept(
    engine: docker.DockerClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = "pi-test-own-proxy"
    monkeypatch.setenv("PI_EGRESS_PROXY", name)
    labels = {"": "", "pi.dispatch.egress": "of another version"}
    for label, expected in zip(labels, ("pass", "fail"), strict=True):
        container = engine.containers.create(
            ensure_probe(engine), ["sleep", "600"], name=name, init=True, labels={label: labels[label]} if label else {}
        )
        try:
            container.start()
            (row,) = looked("egress")
        finally:
            container.remove(force=True)
        assert row.status == expected
    assert "does not accept connections" in row.found
