"""Every variable: its default, its one reading, and the refusal that names it."""

import os
import re
import tempfile
from collections.abc import Mapping
from pathlib import Path

import pytest
from pydantic import SecretStr

from pidispatch.config.host import host_name
from pidispatch.config.settings import EMPTY_IS_A_VALUE, Settings, load_settings, refuse_unserved_bounds
from pidispatch.values import names
from pidispatch.values.errors import ConfigError

FIELDS = {str(field.alias): name for name, field in Settings.model_fields.items()}
_PEM = "-----BEGIN RSA PRIVATE KEY-----\nAAAA\n-----END RSA PRIVATE KEY-----"
PROXY_NAMES = ["HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY", "https_proxy", "http_proxy", "no_proxy", "NODE_USE_ENV_PROXY"]


def load(monkeypatch: pytest.MonkeyPatch, variables: Mapping[str, str]) -> Settings:
    with monkeypatch.context() as patch:
        for name, value in variables.items():
            patch.setenv(name, value)
        return load_settings()


def refusal(monkeypatch: pytest.MonkeyPatch, variables: Mapping[str, str]) -> str:
    with pytest.raises(ConfigError) as caught:
        load(monkeypatch, variables)
    assert caught.value.exit_code == 2
    assert caught.value.cause == "setting"
    return caught.value.message


def defaults(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> dict[str, object]:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", "/somewhere")
    return {
        "PI_PROVIDER": "anthropic",
        "PI_MODEL": "claude-sonnet-4-5-20250929",
        "PI_MAX_TURNS": 30,
        "PI_MAX_TOKENS": None,
        "PI_DAILY_CAP": 25,
        "PI_WEEKLY_CAP": None,
        "PI_MONTHLY_CAP": None,
        "PI_SOFT_HOLD_PCT": None,
        "PI_DAILY_TOKEN_CAP": None,
        "PI_JOB_IMAGE": "pi-job:latest",
        "PI_JOBS_DIR": tmp_path / ".pi-dispatch" / "jobs",
        "PI_STATE_DIR": tmp_path / ".pi-dispatch",
        "PI_LOGS_DIR": tmp_path / ".pi-dispatch" / "logs",
        "PI_LOG_RETENTION_DAYS": 30,
        "PI_SWEEP_INTERVAL_HOURS": 24,
        "PI_CAPTURE_JOB_LOGS": False,
        "PI_JOB_LOG_MAX_BYTES": 64 * 2**20,
        "PI_AUTH_FROM_PI": True,
        "PI_CODING_AGENT_DIR": tmp_path / ".pi" / "agent",
        "PI_EGRESS_DIR": tmp_path / ".pi-dispatch" / "egress",
        "PI_GLOBAL_PI_DIR": None,
        "PI_EGRESS": True,
        "PI_EGRESS_PROXY": "pi-dispatch-egress-proxy",
        "PI_FORWARD_ENV": (),
        "VALKEY_URL": None,
        "VALKEY_PASSWORD": None,
        "PI_KEY_PREFIX": "pi:",
        "PI_CONCURRENCY": 3,
        "PI_BREAKER_RUNS": 5,
        "PI_WORKER_NAME": host_name(),
        "PI_CELERY_CONFIG": None,
        "PI_PAUSE_WINDOWS_FILE": None,
        "PI_TRIGGERS_FILE": None,
        "PI_TZ": None,
        "PI_SCHEDULER_STALL_MAX": 2,
        "RECEIVER_PORT": 3000,
        "RECEIVER_BIND": "0.0.0.0",
        "RECEIVER_IDENTITY_RETRY_SECONDS": 600,
        "RECEIVER_HEALTH_BIND": None,
        "WEBHOOK_SECRET": None,
        "GITHUB_AUTH_SOURCE": "gh",
        "GITHUB_PAT_VAR": "GITHUB_PAT",
        "GITHUB_APP_ID": None,
        "GITHUB_APP_INSTALLATION_ID": None,
        "GITHUB_APP_PRIVATE_KEY_PATH": None,
        "GITHUB_APP_PRIVATE_KEY": None,
        "GITHUB_API_URL": "https://api.github.com",
        "GITHUB_URL": "https://github.com",
        "POLL_REPOS": None,
        "POLL_INTERVAL_SECONDS": 60,
    }


def test_every_variable_has_its_default(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    expected = defaults(monkeypatch, tmp_path)
    found = load(monkeypatch, {})
    assert {variable: getattr(found, name) for variable, name in FIELDS.items()} == expected


def test_an_empty_variable_is_unset(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    defaults(monkeypatch, tmp_path)
    empty = {variable: "" for variable in FIELDS if variable not in EMPTY_IS_A_VALUE}
    assert load(monkeypatch, empty) == load(monkeypatch, {})


@pytest.mark.parametrize("variable", EMPTY_IS_A_VALUE)
def test_an_empty_value_that_counts_is_refused(monkeypatch: pytest.MonkeyPatch, variable: str) -> None:
    assert re.search(
        "must (be an absolute path|name a file|be gh, pat|be one repository)", refusal(monkeypatch, {variable: ""})
    )


def test_a_file_is_found_from_the_folder_of_the_start(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    found = load(monkeypatch, {"PI_PAUSE_WINDOWS_FILE": "etc/pause-windows.json"})
    assert found.pause_windows_file == tmp_path / "etc" / "pause-windows.json"


def test_every_variable_is_read(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    file = tmp_path / "celeryconfig.py"
    file.touch()
    written = {
        "PI_PROVIDER": "openai",
        "PI_MODEL": "gpt-5",
        "PI_MAX_TURNS": " 7 ",
        "PI_MAX_TOKENS": "200000",
        "PI_DAILY_CAP": "1",
        "PI_WEEKLY_CAP": "2",
        "PI_MONTHLY_CAP": "3",
        "PI_SOFT_HOLD_PCT": "99",
        "PI_DAILY_TOKEN_CAP": "4",
        "PI_JOB_IMAGE": "other:1",
        "PI_JOBS_DIR": "/j",
        "PI_STATE_DIR": "/s",
        "PI_LOGS_DIR": "/l",
        "PI_LOG_RETENTION_DAYS": "0",
        "PI_SWEEP_INTERVAL_HOURS": "0",
        "PI_CAPTURE_JOB_LOGS": "1",
        "PI_JOB_LOG_MAX_BYTES": "5",
        "PI_AUTH_FROM_PI": "0",
        "PI_CODING_AGENT_DIR": "/a",
        "PI_EGRESS_DIR": "/e",
        "PI_GLOBAL_PI_DIR": str(tmp_path),
        "PI_EGRESS": "0",
        "PI_EGRESS_PROXY": "proxy_1.x-y",
        "PI_FORWARD_ENV": " NPM_CONFIG_REGISTRY, ,PIP_INDEX_URL,",
        "VALKEY_URL": "rediss://h:1/2",
        "VALKEY_PASSWORD": "0123456789abcdef_-",
        "PI_KEY_PREFIX": "mine:",
        "PI_CONCURRENCY": "5",
        "PI_BREAKER_RUNS": "0",
        "PI_WORKER_NAME": "build-1",
        "PI_CELERY_CONFIG": str(file),
        "PI_PAUSE_WINDOWS_FILE": "/w.json",
        "PI_TRIGGERS_FILE": "/t.json",
        "PI_TZ": "Europe/Berlin",
        "PI_SCHEDULER_STALL_MAX": "5",
        "RECEIVER_PORT": "3002",
        "RECEIVER_BIND": "::1",
        "RECEIVER_IDENTITY_RETRY_SECONDS": "61",
        "RECEIVER_HEALTH_BIND": "127.0.0.1:3001",
        "WEBHOOK_SECRET": " s ",
        "GITHUB_AUTH_SOURCE": "app",
        "GITHUB_PAT_VAR": "MINE",
        "GITHUB_APP_ID": "77",
        "GITHUB_APP_INSTALLATION_ID": "88",
        "GITHUB_APP_PRIVATE_KEY_PATH": "/k.pem",
        "GITHUB_APP_PRIVATE_KEY": _PEM.replace("\n", "\\n"),
        "GITHUB_API_URL": "https://ghe.example.org/api/v3/",
        "GITHUB_URL": "https://ghe.example.org",
        "POLL_REPOS": "acme/web, acme/shop",
        "POLL_INTERVAL_SECONDS": "31",
    }
    found = load(monkeypatch, written)
    assert {variable: getattr(found, name) for variable, name in FIELDS.items()} == {
        "PI_PROVIDER": "openai",
        "PI_MODEL": "gpt-5",
        "PI_MAX_TURNS": 7,
        "PI_MAX_TOKENS": 200000,
        "PI_DAILY_CAP": 1,
        "PI_WEEKLY_CAP": 2,
        "PI_MONTHLY_CAP": 3,
        "PI_SOFT_HOLD_PCT": 99,
        "PI_DAILY_TOKEN_CAP": 4,
        "PI_JOB_IMAGE": "other:1",
        "PI_JOBS_DIR": Path("/j"),
        "PI_STATE_DIR": Path("/s"),
        "PI_LOGS_DIR": Path("/l"),
        "PI_LOG_RETENTION_DAYS": 0,
        "PI_SWEEP_INTERVAL_HOURS": 0,
        "PI_CAPTURE_JOB_LOGS": True,
        "PI_JOB_LOG_MAX_BYTES": 5,
        "PI_AUTH_FROM_PI": False,
        "PI_CODING_AGENT_DIR": Path("/a"),
        "PI_EGRESS_DIR": Path("/e"),
        "PI_GLOBAL_PI_DIR": tmp_path,
        "PI_EGRESS": False,
        "PI_EGRESS_PROXY": "proxy_1.x-y",
        "PI_FORWARD_ENV": ("NPM_CONFIG_REGISTRY", "PIP_INDEX_URL"),
        "VALKEY_URL": "rediss://h:1/2",
        "VALKEY_PASSWORD": "0123456789abcdef_-",
        "PI_KEY_PREFIX": "mine:",
        "PI_CONCURRENCY": 5,
        "PI_BREAKER_RUNS": 0,
        "PI_WORKER_NAME": "build-1",
        "PI_CELERY_CONFIG": file,
        "PI_PAUSE_WINDOWS_FILE": Path("/w.json"),
        "PI_TRIGGERS_FILE": Path("/t.json"),
        "PI_TZ": "Europe/Berlin",
        "PI_SCHEDULER_STALL_MAX": 5,
        "RECEIVER_PORT": 3002,
        "RECEIVER_BIND": "::1",
        "RECEIVER_IDENTITY_RETRY_SECONDS": 61,
        "RECEIVER_HEALTH_BIND": "127.0.0.1:3001",
        "WEBHOOK_SECRET": SecretStr(" s "),
        "GITHUB_AUTH_SOURCE": "app",
        "GITHUB_PAT_VAR": "MINE",
        "GITHUB_APP_ID": 77,
        "GITHUB_APP_INSTALLATION_ID": 88,
        "GITHUB_APP_PRIVATE_KEY_PATH": Path("/k.pem"),
        "GITHUB_APP_PRIVATE_KEY": SecretStr(_PEM),
        "GITHUB_API_URL": "https://ghe.example.org/api/v3",
        "GITHUB_URL": "https://ghe.example.org",
        "POLL_REPOS": ("acme/web", "acme/shop"),
        "POLL_INTERVAL_SECONDS": 31,
    }


MALFORMED = [
    ("PI_PROVIDER", "-x", "must not begin with a dash"),
    ("PI_PROVIDER", " anthropic", "without blanks around it"),
    ("PI_MODEL", "a\tb", "without control characters"),
    ("PI_JOB_IMAGE", "--privileged", "is no image reference"),
    ("PI_JOB_IMAGE", "image ", "is no image reference"),
    ("PI_JOB_IMAGE", "../../containers", "is no image reference"),
    ("PI_PAUSE_WINDOWS_FILE", "", "must name a file; unset it to have none"),
    ("PI_SCHEDULER_STALL_MAX", "0", "must be 1 or more"),
    ("PI_TZ", "Mars/Olympus", "is no IANA time zone that this machine knows"),
    ("PI_TZ", "../../etc/passwd", "is no IANA time zone that this machine knows"),
    ("PI_EGRESS_PROXY", ".", "must be a container name"),
    *[("PI_MAX_TURNS", text, "must be a whole number") for text in ("03", "+3", "3.0", "1e2", "1_000", "-1", "x", " ")],
    ("PI_MAX_TURNS", "0", "must be 1 or more"),
    ("PI_DAILY_CAP", "0", "must be 1 or more"),
    ("PI_DAILY_CAP", "unlimited", "must be a whole number"),
    ("PI_WEEKLY_CAP", "0", "must be 1 or more"),
    ("PI_MONTHLY_CAP", "3.0", "must be a whole number"),
    ("PI_SOFT_HOLD_PCT", "100", "must be from 1 to 99"),
    ("PI_SOFT_HOLD_PCT", "0", "must be from 1 to 99"),
    ("PI_DAILY_TOKEN_CAP", "1e6", "must be a whole number"),
    ("PI_MAX_TOKENS", "0", "must be 1 or more"),
    ("PI_MAX_TOKENS", "off", "must be a whole number"),
    ("PI_MAX_TOKENS", "9" * 16, "at most 15 digits"),
    ("PI_JOBS_DIR", "jobs", "must be an absolute path"),
    ("PI_STATE_DIR", "~/state", "must be an absolute path"),
    ("PI_LOGS_DIR", "logs", "must be an absolute path"),
    ("PI_LOG_RETENTION_DAYS", "-1", "must be a whole number"),
    ("PI_JOB_LOG_MAX_BYTES", "0", "must be 1 or more"),
    ("PI_CODING_AGENT_DIR", "agent", "must be an absolute path"),
    ("PI_EGRESS_DIR", "./egress", "must be an absolute path"),
    ("PI_GLOBAL_PI_DIR", "overlay", "must be an absolute path"),
    ("PI_GLOBAL_PI_DIR", "/nonexistent/overlay", "must be an existing folder"),
    *[("PI_EGRESS", text, "must be 0 or 1") for text in ("yes", "no", "true", "on", "off", " 1", "01", "2")],
    ("PI_EGRESS_PROXY", "a b", "must be a container name"),
    ("PI_EGRESS_PROXY", "host:3128", "must be a container name"),
    ("PI_EGRESS_PROXY", "café", "must be a container name"),
    ("PI_FORWARD_ENV", "A,B C", "is not the name of a variable"),
    ("PI_FORWARD_ENV", "A=1", "is not the name of a variable"),
    ("PI_KEY_PREFIX", "pi", "end with ':'"),
    ("PI_KEY_PREFIX", "{pi}:", "must be letters"),
    ("PI_CONCURRENCY", "0", "must be 1 or more"),
    ("PI_BREAKER_RUNS", "-1", "must be a whole number"),
    ("PI_WORKER_NAME", "a@b", "must be letters"),
    ("PI_WORKER_NAME", "a.json", "must not end with .json"),
    ("PI_SWEEP_INTERVAL_HOURS", "169", "must be from 0 to 168"),
    ("PI_WORKER_NAME", "a" * 65, "at most 64"),
    ("PI_CELERY_CONFIG", "celeryconfig.py", "must be an absolute path"),
    ("PI_CELERY_CONFIG", "/nonexistent/celeryconfig.py", "must be an existing file"),
    ("RECEIVER_PORT", "65536", "must be from 1 to 65535"),
    ("RECEIVER_BIND", "http://h", "must be the name or the address of a host"),
    ("RECEIVER_IDENTITY_RETRY_SECONDS", "0", "must be 1 or more"),
    ("RECEIVER_HEALTH_BIND", "3001", "must be an address and a port"),
    ("GITHUB_AUTH_SOURCE", "token", "must be gh, pat or app"),
    ("GITHUB_APP_ID", "Iv1", "must be a whole number"),
    ("GITHUB_APP_INSTALLATION_ID", "0", "must be 1 or more"),
    ("GITHUB_APP_PRIVATE_KEY_PATH", "app.pem", "must be an absolute path"),
    ("POLL_REPOS", "acme", "must be one repository or several"),
    ("POLL_INTERVAL_SECONDS", "0", "must be 1 or more"),
]
#: Secrets that are never repeated, and what may hold one.
SECRETS = {
    "VALKEY_PASSWORD",
    "WEBHOOK_SECRET",
    "GITHUB_PAT_VAR",
    "GITHUB_APP_PRIVATE_KEY",
    "GITHUB_API_URL",
    "GITHUB_URL",
}
#: Beside them what is read strictly elsewhere (`server/address.py`), and what only one text turns over.
OTHERWISE = {*SECRETS, "VALKEY_URL", "PI_CAPTURE_JOB_LOGS", "PI_AUTH_FROM_PI", "PI_TRIGGERS_FILE"}


def test_a_malformed_password_is_refused_and_not_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    message = refusal(monkeypatch, {"VALKEY_PASSWORD": "hunter2 hunter2"})
    assert message.startswith("VALKEY_PASSWORD must be 16 or more")
    assert "hunter2" not in message


@pytest.mark.parametrize(("variable", "value", "reason"), MALFORMED)
def test_a_malformed_value_is_refused_with_its_remedy(
    monkeypatch: pytest.MonkeyPatch, variable: str, value: str, reason: str
) -> None:
    message = refusal(monkeypatch, {variable: value})
    assert message.startswith(f"{variable}=")
    assert reason in message
    assert f"Write for example: {variable}=" in message
    assert value in message or not value.isprintable()
    assert message.isprintable()


def test_every_variable_can_be_refused_and_its_remedy_is_good(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert {variable for variable, *_ in MALFORMED} == set(FIELDS) - OTHERWISE
    file = tmp_path / "celeryconfig.py"
    file.touch()
    # What must exist, and what a shell makes.
    there = {
        "PI_GLOBAL_PI_DIR": str(tmp_path),
        "PI_CELERY_CONFIG": str(file),
        "VALKEY_PASSWORD": "0" * 48,
        "GITHUB_APP_PRIVATE_KEY": _PEM,
    }
    for variable, field in FIELDS.items():
        extra = Settings.model_fields[field].json_schema_extra
        assert isinstance(extra, dict)
        written, value = str(extra["remedy"]).split("=")
        assert written == variable
        load(monkeypatch, {variable: there.get(variable, value)})


@pytest.mark.parametrize("text", ["", "0", "2", "yes", "true", " 1"])
def test_only_one_keeps_the_output(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    assert load(monkeypatch, {"PI_CAPTURE_JOB_LOGS": text}).capture_job_logs is False


@pytest.mark.parametrize("text", ["", "1", "00", "no", "false", " 0"])
def test_only_zero_leaves_pis_own_key_alone(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    assert load(monkeypatch, {"PI_AUTH_FROM_PI": text}).auth_from_pi is True


def test_bounds_that_nothing_enforces_are_named_together() -> None:
    with pytest.raises(ConfigError) as caught:
        refuse_unserved_bounds({"PI_MAX_COST_USD": "1", "PI_DAILY_COST_USD": "25", "PI_MAX_TURNS": "3"})
    assert caught.value.cause == "unserved-bound"
    assert caught.value.message.startswith("PI_MAX_COST_USD, PI_DAILY_COST_USD are set")
    assert "unset PI_MAX_COST_USD PI_DAILY_COST_USD" in caught.value.message


def test_a_bound_of_later_versions_is_no_setting_of_this_one() -> None:
    assert not {*names.UNSERVED_BOUNDS} & {*FIELDS}
    refuse_unserved_bounds(dict.fromkeys(set(names.UNSERVED_BOUNDS) - names.UNSERVED_FILES, ""))


@pytest.mark.parametrize("variable", sorted(names.UNSERVED_FILES))
def test_an_empty_name_of_a_file_of_bounds_is_a_value_too(variable: str) -> None:
    with pytest.raises(ConfigError, match=variable):
        refuse_unserved_bounds({variable: ""})


def test_all_faults_are_told_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    message = refusal(monkeypatch, {"PI_MAX_TURNS": "03", "PI_EGRESS": "yes", "PI_MODEL": "-m"})
    assert [line.split("=")[0] for line in message.split("\n")] == ["PI_MODEL", "PI_MAX_TURNS", "PI_EGRESS"]


def test_a_value_with_control_characters_is_shown_escaped(monkeypatch: pytest.MonkeyPatch) -> None:
    message = refusal(monkeypatch, {"PI_MODEL": "a\x1b[31m\u202eb"})
    assert message.isprintable()
    assert "u{202E}" in message


def test_a_file_is_no_overlay(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert "must be an existing folder" in refusal(monkeypatch, {"PI_GLOBAL_PI_DIR": str(tmp_path / "file")})


@pytest.mark.parametrize(
    "name",
    [
        *names.ALWAYS_WRITTEN,
        *(name for name in names.SOMETIMES_WRITTEN if name != "HOME"),
        *names.RUNNER_INTERNAL,
        *names.RESERVED,
        *names.NEVER_FORWARDED,
        *PROXY_NAMES,
    ],
)
def test_what_the_box_writes_or_must_not_hold_is_not_forwarded(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    message = refusal(monkeypatch, {"PI_FORWARD_ENV": f"GOOD,{name}"})
    assert message.startswith(f"PI_FORWARD_ENV names {name}: ")
    assert "Take them out of PI_FORWARD_ENV" in message


def test_all_offenders_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    message = refusal(monkeypatch, {"PI_FORWARD_ENV": "PI_MODEL,GOOD,GITHUB_TOKEN"})
    assert "names PI_MODEL, GITHUB_TOKEN:" in message


@pytest.mark.parametrize("name", ["HOME", "PI_RETRY_MAX", "PI_RETRY_BASE_MS", "GITHUB_APP_PRIVATE_KEY_PATH", "PATH"])
def test_what_is_harmless_is_forwarded(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    assert load(monkeypatch, {"PI_FORWARD_ENV": name}).forward_env == (name,)


def test_proxy_names_are_forwarded_on_an_open_network(monkeypatch: pytest.MonkeyPatch) -> None:
    found = load(monkeypatch, {"PI_FORWARD_ENV": ",".join(PROXY_NAMES), "PI_EGRESS": "0"})
    assert found.forward_env == tuple(PROXY_NAMES)


def test_a_minted_token_is_not_forwarded_on_an_open_network_either(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "GH_TOKEN" in refusal(monkeypatch, {"PI_FORWARD_ENV": "GH_TOKEN", "PI_EGRESS": "0"})


def test_no_file_of_the_current_folder_is_read(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("PI_MODEL=from-dotenv\nPI_MAX_TURNS=1\nPI_EGRESS=0\n")
    (tmp_path / "pyproject.toml").write_text('[tool.pydantic-settings]\nPI_MODEL = "from-pyproject"\n')
    (tmp_path / "PI_MODEL").write_text("from-secrets")
    monkeypatch.chdir(tmp_path)
    found = load(monkeypatch, {})
    assert (found.model, found.max_turns, found.egress) == ("claude-sonnet-4-5-20250929", 30, True)


@pytest.mark.parametrize("name", ["pi_max_turns", "Pi_Max_Turns", "MAX_TURNS", "max_turns"])
def test_a_variable_has_one_spelling(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    assert load(monkeypatch, {name: "7"}).max_turns == 30


def test_an_account_without_a_home_keeps_its_state_in_the_temporary_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    def homeless() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", homeless)
    monkeypatch.setattr(tempfile, "tempdir", "/somewhere")
    assert load(monkeypatch, {}).state_dir == Path(f"/somewhere/pi-dispatch-{os.getuid()}/state")


def test_settings_are_frozen(monkeypatch: pytest.MonkeyPatch) -> None:
    found = load(monkeypatch, {})
    with pytest.raises(ValueError, match="frozen"):
        found.max_turns = 3


def test_every_variable_says_what_it_does() -> None:
    for field in Settings.model_fields.values():
        assert field.description is not None
        assert field.description.endswith(".")
        assert isinstance(field.json_schema_extra, dict)
        assert {"unit", "bound", "remedy"} == set(field.json_schema_extra)
