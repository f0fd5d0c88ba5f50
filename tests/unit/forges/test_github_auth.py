"""Which credential the settings name, and what is told where it cannot be one."""

import base64
import dataclasses
from datetime import UTC, datetime
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from pidispatch.config.settings import Settings, load_settings
from pidispatch.forges.github.auth import App, GhLogin, PersonalToken, credential
from pidispatch.values.errors import ConfigError
from pidispatch.workspace import process
from tests.fakes.github.server import private_key
from tests.support.clock import FakeClock
from tests.support.settings import settings_of

CLOCK = FakeClock(datetime(2026, 1, 31, tzinfo=UTC))
APP = {"GITHUB_AUTH_SOURCE": "app", "GITHUB_APP_ID": "77", "GITHUB_APP_INSTALLATION_ID": "88"}
KEY = "GITHUB_APP_PRIVATE_KEY"


def found(environment: dict[str, str]) -> PersonalToken | GhLogin | App:
    return credential(settings_of(environment), environment, process, CLOCK)


def refusal(environment: dict[str, str]) -> str:
    with pytest.raises(ConfigError) as caught:
        found(environment)
    assert (caught.value.cause, caught.value.__cause__) == ("setting", None)
    return caught.value.message


def test_gh_is_the_default_and_gets_what_it_needs() -> None:
    login = found({"HOME": "/h", "GH_TOKEN": "t", "GITHUB_PAT": "p", "ANTHROPIC_API_KEY": "k"})
    assert isinstance(login, GhLogin)
    assert login.host == "github.com"
    assert login.environment == {"HOME": "/h", "GH_TOKEN": "t"}
    assert login.shown == "gh's login for github.com"


def test_a_token_is_taken_from_its_variable() -> None:
    token = found({"GITHUB_AUTH_SOURCE": "pat", "GITHUB_PAT": " ghp_x\n"})
    assert token == PersonalToken("GITHUB_PAT", "ghp_x")
    assert "ghp_x" not in repr(token)


@pytest.mark.parametrize("value", [None, "", "  \n"])
def test_a_token_must_not_be_blank(value: str | None) -> None:
    environment = {"GITHUB_AUTH_SOURCE": "pat", "GITHUB_PAT_VAR": "MINE", "GITHUB_PAT": "not this one"}
    assert "MINE is not set or blank" in refusal(environment if value is None else environment | {"MINE": value})


@pytest.mark.parametrize("value", ["two words", "line\nline", "é", "x" * 1001])
def test_a_token_is_one_word_and_never_repeated(value: str) -> None:
    message = refusal({"GITHUB_AUTH_SOURCE": "pat", "GITHUB_PAT": value})
    assert message.startswith("GITHUB_PAT holds no token")
    assert value not in message


@pytest.mark.parametrize("written", [private_key(), private_key().replace("\n", "\\n"), private_key().strip() + "\r\n"])
def test_an_apps_key_stands_in_a_variable(written: str) -> None:
    app = found({**APP, KEY: written})
    assert isinstance(app, App)
    assert (app.app_id, app.installation_id) == (77, 88)
    assert app.shown == "the App of GITHUB_APP_ID=77"
    assert "PRIVATE" not in repr(app)
    assert dataclasses.is_dataclass(app)


def test_a_key_that_is_not_given_is_none() -> None:
    assert Settings.model_validate({KEY: None}).github_app_private_key is None


def test_an_apps_key_stands_in_a_file(tmp_path: Path) -> None:
    file = tmp_path / "app.pem"
    file.write_text(private_key())
    assert isinstance(found({**APP, f"{KEY}_PATH": str(file)}), App)


@pytest.mark.parametrize(
    ("missing", "words"),
    [
        ({"GITHUB_APP_ID"}, "GITHUB_APP_ID is not set"),
        ({"GITHUB_APP_INSTALLATION_ID"}, "GITHUB_APP_INSTALLATION_ID is not set"),
        ({"GITHUB_APP_ID", "GITHUB_APP_INSTALLATION_ID"}, "GITHUB_APP_ID and GITHUB_APP_INSTALLATION_ID are not set"),
        ({KEY}, "and neither is set"),
    ],
)
def test_an_app_needs_all_of_it(missing: set[str], words: str) -> None:
    whole = {**APP, KEY: private_key()}
    assert words in refusal({name: value for name, value in whole.items() if name not in missing})


def test_an_app_has_one_key() -> None:
    assert "and both is set" in refusal({**APP, KEY: private_key(), f"{KEY}_PATH": "/nonexistent/app.pem"})


def test_a_file_that_is_missing_is_told_without_its_name() -> None:
    message = refusal({**APP, f"{KEY}_PATH": "/nonexistent/app.pem"})
    assert "GITHUB_APP_PRIVATE_KEY_PATH names a file that cannot be read: No such file or directory" in message


@pytest.mark.parametrize("content", [b"", b"secret words", b"\xff", b"-----BEGIN CERTIFICATE-----\nAAAA\n"])
def test_a_file_that_is_no_key_is_told(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "app.pem"
    file.write_bytes(content)
    message = refusal({**APP, f"{KEY}_PATH": str(file)})
    assert "a file that is no private key in PEM" in message
    assert "words" not in message


def _not_rsa() -> str:
    encoding, form = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    return ec.generate_private_key(ec.SECP256R1()).private_bytes(encoding, form, serialization.NoEncryption()).decode()


def _of_no_kind() -> str:
    key = ec.generate_private_key(ec.SECP256R1())
    form = serialization.PrivateFormat.PKCS8
    der = key.private_bytes(serialization.Encoding.DER, form, serialization.NoEncryption())
    # The number of a kind of key that nobody has given out.
    changed = der.replace(bytes.fromhex("2a8648ce3d0201"), bytes.fromhex("2a8648ce3d0263"))
    return f"-----BEGIN PRIVATE KEY-----\n{base64.encodebytes(changed).decode()}-----END PRIVATE KEY-----"


@pytest.mark.parametrize(
    "key",
    ["-----BEGIN RSA PRIVATE KEY-----\nc2VjcmV0\n-----END RSA PRIVATE KEY-----", _not_rsa(), _of_no_kind()],
    ids=["broken", "another kind", "of no kind"],
)
def test_a_key_that_cannot_sign_is_told_at_the_start(key: str) -> None:
    message = refusal({**APP, KEY: key})
    assert "needs an RSA private key" in message
    assert "c2VjcmV0" not in message


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        (KEY, "not a key hunter2"),
        (KEY, "-----BEGIN RSA PRIVATE KEY-----\nhunter2"),
        ("WEBHOOK_SECRET", " \t"),
        ("GITHUB_PAT_VAR", "ghp-hunter2"),
        ("GITHUB_API_URL", "https://me:hunter2@api.example.org"),
        ("GITHUB_URL", "https://me:hunter2@example.org"),
    ],
)
def test_a_secret_is_never_repeated(monkeypatch: pytest.MonkeyPatch, variable: str, value: str) -> None:
    monkeypatch.setenv(variable, value)
    with pytest.raises(ConfigError) as caught:
        load_settings()
    assert caught.value.message.startswith(f"{variable} must ")
    assert value not in caught.value.message
    assert "hunter2" not in caught.value.message


def test_the_settings_do_not_show_what_is_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEBHOOK_SECRET", "hunter2")
    monkeypatch.setenv(KEY, private_key())
    shown = f"{load_settings()!r}{load_settings().model_dump_json()}"
    assert "hunter2" not in shown
    assert "BEGIN" not in shown


@pytest.mark.parametrize(
    ("url", "kept"),
    [
        ("https://ghe.example.org/api/v3/", "https://ghe.example.org/api/v3"),
        ("http://127.0.0.1:8080", "http://127.0.0.1:8080"),
        ("http://localhost:8080/", "http://localhost:8080"),
        ("http://[::1]:8080", "http://[::1]:8080"),
    ],
)
def test_an_address_is_kept_without_its_last_slash(monkeypatch: pytest.MonkeyPatch, url: str, kept: str) -> None:
    monkeypatch.setenv("GITHUB_API_URL", url)
    monkeypatch.setenv("GITHUB_URL", url)
    assert (load_settings().github_api_url, load_settings().github_url) == (kept, kept)


@pytest.mark.parametrize(
    "url",
    [
        "api.github.com",
        "http://api.github.com",
        "http://10.0.0.1",
        "ftp://api.github.com",
        "https://",
        "https://h:0",
        "https://h:x",
        "https://[::1",
        "https://h?x",
        "https://h#x",
        "https://h/a b",
        "https://hé",
        "https://h\x7f",
    ],
)
def test_an_address_that_no_token_may_go_to_is_refused(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    monkeypatch.setenv("GITHUB_API_URL", url)
    with pytest.raises(ConfigError, match="GITHUB_API_URL must be"):
        load_settings()


@pytest.mark.parametrize("value", ["", "GH", "token", " pat"])
def test_a_credential_that_is_none_of_the_three_is_refused(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv("GITHUB_AUTH_SOURCE", value)
    with pytest.raises(ConfigError, match=r"GITHUB_AUTH_SOURCE='.*' must be gh, pat or app"):
        load_settings()


def test_the_variable_of_the_token_is_never_forwarded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_PAT_VAR", "MINE")
    monkeypatch.setenv("PI_FORWARD_ENV", "OTHER,MINE")
    with pytest.raises(ConfigError, match="PI_FORWARD_ENV names MINE"):
        load_settings()
