"""Every cause that the code can give is declared, with what it means and what mends it."""

from pathlib import Path

from pidispatch.values.cause import CAUSES, remedy_of
from tools.docs_source import causes_in

PACKAGE = Path(__file__).resolve().parents[3] / "pidispatch"


def test_every_cause_in_the_code_is_declared_and_no_other() -> None:
    assert {cause.token for cause in causes_in(PACKAGE)} == set(CAUSES)


def test_each_says_what_it_means_and_what_to_do() -> None:
    for token, explained in CAUSES.items():
        assert explained.meaning.endswith("."), token
        assert explained.remedy, token
        assert remedy_of(token) == explained.remedy


def test_what_is_not_declared_has_no_remedy_of_its_own() -> None:
    assert remedy_of(None) is None
    assert remedy_of("exit-137") is None
