"""Which store is opened by whom."""

import re

import pytest

from pidispatch.jobs.setup import FORMAT
from pidispatch.values.errors import ConfigError
from tests.integration.jobs.world import PREFIX, World

MINE, OTHERS = "0011223344556677", "8899aabbccddeeff"


def test_an_empty_store_takes_the_id_of_the_folder(world: World) -> None:
    assert world.store.open(MINE) == MINE
    assert world.client.get(f"{PREFIX}deployment") == MINE
    assert world.client.get(f"{PREFIX}schema") == str(FORMAT)
    assert world.store.open(MINE) == MINE


def test_an_empty_store_and_a_folder_without_an_id_get_a_fresh_one(world: World) -> None:
    fresh = world.store.open(None)
    assert re.fullmatch(r"[0-9a-f]{16}", fresh)
    # Another folder without an id adopts it.
    assert world.store.open(None) == fresh


def test_a_folder_of_another_deployment_is_refused(world: World) -> None:
    world.store.open(MINE)
    with pytest.raises(ConfigError, match="move the file `deployment`") as caught:
        world.store.open(OTHERS)
    assert (caught.value.cause, caught.value.exit_code) == ("deployment-differs", 2)
    assert world.client.get(f"{PREFIX}deployment") == MINE


@pytest.mark.parametrize("found", [str(FORMAT + 1), "a word"])
def test_a_store_of_a_later_format_is_refused_and_left_alone(world: World, found: str) -> None:
    world.client.set(f"{PREFIX}schema", found)
    with pytest.raises(ConfigError) as caught:
        world.store.open(None)
    assert (caught.value.cause, caught.value.exit_code) == ("schema-newer", 2)
    assert world.client.get(f"{PREFIX}deployment") is None
    # Nor does who only changes what is there.
    with pytest.raises(ConfigError) as caught:
        world.store.check_format()
    assert caught.value.cause == "schema-newer"


@pytest.mark.parametrize("found", [None, str(FORMAT)])
def test_a_store_of_this_format_or_of_none_is_not_refused(world: World, found: str | None) -> None:
    if found is not None:
        world.client.set(f"{PREFIX}schema", found)
    world.store.check_format()
    assert world.client.get(f"{PREFIX}schema") == found


def test_a_server_that_lost_its_data_takes_the_id_again(world: World) -> None:
    world.store.open(MINE)
    world.client.flushdb()
    assert world.store.open(MINE) == MINE
