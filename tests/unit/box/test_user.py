"""The user of a job, decided from facts."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pidispatch.box.environment import job_environment
from pidispatch.box.spec import IMAGE_USER, JobUser
from pidispatch.box.user import HostFacts, decide_user, refuse_mapping
from pidispatch.values.outcome import Refused
from pidispatch.values.reason import Reason


def facts(**changes: Any) -> HostFacts:
    given_: dict[str, Any] = {
        "linux": True,
        "wsl": False,
        "engine_is_here": True,
        "readable": True,
        "security_options": ("name=seccomp,profile=default",),
        "desktop": False,
        "socket_uid": 0,
        "socket_gid": 999,
        "euid": 1000,
        "egid": 1000,
        "folder_uid": 1000,
        "folder_gid": 1000,
    }
    return HostFacts.model_validate(given_ | changes)


def home_of(user: JobUser) -> str | None:
    env = job_environment(
        container="pi-job-1",
        provider="anthropic",
        model="m",
        max_turns=1,
        max_tokens=None,
        user=user,
        neighbour=None,
        forward=(),
        environ={},
    )
    return env.get("HOME")


def refused(found: object) -> tuple[Reason, str | None]:
    assert isinstance(found, Refused)
    return found.reason, found.cause


@pytest.mark.example("ch3 E22", "who a job runs as: the worker itself, or for a root worker the folder's owner")
def test_the_users_of_the_rule() -> None:
    assert refused(decide_user(facts(), any_uid=False)) == (Reason.JOB_IMAGE_ANY_UID_UNSUPPORTED, None)
    assert decide_user(facts(), any_uid=True) == JobUser(uid=1000, gid=1000, explicit=True)
    assert decide_user(facts(euid=1001), any_uid=False) == IMAGE_USER
    homes = [home_of(user) for user in (IMAGE_USER, JobUser(uid=1000, gid=1000, explicit=True))]
    assert homes == [None, "/home/pi"]
    root = {"euid": 0, "egid": 0}
    assert decide_user(facts(**root, folder_uid=1500, folder_gid=1600), any_uid=True) == JobUser(
        uid=1500, gid=1600, explicit=True
    )
    assert decide_user(facts(**root, folder_uid=1001, folder_gid=1001), any_uid=False) == IMAGE_USER
    assert refused(decide_user(facts(**root, folder_uid=0, folder_gid=0), any_uid=True)) == (
        Reason.JOB_USER_UNMAPPABLE,
        "folder-owned-by-root",
    )


@pytest.mark.parametrize(
    ("changes", "cause"),
    [
        ({"security_options": ("name=rootless",)}, "rootless"),
        ({"socket_uid": 1000}, "rootless"),
        ({"security_options": ("name=userns",)}, "userns-remap"),
        ({"desktop": True}, "desktop-linux-userns"),
        ({"readable": False}, "runtime-unreadable"),
        ({"egid": 0}, "root-group"),
        ({"egid": 999}, "docker-group"),
        ({"euid": 0, "folder_gid": 0}, "root-group"),
    ],
)
def test_what_cannot_be_mapped_says_why_and_what_to_do(changes: dict[str, Any], cause: str) -> None:
    found = decide_user(facts(**changes), any_uid=True)

    assert refused(found) == (Reason.JOB_USER_UNMAPPABLE, cause)
    assert isinstance(found, Refused)
    assert found.detail
    assert found.remedy


@pytest.mark.parametrize(
    ("changes", "cause"),
    [
        ({"security_options": ("name=userns",)}, "userns-remap"),
        ({"euid": 0, "folder_uid": 0}, "folder-owned-by-root"),
    ],
)
def test_what_no_image_can_mend_is_told_before_the_image(changes: dict[str, Any], cause: str) -> None:
    assert refused(refuse_mapping(facts(**changes))) == (Reason.JOB_USER_UNMAPPABLE, cause)
    assert refuse_mapping(facts(**changes, engine_is_here=False)) is None


def test_what_an_image_may_mend_waits_for_it() -> None:
    assert refuse_mapping(facts()) is None
    assert refuse_mapping(facts(egid=0)) is None


def test_an_engine_elsewhere_uses_the_images_user() -> None:
    assert decide_user(facts(engine_is_here=False, desktop=True), any_uid=False) == IMAGE_USER
    assert decide_user(facts(linux=False), any_uid=False) == IMAGE_USER
    assert decide_user(facts(desktop=True, wsl=True), any_uid=True) == JobUser(uid=1000, gid=1000, explicit=True)


_IDS = st.integers(0, 5)


@given(euid=_IDS, egid=_IDS, folder_uid=_IDS, folder_gid=_IDS, socket_uid=_IDS, socket_gid=_IDS, any_uid=st.booleans())
def test_no_job_is_ever_root_or_in_the_engines_group(any_uid: bool, **ids: int) -> None:
    found = decide_user(facts(**ids), any_uid=any_uid)

    if isinstance(found, JobUser) and found.explicit:
        assert found.uid > 0
        assert found.gid not in (0, ids["socket_gid"])
