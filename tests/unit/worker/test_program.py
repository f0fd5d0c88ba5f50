"""A worker as a program: its name, and the exit code it leaves with."""

import socket
from types import SimpleNamespace
from typing import Any

import pytest

from pidispatch.config.settings import Settings
from pidispatch.worker import program
from pidispatch.worker.program import node_name, run_worker


def test_its_node_is_named_after_it_and_its_host() -> None:
    assert node_name(Settings.model_validate({"PI_WORKER_NAME": "build-1"})) == f"build-1@{socket.gethostname()}"


@pytest.mark.parametrize(
    ("signalled", "exitcode", "code"), [(True, 1, 0), (False, None, 0), (False, 1, 1), (False, 2, 2)]
)
def test_told_to_stop_is_no_failure(
    monkeypatch: pytest.MonkeyPatch, signalled: bool, exitcode: int | None, code: int
) -> None:
    began: list[dict[str, Any]] = []

    def build(settings: Settings, limits: Any) -> tuple[Any, Any]:
        def make(**options: Any) -> Any:
            began.append(options)
            return SimpleNamespace(start=lambda: None, exitcode=exitcode)

        assert (settings.worker_name, limits) == ("build-1", None)
        return SimpleNamespace(Worker=make), SimpleNamespace(signalled=signalled)

    monkeypatch.setenv("PI_WORKER_NAME", "build-1")
    monkeypatch.setattr(program, "build_app", build)
    assert run_worker() == code
    # Workers tell each other nothing, which costs much and is asked by nobody.
    assert {name: began[0][name] for name in ("without_mingle", "without_gossip")} == {
        "without_mingle": True,
        "without_gossip": True,
    }
