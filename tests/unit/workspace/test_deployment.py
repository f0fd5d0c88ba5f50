"""The id of a deployment, read without making one, and taken over from a server that has one."""

import os
from pathlib import Path

import pytest

from pidispatch.values.errors import ConfigError, InfraError
from pidispatch.workspace.jobdir import adopt_deployment_id, deployment_id, read_deployment_id

ID, OTHER = "0123456789abcdef", "fedcba9876543210"


@pytest.fixture
def state(tmp_path: Path) -> Path:
    return tmp_path / "state"


def test_reading_makes_nothing(state: Path) -> None:
    assert read_deployment_id(state) is None
    assert not state.exists()
    made = deployment_id(state)
    assert read_deployment_id(state) == made


def test_a_state_folder_without_an_id_takes_it_over(state: Path) -> None:
    for _ in range(2):
        adopt_deployment_id(state, ID)
    assert read_deployment_id(state) == deployment_id(state) == ID
    assert os.listdir(state) == ["deployment"]


def test_a_state_folder_of_another_deployment_is_refused_and_stays(state: Path) -> None:
    adopt_deployment_id(state, ID)
    with pytest.raises(ConfigError) as caught:
        adopt_deployment_id(state, OTHER)
    assert caught.value.cause == "deployment-differs"
    assert caught.value.exit_code == 2
    assert all(word in caught.value.message for word in (ID, OTHER, "PI_STATE_DIR=", "VALKEY_URL", "PI_KEY_PREFIX"))
    assert read_deployment_id(state) == ID


@pytest.mark.parametrize("given", ["", "A" * 16, "0" * 15, ID + "\n"])
def test_what_is_no_id_is_not_taken_over(state: Path, given: str) -> None:
    with pytest.raises(ConfigError) as caught:
        adopt_deployment_id(state, given)
    assert caught.value.cause == "deployment-id"
    assert not state.exists()


def test_an_id_that_is_none_is_refused_by_the_one_who_reads(state: Path) -> None:
    state.mkdir()
    (state / "deployment").write_text("short")
    for ask in (read_deployment_id, lambda folder: adopt_deployment_id(folder, ID)):
        with pytest.raises(ConfigError) as caught:
            ask(state)
        assert caught.value.cause == "deployment-id"


def test_one_that_cannot_be_read_is_a_fault(state: Path) -> None:
    state.mkdir()
    (state / "deployment").symlink_to("absent")
    with pytest.raises(InfraError) as caught:
        read_deployment_id(state)
    assert caught.value.cause == "deployment-id"
