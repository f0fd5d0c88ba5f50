"""`VALKEY_URL`: every form, what each client is told of it, every refusal, and no secret where people look."""

import ssl
from pathlib import Path
from typing import Any

import pytest
from kombu import Connection

from pidispatch.config.settings import Settings
from pidispatch.server.address import Address
from pidispatch.values.errors import ConfigError

_FILES = ("ssl_ca_certs", "ssl_certfile", "ssl_keyfile")
SECRET = "s3cr/et?#@:word"
QUOTED = "s3cr%2Fet%3F%23%40%3Aword"


@pytest.mark.parametrize(
    ("url", "shown", "broker"),
    [
        ("redis://h", "redis://h:6379/0", "redis://h:6379/0"),
        ("redis://h.example.org:1/3", "redis://h.example.org:1/3", "redis://h.example.org:1/3"),
        ("redis://[::1]:7/", "redis://[::1]:7/0", "redis://[::1]:7/0"),
        (f"redis://me:{QUOTED}@h/2", "redis://h:6379/2", f"redis://me:{QUOTED}@h:6379/2"),
        (f"redis://:{QUOTED}@h", "redis://h:6379/0", f"redis://:{QUOTED}@h:6379/0"),
        ("rediss://h:1/0", "rediss://h:1/0", "rediss://h:1/0?ssl_cert_reqs=required"),
        ("rediss://h?ssl_cert_reqs=none", "rediss://h:6379/0", "rediss://h:6379/0?ssl_cert_reqs=none"),
        ("unix:///run/v.sock", "unix:///run/v.sock", "redis+socket:///run/v.sock?virtual_host=0"),
        ("unix:///run/a%20b?db=4", "unix:///run/a b?db=4", "redis+socket:///run/a%20b?virtual_host=4"),
        (f"unix://:{QUOTED}@/v", "unix:///v", f"redis+socket://:{QUOTED}@/v?virtual_host=0"),
        (
            f"sentinel://:{QUOTED}@a,[::2]:5/1?master=m&sentinel_password={QUOTED}",
            "sentinel://a:26379,[::2]:5/1?master=m",
            f"sentinel://:{QUOTED}@a:26379/1;sentinel://:{QUOTED}@[::2]:5/1",
        ),
    ],
)
def test_every_form_is_read_shown_without_secrets_and_told_to_kombu(url: str, shown: str, broker: str) -> None:
    address = Address.parse(url)
    assert (address.shown, address.broker_url) == (shown, broker)
    for text in (address.shown, repr(address), str(address)):
        assert "s3cr" not in text
        assert "me:" not in text


@pytest.mark.parametrize(
    "url", [f"redis://me:{QUOTED}@h", f"unix://:{QUOTED}@/v", f"sentinel://:{QUOTED}@a,b?master=m"]
)
def test_what_celery_prints_of_the_broker_holds_no_password(url: str) -> None:
    address = Address.parse(url)
    with Connection(address.broker_url, transport_options=address.transport_options) as connection:
        assert "s3cr" not in connection.as_uri()


@pytest.mark.parametrize(
    ("url", "options"),
    [
        ("redis://h:1/3", {"host": "h", "port": 1, "db": 3}),
        ("redis://[::1]:7/", {"host": "::1", "port": 7, "db": 0}),
        (f"redis://me:{QUOTED}@h", {"host": "h", "port": 6379, "db": 0, "username": "me", "password": SECRET}),
        ("unix:///run/v.sock?db=2", {"unix_socket_path": "/run/v.sock", "db": 2}),
        (
            "rediss://h",
            {
                "host": "h",
                "port": 6379,
                "db": 0,
                "ssl": True,
                "ssl_cert_reqs": "required",
                "ssl_check_hostname": True,
            },
        ),
        ("sentinel://a,b/1?master=m", {"db": 1}),
    ],
)
def test_what_the_client_is_told(url: str, options: dict[str, Any]) -> None:
    told = {"username": None, "password": None, **options}
    assert Address.parse(url).client_options() == told


def test_the_host_name_is_not_checked_where_the_certificate_is_not() -> None:
    options = Address.parse("rediss://h?ssl_cert_reqs=none").client_options()
    assert (options["ssl_cert_reqs"], options["ssl_check_hostname"]) == ("none", False)


def test_the_files_of_tls_reach_both_clients(tmp_path: Path) -> None:
    ca, cert, key = (tmp_path / name for name in ("c a.pem", "cert.pem", "key.pem"))
    for file in (ca, cert, key):
        file.touch()
    query = f"ssl_ca_certs={str(ca).replace(' ', '%20')}&ssl_certfile={cert}&ssl_keyfile={key}"
    address = Address.parse(f"rediss://h?{query}")
    options = address.client_options()
    assert (options["ssl_ca_certs"], options["ssl_certfile"], options["ssl_keyfile"]) == (str(ca), str(cert), str(key))
    with Connection(address.broker_url) as connection:
        assert connection.ssl == {"ssl_cert_reqs": ssl.CERT_REQUIRED, **{name: options[name] for name in _FILES}}


def test_sentinels_have_their_own_password_and_short_patience() -> None:
    address = Address.parse("sentinel://:data@a/0?master=m&sentinel_password=ask")
    assert address.transport_options["master_name"] == "m"
    assert address.transport_options["sentinel_kwargs"] == address.sentinel_options()
    assert address.sentinel_options()["password"] == "ask"
    assert address.client_options()["password"] == "data"
    assert "password" not in Address.parse("sentinel://:data@a/0?master=m").sentinel_options()
    assert Address.parse("redis://h").transport_options == {}


def test_a_password_in_the_url_wins_over_the_variable() -> None:
    assert Address.parse("redis://:own@h", "variable").password == "own"
    assert Address.parse("redis://me@h", "variable").password == "variable"
    assert Address.parse("redis://me:@h", "variable").password == "variable"
    assert Address.parse("redis://h").password is None


def test_of_settings_is_the_named_server_or_our_own_in_the_state_folder() -> None:
    own = Address.of(Settings.model_validate({"PI_STATE_DIR": "/srv/state"}))
    assert own.shown == "unix:///srv/state/server/valkey.sock"
    named = {"VALKEY_URL": "redis://h/1", "VALKEY_PASSWORD": "p" * 16}
    address = Address.of(Settings.model_validate(named))
    assert (address.shown, address.password) == ("redis://h:6379/1", "p" * 16)


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("http://u:s3cret@h", "unknown scheme 'http'"),
        ("s3cret", "does not begin with a scheme"),
        ("u:s3cret@h:6379", "does not begin with a scheme"),
        ("U:s3cret@h://x", "does not begin with a scheme"),
        ("redis://", "names no host"),
        ("redis:///0", "names no host"),
        ("redis://a,b/0", "names no host, or one that is none"),
        ("redis://a..b", "names no host, or one that is none"),
        ("redis://u:s3cret@h:0", "no number from 1 to 65535"),
        ("redis://u:s3cret@h:65536", "no number from 1 to 65535"),
        ("redis://h:s3cret", "no number from 1 to 65535"),
        ("redis://h:", "no number from 1 to 65535"),
        ("redis://:s3/cret@h:1/0", "write '#' as %23"),
        ("redis://:s3#cret@h/0", "write '#' as %23"),
        ("redis://:s3?cret@h/0", "write '#' as %23"),
        ("redis://:s3 cret@h/0", "holds a blank or a control character"),
        ("redis://h/0\n", "holds a blank or a control character"),
        ("redis://h/s3cret", "a database that is no number"),
        ("redis://h/01", "a database that is no number"),
        ("redis://h/1/2", "a database that is no number"),
        ("redis://h/-1", "a database that is no number"),
        ("redis://h?db=1", "unknown query parameter 'db': redis:// takes none"),
        ("redis://h?ssl_ca_certs=/x", "unknown query parameter 'ssl_ca_certs'"),
        (
            "rediss://h?ssl_check_hostname=false",
            "rediss:// takes ssl_cert_reqs, ssl_ca_certs, ssl_certfile, ssl_keyfile",
        ),
        ("redis://h?s3cret", "a query that is not NAME=VALUE"),
        ("unix:///v?db=1&db=2", "empty or stands there twice"),
        ("unix:///v?db=", "empty or stands there twice"),
        ("unix:///v?db=x", "a database that is no number"),
        ("unix://h/v", "names a host before the path"),
        ("unix://:s3/cret@/v", "names a host before the path"),
        ("unix://", "no absolute path of a socket"),
        ("unix:///", "no absolute path of a socket"),
        ("sentinel://a:1", "master=NAME is missing"),
        ("sentinel://a,/0?master=m", "names no host"),
        ("rediss://h?ssl_cert_reqs=maybe", "not required, optional or none"),
        ("rediss://h?ssl_ca_certs=ca.pem", "ssl_ca_certs that is not the absolute path of a file"),
        ("rediss://h?ssl_certfile=/nonexistent", "ssl_certfile that is not the absolute path of a file"),
        ("rediss://h?ssl_keyfile=/etc/hostname", "an ssl_keyfile without its ssl_certfile"),
    ],
)
def test_everything_else_is_refused_and_no_secret_is_repeated(url: str, said: str) -> None:
    with pytest.raises(ConfigError) as refused:
        Address.parse(url)
    message = refused.value.message
    assert said in message
    assert message.startswith("VALKEY_URL ")
    assert ". Write for example: VALKEY_URL=" in message
    assert refused.value.cause == "setting"
    for part in ("s3", "cret", "u:"):
        assert part not in message
