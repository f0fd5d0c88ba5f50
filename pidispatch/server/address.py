"""Where the server of the queue is: one strict reading of `VALKEY_URL`, and what each client library is told of it.

https://redis.io/docs/latest/develop/clients/redis-py/connect/
https://docs.celeryq.dev/en/stable/getting-started/backends-and-brokers/redis.html
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NoReturn, Protocol, Self
from urllib.parse import parse_qsl, quote, unquote, urlencode

from pidispatch.values.errors import ConfigError

#: Folder of our own server in the state folder, and its socket in there.
OWN_FOLDER: Final = "server"
OWN_SOCKET: Final = "valkey.sock"
_EXAMPLES: Final = {
    "redis": "redis://127.0.0.1:6379/0",
    "rediss": "rediss://queue.example.org:6380/0?ssl_ca_certs=/etc/ssl/ca.pem",
    "unix": "unix:///run/valkey/valkey.sock",
    "sentinel": "sentinel://10.0.0.1:26379,10.0.0.2:26379/0?master=NAME",
}
_TLS: Final = ("ssl_cert_reqs", "ssl_ca_certs", "ssl_certfile", "ssl_keyfile")
#: Scheme -> the query parameters that mean something there.
_PARAMETERS: Final[dict[str, tuple[str, ...]]] = {
    "redis": (),
    "rediss": _TLS,
    "unix": ("db",),
    "sentinel": ("master", "sentinel_password"),
}
_PORTS: Final = {"redis": 6379, "rediss": 6379, "sentinel": 26379}
_REST = re.compile(r"(?P<authority>[^/?#]*)(?P<path>[^?#]*)(?:\?(?P<query>[^#]*))?")
_HOST = re.compile(
    r"(?:\[(?P<six>[0-9A-Fa-f:.]+)\]|(?P<name>(?:[A-Za-z0-9_-]{1,63}\.)*[A-Za-z0-9_-]{1,63}))(?::(?P<port>.*))?"
)
_NUMBER = re.compile(r"0|[1-9][0-9]{0,4}")
#: Seconds in which one Sentinel must answer; the next one is asked after it.
_SENTINEL_S: Final = 0.5


class ServerSettings(Protocol):
    """All that must be known to reach the server; `Settings` is one."""

    @property
    def valkey_url(self) -> str | None:
        """The server that is named, if one is."""

    @property
    def valkey_password(self) -> str | None:
        """Its password, where the URL has none."""

    @property
    def state_dir(self) -> Path:
        """Where our own server is kept."""

    @property
    def key_prefix(self) -> str:
        """What every key begins with."""


@dataclass(frozen=True, kw_only=True)
class Address:
    """One server, or the Sentinels that know which one it is. Its text and its `repr` hold no secret."""

    scheme: str
    #: Host and port; several of Sentinels, none of a socket.
    hosts: tuple[tuple[str, int], ...] = ()
    socket: Path | None = None
    db: int = 0
    user: str | None = field(default=None, repr=False)
    password: str | None = field(default=None, repr=False)
    #: What the URL says of TLS: files, and whether the certificate is checked.
    tls: tuple[tuple[str, str], ...] = ()
    master: str | None = None
    sentinel_password: str | None = field(default=None, repr=False)

    @classmethod
    def of(cls, settings: ServerSettings) -> Self:
        """The server that is named, else our own, whether it runs or not. Raises like `parse`."""
        if settings.valkey_url is None:
            return cls(scheme="unix", socket=settings.state_dir / OWN_FOLDER / OWN_SOCKET)
        return cls.parse(settings.valkey_url, settings.valkey_password)

    @classmethod
    def parse(cls, url: str, password: str | None = None) -> Self:
        """The address that `VALKEY_URL` names; `password` is used where the URL has none.

        Raises `ConfigError` that repeats no part of the URL in which a user or a password could stand.
        """
        scheme, mark, rest = url.partition("://")
        if not mark or scheme not in _PARAMETERS:
            known = re.fullmatch(r"[a-z][a-z0-9+.-]{0,15}", scheme) if mark else None
            _refuse(f"has the unknown scheme {scheme!r}" if known else "does not begin with a scheme", "redis")
        authority, path, parameters = _split(rest, scheme)
        user, secret, hosts = _authority(authority, scheme)
        query = _query(parameters, scheme)
        return cls(
            scheme=scheme,
            hosts=hosts,
            socket=_socket(path) if scheme == "unix" else None,
            db=_database(query.get("db", "") if scheme == "unix" else path.removeprefix("/"), scheme),
            user=user,
            password=secret or password,
            tls=_tls(query) if scheme == "rediss" else (),
            master=query.get("master"),
            sentinel_password=query.get("sentinel_password"),
        )

    @property
    def shown(self) -> str:
        """The address for people and logs: without user, password and files."""
        if self.socket is not None:
            return f"unix://{self.socket}" + (f"?db={self.db}" if self.db else "")
        master = f"?master={self.master}" if self.master is not None else ""
        return f"{self.scheme}://{','.join(_host_port(*host) for host in self.hosts)}/{self.db}{master}"

    @property
    def broker_url(self) -> str:
        """The same for kombu. It holds the password: show `shown`."""
        user, secret = (quote(part or "", safe="") for part in (self.user, self.password))
        before = f"{user}:{secret}@" if user or secret else ""
        if self.socket is not None:
            return f"redis+socket://{before}{quote(str(self.socket))}?virtual_host={self.db}"
        query = f"?{urlencode(self.tls)}" if self.tls else ""
        return ";".join(f"{self.scheme}://{before}{_host_port(*host)}/{self.db}{query}" for host in self.hosts)

    @property
    def transport_options(self) -> dict[str, Any]:
        """What kombu must be told beside the URL."""
        if self.master is None:
            return {}
        return {"master_name": self.master, "sentinel_kwargs": self.sentinel_options()}

    def client_options(self) -> dict[str, Any]:
        """Keyword arguments of `redis.Redis`; for Sentinels those of the server that they name."""
        options: dict[str, Any] = {"db": self.db, "username": self.user, "password": self.password}
        if self.socket is not None:
            options["unix_socket_path"] = str(self.socket)
        elif self.master is None:
            options["host"], options["port"] = self.hosts[0]
        if self.tls:
            tls = dict(self.tls)
            options |= {"ssl": True, **tls, "ssl_check_hostname": tls["ssl_cert_reqs"] != "none"}
        return options

    def sentinel_options(self) -> dict[str, Any]:
        """Keyword arguments of the clients that ask the Sentinels: one that is away must not hold up the next."""
        options: dict[str, Any] = {"socket_timeout": _SENTINEL_S, "socket_connect_timeout": _SENTINEL_S, "retry": None}
        return options | ({"password": self.sentinel_password} if self.sentinel_password else {})


def _refuse(what: str, scheme: str) -> NoReturn:
    raise ConfigError(f"VALKEY_URL {what}. Write for example: VALKEY_URL={_EXAMPLES[scheme]}", "setting")


def _split(rest: str, scheme: str) -> tuple[str, str, str]:
    """Authority, path and query; refuses a password that was not encoded, so that no part of it lands elsewhere."""
    if any(ord(char) <= 0x20 or ord(char) == 0x7F for char in rest):
        _refuse("holds a blank or a control character", scheme)
    found = _REST.fullmatch(rest)
    behind = "" if found is None else (found["query"] or "") + ("" if scheme == "unix" else found["path"])
    if found is None or "@" in behind:
        _refuse("has a '#', or an '@' behind its host; in a password write '#' as %23, '/' as %2F, '?' as %3F", scheme)
    return found["authority"], found["path"], found["query"] or ""


def _authority(text: str, scheme: str) -> tuple[str | None, str | None, tuple[tuple[str, int], ...]]:
    """User, password and hosts."""
    account, _, place = text.rpartition("@")
    user, _, secret = account.partition(":")
    if scheme == "unix":
        if place:
            _refuse("names a host before the path of its socket", scheme)
        hosts: tuple[tuple[str, int], ...] = ()
    else:
        names = place.split(",") if scheme == "sentinel" else [place]
        hosts = tuple(_host(name, scheme) for name in names)
    return unquote(user) or None, unquote(secret) or None, hosts


def _host(text: str, scheme: str) -> tuple[str, int]:
    found = _HOST.fullmatch(text)
    if found is None:
        _refuse("names no host, or one that is none", scheme)
    port = found["port"]
    if port is not None and not (_NUMBER.fullmatch(port) and 0 < int(port) < 65536):
        _refuse("has a port that is no number from 1 to 65535", scheme)
    return found["six"] or found["name"], int(port or _PORTS[scheme])


def _host_port(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _query(text: str, scheme: str) -> dict[str, str]:
    try:
        pairs = parse_qsl(text, keep_blank_values=True, strict_parsing=bool(text))
    except ValueError:
        _refuse("has a query that is not NAME=VALUE&NAME=VALUE", scheme)
    query = dict(pairs)
    known = _PARAMETERS[scheme]
    if unknown := sorted(query.keys() - set(known)):
        served = f"{scheme}:// takes {', '.join(known)}" if known else f"{scheme}:// takes none"
        _refuse(f"has the unknown query parameter {', '.join(map(ascii, unknown))}: {served}", scheme)
    if len(pairs) > len(query) or not all(query.values()):
        _refuse("has a query parameter that is empty or stands there twice", scheme)
    if scheme == "sentinel" and "master" not in query:
        _refuse("does not say which server the Sentinels are asked for: master=NAME is missing", scheme)
    return query


def _database(text: str, scheme: str) -> int:
    if text and not _NUMBER.fullmatch(text):
        _refuse("names a database that is no number", scheme)
    return int(text or 0)


def _socket(text: str) -> Path:
    path = Path(unquote(text))
    if not path.is_absolute() or path == Path("/"):
        _refuse("names no absolute path of a socket", "unix")
    return path


def _tls(query: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """What is said of TLS, with the check of the certificate where nothing else is said."""
    checks = query.get("ssl_cert_reqs", "required")
    if checks not in ("required", "optional", "none"):
        _refuse("has an ssl_cert_reqs that is not required, optional or none", "rediss")
    files = {name: query[name] for name in _TLS[1:] if name in query}
    for name, text in files.items():
        # A relative one would be looked for in whatever folder the program is called from.
        if not Path(text).is_absolute() or not Path(text).is_file():
            _refuse(f"has an {name} that is not the absolute path of a file", "rediss")
    if "ssl_keyfile" in files and "ssl_certfile" not in files:
        _refuse("has an ssl_keyfile without its ssl_certfile", "rediss")
    return (("ssl_cert_reqs", checks), *files.items())
