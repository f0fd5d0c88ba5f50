"""The name of this machine, fit for a record and for a name elsewhere."""

import re
import socket

import pytest

from pidispatch.config.host import host_name


@pytest.mark.parametrize(
    ("written", "name"), [("Web-1.Local", "web-1.local"), ("büro pc", "b-ro-pc"), ("", "worker"), ("-.-", "worker")]
)
def test_reduced_to_plain_characters(monkeypatch: pytest.MonkeyPatch, written: str, name: str) -> None:
    monkeypatch.setattr(socket, "gethostname", lambda: written)
    assert host_name() == name


def test_this_machine_has_one() -> None:
    assert re.fullmatch(r"[a-z0-9._-]+", host_name())
