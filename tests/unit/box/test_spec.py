"""The description of a job container: what it always says, and what it can never say."""

import string
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from pidispatch.box.spec import IMAGE_USER, MOUNT_TARGETS, BoxMount, ContainerSpec, JobUser, create_arguments
from pidispatch.values.limits import Limits

FORBIDDEN = {
    "privileged", "cap_add", "devices", "device_requests", "device_cgroup_rules", "pid_mode", "ipc_mode", "uts_mode",
    "userns_mode", "cgroup_parent", "group_add", "ulimits", "sysctls", "runtime", "volumes", "volumes_from",
    "oom_kill_disable", "publish_all_ports", "ports", "extra_hosts", "links", "network_mode", "entrypoint", "command",
    "working_dir", "auto_remove", "log_config", "restart_policy",
}  # fmt: skip


def spec(**changes: Any) -> ContainerSpec:
    name = changes.get("name", "pi-job-gh-1")
    fields: dict[str, Any] = {
        "isolated": True,
        "name": name,
        "image": "pi-job:latest",
        "user": IMAGE_USER,
        "env": {"PI_JOB_ID": name},
        "mounts": (
            BoxMount(source=Path("/jobs/job-1"), target="/job"),
            BoxMount(source=Path("/jobs/job-1/workspace"), target="/workspace"),
        ),
        "network": None,
        "deployment": "0" * 16,
        "limits": Limits(),
    }
    return ContainerSpec.model_validate(fields | changes)


@pytest.mark.example("ch3 E1", "the arguments of a minimal job container, its root file system read-only")
def test_minimal_arguments() -> None:
    arguments = create_arguments(spec())

    assert arguments["name"] == "pi-job-gh-1"
    assert arguments["cap_drop"] == ["ALL"]
    assert arguments["security_opt"] == ["no-new-privileges"]
    assert arguments["pids_limit"] == 512
    assert arguments["shm_size"] == "1g"
    assert arguments["mem_limit"] == arguments["memswap_limit"] == "4g"
    assert arguments["nano_cpus"] == 2 * 10**9
    assert arguments["init"] is True
    assert arguments["read_only"] is True
    assert set(arguments["tmpfs"]) == {"/tmp", "/home/pi"}
    assert [(mount["Target"], mount["ReadOnly"]) for mount in arguments["mounts"]] == [
        ("/job", True),
        ("/workspace", False),
    ]
    assert not {"network", "user", "dns", *FORBIDDEN} & set(arguments)


@pytest.mark.example("ch3 E2", "a local job's mounts in order, the workspace being the operator's own folder")
def test_local_job_with_overlay() -> None:
    mounts = (
        BoxMount(source=Path("/jobs/j"), target="/job"),
        BoxMount(source=Path("/srv/site"), target="/workspace"),
        BoxMount(source=Path("/jobs/j/outbox"), target="/outbox"),
        BoxMount(source=Path("/etc/overlay"), target="/opt/pi-global"),
    )
    written = create_arguments(spec(mounts=mounts))["mounts"]

    assert [(mount["Source"], mount["Target"], mount["ReadOnly"]) for mount in written] == [
        ("/jobs/j", "/job", True),
        ("/srv/site", "/workspace", False),
        ("/jobs/j/outbox", "/outbox", False),
        ("/etc/overlay", "/opt/pi-global", True),
    ]
    assert {mount["Type"] for mount in written} == {"bind"}


def test_an_explicit_user_and_network() -> None:
    job_user = JobUser(uid=4242, gid=4343, explicit=True)
    env = {"PI_JOB_ID": "pi-job-gh-1", "HOME": "/home/pi"}
    arguments = create_arguments(spec(user=job_user, env=env, network="pi-job-gh-1-net"))

    assert arguments["user"] == "4242:4343"
    assert arguments["network"] == "pi-job-gh-1-net"
    assert arguments["dns"] == ["127.0.0.1"]
    assert arguments["dns_opt"] == ["timeout:1", "attempts:1"]
    assert "uid=4242,gid=4343" in arguments["tmpfs"]["/home/pi"]


@pytest.mark.parametrize(
    "changes",
    [
        {"isolated": False},
        {"isolated": None},
        {"name": "job-1", "env": {"PI_JOB_ID": "job-1"}},
        {"name": "pi-job-a/b", "env": {"PI_JOB_ID": "pi-job-a/b"}},
        {"image": ""},
        {"image": " pi-job"},
        {"image": "-v"},
        {"env": {}},
        {"env": {"PI_JOB_ID": "another"}},
        {"env": {"PI_JOB_ID": "pi-job-gh-1", "EMPTY": ""}},
        {"env": {"PI_JOB_ID": "pi-job-gh-1", "A=B": "x"}},
        {"network": "bridge"},
        {"network": "host"},
        {"network": "pi-job-other-net"},
        {"user": {"uid": 4242, "gid": 4242, "explicit": True}},
        {"user": {"uid": 0, "gid": 4242, "explicit": True}},
        {"user": {"uid": 4242, "gid": 0, "explicit": True}},
        {"deployment": ""},
        {"privileged": True},
        {"mounts": ()},
    ],
)
def test_a_description_that_would_not_hold_cannot_be_made(changes: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        spec(**changes)


@pytest.mark.parametrize(
    ("source", "target"),
    [("/var/run/docker.sock", "/var/run/docker.sock"), ("relative", "/job"), ("/a/../etc", "/job"), ("/x", "/etc")],
)
def test_a_mount_outside_of_the_five_places_cannot_be_made(source: str, target: str) -> None:
    with pytest.raises(ValidationError):
        BoxMount(source=Path(source), target=target)


def test_mounts_out_of_order_or_twice_are_refused() -> None:
    job = BoxMount(source=Path("/j"), target="/job")
    workspace = BoxMount(source=Path("/w"), target="/workspace")
    for mounts in ((workspace, job), (job, workspace, workspace), (job,)):
        with pytest.raises(ValidationError):
            spec(mounts=mounts)


_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
_NAMES = st.text(string.ascii_letters + string.digits + "_=", max_size=8)
_SOURCES = st.sampled_from(["/srv/x", "/", "rel", "/a/../b", "/var/run/docker.sock", "/home/u/.ssh"])
_MOUNTS = st.lists(
    st.tuples(_SOURCES, st.sampled_from([*MOUNT_TARGETS, "/etc", "/var/run/docker.sock", "/app"])), max_size=6
)


@given(
    name=st.one_of(st.just("pi-job-1"), _TEXT.map(lambda text: "pi-job-" + text)),
    env=st.dictionaries(_NAMES, _TEXT, max_size=6),
    mounts=_MOUNTS,
    network=st.one_of(st.none(), st.just("pi-job-1-net"), st.sampled_from(["host", "bridge", "container:x"])),
    user=st.tuples(st.integers(-1, 70000), st.integers(-1, 70000), st.booleans()),
    limits=st.builds(Limits, memory_mib=st.integers(64, 2**20), cpu_centi=st.integers(1, 25600)),
)
def test_whatever_is_asked_for_the_box_holds(
    name: str,
    env: dict[str, str],
    mounts: list[tuple[str, str]],
    network: str | None,
    user: tuple[int, int, bool],
    limits: Limits,
) -> None:
    """Either there is no description at all, or its arguments hold every wall of the box."""
    try:
        described = spec(
            name=name,
            env={"PI_JOB_ID": name, "HOME": "/home/pi"} | env,
            mounts=[{"source": source, "target": target} for source, target in mounts],
            network=network,
            user={"uid": user[0], "gid": user[1], "explicit": user[2]},
            limits=limits,
        )
    except ValidationError:
        return
    arguments = create_arguments(described)

    assert arguments["cap_drop"] == ["ALL"]
    assert arguments["security_opt"] == ["no-new-privileges"]
    assert arguments["init"] is True
    assert arguments["read_only"] is True
    assert set(arguments["tmpfs"]) == {"/tmp", "/home/pi"}
    assert arguments["mem_limit"] == arguments["memswap_limit"]
    assert arguments["pids_limit"] == 512
    assert all(arguments["environment"].values())
    assert {mount["Target"] for mount in arguments["mounts"]} <= set(MOUNT_TARGETS)
    assert all(mount["ReadOnly"] for mount in arguments["mounts"] if mount["Target"] in ("/job", "/opt/pi-global"))
    assert not FORBIDDEN & set(arguments)
    assert arguments.get("network") in (None, f"{described.name}-net")
    assert "0" not in arguments.get("user", "1:1").split(":")
