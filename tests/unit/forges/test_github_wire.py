"""What makes a request a delivery of GitHub's."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pidispatch.config.settings import load_settings
from pidispatch.forges.github.module import GITHUB
from pidispatch.forges.github.wire import INVALID_SIGNATURE, MISSING_HEADERS, MISSING_SIGNATURE, GitHubWire, signature
from pidispatch.forges.protocol import Unverified
from pidispatch.forges.registry import MODULES
from pidispatch.values.errors import ConfigError
from pidispatch.values.forge import FORGES, JobKind
from tests.fakes.github import payloads
from tests.support.settings import settings_of

NOW = datetime(2026, 1, 31, tzinfo=UTC)
GUID = "11111111-1111-1111-1111-111111111111"
WIRE = GITHUB.wire(settings_of({"WEBHOOK_SECRET": "test-secret"}))


def headers(**changes: str | None) -> dict[str, str]:
    given = {
        "x-hub-signature-256": payloads.LABELED_SIGNATURE,
        "x-github-event": "issues",
        "x-github-delivery": GUID,
        **{name.replace("_", "-"): value for name, value in changes.items()},
    }
    return {name: value for name, value in given.items() if value is not None}


def test_the_bytes_and_the_signature_of_the_example_are_the_examples() -> None:
    assert len(payloads.LABELED) == 198
    assert signature(payloads.LABELED, b"test-secret") == payloads.LABELED_SIGNATURE
    assert payloads.sign(payloads.LABELED) == payloads.LABELED_SIGNATURE
    assert payloads.encode(payloads.issues()) == payloads.LABELED


def test_a_signed_delivery_is_one() -> None:
    assert WIRE.missing(headers()) is None
    assert WIRE.authentic(headers(), payloads.LABELED, NOW) is None
    assert WIRE.delivery(headers()) == GUID


@pytest.mark.parametrize(
    ("changed", "missing"),
    [
        ({"x_hub_signature_256": None}, MISSING_SIGNATURE),
        ({"x_hub_signature_256": ""}, MISSING_SIGNATURE),
        ({"x_hub_signature_256": None, "x_github_event": None}, MISSING_SIGNATURE),
        ({"x_github_event": None}, MISSING_HEADERS),
        ({"x_github_delivery": None}, MISSING_HEADERS),
        ({"x_github_delivery": ""}, MISSING_HEADERS),
        # Unsigned, so whoever replays a delivery may write there what he likes.
        ({"x_github_delivery": "../../x"}, MISSING_HEADERS),
        ({"x_github_delivery": "a" * 101}, MISSING_HEADERS),
        ({"x_github_delivery": "a\n"}, MISSING_HEADERS),
        ({"x_github_event": "issues\x1b[2J"}, MISSING_HEADERS),
        ({"x_github_event": "é"}, MISSING_HEADERS),
    ],
)
def test_a_request_without_its_headers_is_none(changed: dict[str, str | None], missing: Unverified) -> None:
    assert WIRE.missing(headers(**changed)) == missing
    assert missing.status == (401 if missing is MISSING_SIGNATURE else 400)


@pytest.mark.parametrize("at", [0, 100, 197])
def test_one_other_byte_is_not_authentic(at: int) -> None:
    body = bytearray(payloads.LABELED)
    body[at] ^= 1
    assert WIRE.authentic(headers(), bytes(body), NOW) == INVALID_SIGNATURE


@pytest.mark.parametrize(
    "given",
    [
        None,
        "sha256=",
        payloads.LABELED_SIGNATURE.upper(),
        payloads.LABELED_SIGNATURE.removeprefix("sha256="),
        payloads.LABELED_SIGNATURE + " ",
        payloads.LABELED_SIGNATURE[:-1],
        payloads.sign(payloads.LABELED, "other-secret"),
        "sha256=é\udcff",
    ],
)
def test_another_signature_is_not_authentic(given: str | None) -> None:
    assert WIRE.authentic(headers(x_hub_signature_256=given), payloads.LABELED, NOW) == INVALID_SIGNATURE


@given(st.binary(), st.binary(min_size=1), st.text())
def test_only_the_secret_makes_a_signature(body: bytes, secret: bytes, forged: str) -> None:
    wire = GitHubWire(secret)
    assert wire.authentic({"x-hub-signature-256": signature(body, secret)}, body, NOW) is None
    assert wire.authentic({"x-hub-signature-256": forged}, body, NOW) == INVALID_SIGNATURE
    assert wire.authentic({"x-hub-signature-256": signature(body, secret + b"x")}, body, NOW) == INVALID_SIGNATURE


def test_a_secret_that_is_no_utf_8_counts_byte_by_byte() -> None:
    wire = GITHUB.wire(settings_of({"WEBHOOK_SECRET": "\udcff"}))
    assert wire.authentic({"x-hub-signature-256": signature(b"x", b"\xff")}, b"x", NOW) is None


def test_without_a_secret_nothing_can_be_verified() -> None:
    with pytest.raises(ConfigError, match="WEBHOOK_SECRET is not set"):
        GITHUB.wire(settings_of({}))


def test_github_is_served_where_a_credential_is_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"GITHUB_PAT": "x", "WEBHOOK_SECRET": "x", "GITHUB_APP_ID": "1"}.items():
        monkeypatch.setenv(name, value)
    assert not GITHUB.configured(load_settings())
    monkeypatch.setenv("GITHUB_AUTH_SOURCE", "gh")
    assert GITHUB.configured(load_settings())


def test_the_modules_are_of_the_table() -> None:
    assert list(MODULES) == [JobKind.GITHUB]
    assert all(module.row is FORGES[kind] for kind, module in MODULES.items())
    assert MODULES[JobKind.GITHUB].lookup_failed == "permission-lookup-failed"
