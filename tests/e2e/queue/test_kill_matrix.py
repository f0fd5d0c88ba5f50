"""The kill matrix: SIGKILL right before and right after every script of the store and every engine call of an attempt.

The points are those that there are (`SCRIPTS`, the engine room's public names). One without a cell fails the test.
"""

from collections.abc import Callable, Iterator

import pytest

from pidispatch.jobs.scripts import SCRIPTS
from tests.support.deaths import (
    a_boot,
    a_busy_folder,
    a_cancelling_program,
    a_leftover_that_ended,
    a_leftover_that_runs,
    a_leftover_unstarted,
    a_long_run,
    a_lost_machine,
    a_lost_ticket,
    a_revoked_ticket,
    a_run_that_comes_again,
    a_run_that_fails_twice,
    a_run_that_is_cancelled,
    a_schedule,
    a_start_of_a_long_run,
    a_stray,
    a_submitting_program,
    a_worker_that_stops,
    an_ordinary_run,
)
from tests.support.matrix import NOTHING, Cell, Scene, play_all, table
from tests.support.server import OwnServer
from tests.support.worker_app import engine_points

#: Names of the engine room that no attempt calls.
EXCLUDED = {"client": "hands the SDK's own client to the image builder and to `egress up`, in programs of their own"}
DONE, LOST, LOST_UNSTARTED = "completed 1", "failed worker-lost 1", "failed worker-lost 0"
FAILED, FAILED_TWICE, AGAIN = "failed infra 1", "failed infra 2", "completed 2"
CANCELLED, STOPPED, ABORTED = "policy operator-cancel 0", "policy operator-cancel 1", "policy worker-abort 1"

#: Of each point the scenarios in which it is reached, and how the job ends whose worker is killed before and after it.
Rows = dict[str, list[tuple[Callable[[Scene], None], str | None, str | None]]]
SCRIPT_CELLS: Rows = {
    "submit": [(a_submitting_program, NOTHING, DONE)],
    "open": [(a_boot, DONE, DONE), (a_submitting_program, NOTHING, NOTHING)],
    "acquire": [(an_ordinary_run, DONE, DONE)],
    "renew": [(a_long_run, LOST, LOST)],
    "defer": [(a_busy_folder, DONE, DONE)],
    "spend": [(an_ordinary_run, DONE, DONE)],
    "book": [(an_ordinary_run, DONE, DONE)],
    "finish": [(an_ordinary_run, DONE, DONE), (a_worker_that_stops, ABORTED, ABORTED)],
    "fail": [(a_run_that_comes_again, FAILED, AGAIN), (a_run_that_fails_twice, FAILED_TWICE, FAILED_TWICE)],
    "recorded": [(an_ordinary_run, DONE, DONE), (a_run_that_comes_again, AGAIN, AGAIN)],
    "cancel": [(a_cancelling_program, DONE, CANCELLED), (a_revoked_ticket, DONE, CANCELLED)],
    "acknowledge": [(a_run_that_is_cancelled, LOST, STOPPED)],
    "settle": [
        (a_leftover_that_ended, DONE, DONE),
        (a_leftover_that_runs, LOST, LOST),
        (a_leftover_unstarted, DONE, DONE),
        (a_stray, DONE, DONE),
    ],
    "dealt": [(a_schedule, DONE, DONE)],
    "sweep": [(a_lost_ticket, DONE, DONE), (a_lost_machine, LOST, LOST)],
}
ENGINE_CELLS: Rows = {
    "connect": [(a_boot, DONE, DONE)],
    "close": [(a_worker_that_stops, ABORTED, ABORTED)],
    "facts": [(an_ordinary_run, DONE, DONE)],
    "image": [(an_ordinary_run, DONE, DONE)],
    "neighbour": [(an_ordinary_run, DONE, DONE)],
    "create_network": [(an_ordinary_run, DONE, DONE)],
    "connect_neighbour": [(an_ordinary_run, DONE, DONE)],
    # It was about to be made, and no container can prove that none ran.
    "create": [(an_ordinary_run, LOST_UNSTARTED, DONE)],
    "output": [(an_ordinary_run, DONE, DONE)],
    "wait": [(an_ordinary_run, DONE, DONE)],
    "start": [(an_ordinary_run, DONE, DONE), (a_start_of_a_long_run, None, LOST)],
    "state": [(an_ordinary_run, DONE, DONE), (a_leftover_that_runs, LOST, LOST)],
    "stop": [
        (a_worker_that_stops, LOST, LOST),
        # Before it the answer to the request may not be given yet.
        (a_run_that_is_cancelled, None, STOPPED),
        (a_leftover_that_runs, LOST, LOST),
    ],
    "last_output": [(a_run_that_is_cancelled, STOPPED, STOPPED), (a_leftover_that_ended, DONE, DONE)],
    "remove": [(an_ordinary_run, DONE, DONE), (a_leftover_that_ended, DONE, DONE)],
    "remove_network": [(an_ordinary_run, DONE, DONE)],
    "remove_network_named": [(a_leftover_that_ended, DONE, DONE)],
    "find": [(a_leftover_that_ended, DONE, DONE)],
    "is_gone": [(a_leftover_that_ended, DONE, DONE)],
    "job_containers": [(a_boot, DONE, DONE)],
    "job_networks": [(a_boot, DONE, DONE)],
    "clear_network": [(a_stray, DONE, DONE)],
}


def cells_of(rows: Rows, room: str = "") -> Iterator[Cell]:
    """The cells of a table."""
    for point, reached in rows.items():
        for play, before, after in reached:
            for when, end in (("before", before), ("after", after)):
                if end is not None:
                    yield Cell(when, room + point, play, end)


def test_every_point_has_a_cell() -> None:
    assert set(SCRIPT_CELLS) == set(SCRIPTS)
    assert set(ENGINE_CELLS) | set(EXCLUDED) == set(engine_points())
    assert not set(ENGINE_CELLS) & set(EXCLUDED)


# Some fifty cells each: minutes where a machine does other things beside.
@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    "cells",
    [
        pytest.param([*cells_of(SCRIPT_CELLS)], id="scripts"),
        pytest.param([*cells_of(ENGINE_CELLS, "Engine.")], id="engine"),
    ],
)
def test_whatever_kills_a_worker_nothing_is_lost_and_nothing_is_paid_for_twice(
    cells: list[Cell], stub: str, neighbour: str, server: OwnServer, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = play_all(cells, stub, neighbour, server)
    with capsys.disabled():
        print(f"\n{table(lines)}")
    assert not [line.fault for line in lines if line.fault], "\n\n".join(line.fault or "" for line in lines)
