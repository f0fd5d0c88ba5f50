"""The description of a job container: what it always says, and what it can never say."""

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


def test_the_labels_say_whose_the_container_is() -> None:
    name = "pi-job-repeat_tidy_1"
    labels = create_arguments(spec(name=name, job_id="repeat:tidy:1", attempt=2))["labels"]

    assert labels == {
        "pi.dispatch.job": "repeat:tidy:1",
        "pi.dispatch.attempt": "2",
        "pi.dispatch.deployment": "0" * 16,
    }
    assert create_arguments(spec())["labels"]["pi.dispatch.job"] == "gh-1"


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
        {"job_id": "gh-2"},
        {"attempt": 0},
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


_NAMES = st.from_regex(r"[A-Z_][A-Z0-9_]{0,11}", fullmatch=True)
_VALUES = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1, max_size=12)
_SOURCES = st.from_regex(r"(/[a-z .]{1,6}){1,3}", fullmatch=True).filter(lambda text: ".." not in text.split("/"))
_OPTIONAL = list(MOUNT_TARGETS)[2:]
#: What somebody could get wrong or try: each takes a good description and spoils it.
_SPOILS = st.sampled_from(
    [
        {},
        {"isolated": False},
        {"env": {"PI_JOB_ID": "pi-job-1", "HOME": "/home/pi", "EMPTY": ""}},
        {"env": {"PI_JOB_ID": "pi-job-1", "HOME": "/home/pi", "A B": "x"}},
        {"mounts": [{"source": "/j", "target": "/job"}, {"source": "/", "target": "/host"}]},
        {"mounts": [{"source": "/var/run/docker.sock", "target": "/var/run/docker.sock"}]},
        {"mounts": [{"source": "../x", "target": "/job"}, {"source": "/w", "target": "/workspace"}]},
        {"network": "host"},
        {"network": "container:other"},
        {"user": {"uid": 0, "gid": 0, "explicit": True}},
        {"name": "other"},
        {"image": "--privileged"},
        {"cap_add": ["ALL"]},
    ]
)


@given(
    env=st.dictionaries(_NAMES, _VALUES, max_size=6),
    sources=st.lists(_SOURCES, min_size=len(MOUNT_TARGETS), max_size=len(MOUNT_TARGETS)),
    optional=st.sets(st.sampled_from(_OPTIONAL)),
    network=st.booleans(),
    user=st.tuples(st.integers(1, 70000), st.integers(1, 70000), st.booleans()),
    limits=st.builds(Limits, memory_mib=st.integers(64, 2**20), cpu_centi=st.integers(1, 25600)),
    spoil=_SPOILS,
)
def test_whatever_is_asked_for_the_box_holds(
    env: dict[str, str],
    sources: list[str],
    optional: set[str],
    network: bool,
    user: tuple[int, int, bool],
    limits: Limits,
    spoil: dict[str, Any],
) -> None:
    """A spoilt description does not exist; every other one writes every wall of the box, and nothing else."""
    targets = ["/job", "/workspace", *(target for target in _OPTIONAL if target in optional)]
    good: dict[str, Any] = {
        "name": "pi-job-1",
        "env": env | {"PI_JOB_ID": "pi-job-1", "HOME": "/home/pi"},
        "mounts": [{"source": source, "target": target} for source, target in zip(sources, targets, strict=False)],
        "network": "pi-job-1-net" if network else None,
        "user": {"uid": user[0], "gid": user[1], "explicit": user[2]},
        "limits": limits,
    }
    if spoil:
        with pytest.raises(ValidationError):
            spec(**(good | spoil))
        return
    arguments = create_arguments(spec(**good))

    assert arguments["cap_drop"] == ["ALL"]
    assert arguments["security_opt"] == ["no-new-privileges"]
    assert arguments["init"] is True
    assert arguments["read_only"] is True
    assert set(arguments["tmpfs"]) == {"/tmp", "/home/pi"}
    assert arguments["mem_limit"] == arguments["memswap_limit"]
    assert arguments["pids_limit"] == 512
    assert arguments["environment"] == good["env"]
    assert all(arguments["environment"].values())
    written = [(mount["Source"], mount["Target"], mount["ReadOnly"]) for mount in arguments["mounts"]]
    assert written == [
        (str(Path(source)), target, MOUNT_TARGETS[target]) for source, target in zip(sources, targets, strict=False)
    ]
    assert not FORBIDDEN & set(arguments)
    assert arguments.get("network") == good["network"]
    assert arguments.get("user") == (f"{user[0]}:{user[1]}" if user[2] else None)
