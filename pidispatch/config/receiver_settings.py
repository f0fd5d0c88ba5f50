"""The settings of the receiver."""

import re
from typing import Annotated, Final

from pydantic import BeforeValidator, field_validator
from pydantic_settings import BaseSettings

from pidispatch.config.field import setting
from pidispatch.config.kinds import PlainText, at_least, within

#: Shorter than this, a restart of the forge would end the receiver.
_LEAST_RETRY_S: Final = 60
_PLACE: Final = re.compile(r"(?:\[(?P<six>[0-9A-Fa-f:.]+)\]|(?P<name>[A-Za-z0-9._-]+)):(?P<port>[0-9]{1,5})")
_HOST: Final = re.compile(r"[0-9A-Fa-f:.]+|[A-Za-z0-9._-]+")
_PORTS: Final = within(1, 65_535)

Port = Annotated[int, BeforeValidator(_PORTS)]
#: Seconds for which an answer is worth waiting for; a shorter time is made this one.
Patience = Annotated[int, BeforeValidator(lambda value: max(_LEAST_RETRY_S, at_least(1)(value)))]


class ReceiverSettings(BaseSettings):
    """Part of `Settings`."""

    receiver_port: Port = setting(
        3000,
        "RECEIVER_PORT",
        "Port on which the receiver hears webhooks.",
        unit="port",
        bound="1 to 65535",
        remedy="RECEIVER_PORT=3000",
    )
    receiver_bind: PlainText = setting(
        "0.0.0.0",
        "RECEIVER_BIND",
        "Address on which the receiver hears webhooks. Behind a proxy on the same machine: 127.0.0.1.",
        unit="address",
        bound="one of this machine",
        remedy="RECEIVER_BIND=127.0.0.1",
    )
    receiver_identity_retry_seconds: Patience = setting(
        600,
        "RECEIVER_IDENTITY_RETRY_SECONDS",
        "Seconds for which a receiver that starts goes on asking a forge which account is its own, while the forge "
        "does not answer. It hears nothing before it knows.",
        unit="seconds",
        bound=f"1 or more; less than {_LEAST_RETRY_S} counts as {_LEAST_RETRY_S}",
        remedy="RECEIVER_IDENTITY_RETRY_SECONDS=600",
    )
    receiver_health_bind: str | None = setting(
        None,
        "RECEIVER_HEALTH_BIND",
        "Address and port of a second listener of the receiver, with /healthz, /readyz and /metrics. Anybody who "
        "reaches it may read it: keep it to this machine or to a network of your own.",
        unit="address and port",
        bound="`host:port`, an IPv6 address in brackets; unset or empty: no such listener",
        remedy="RECEIVER_HEALTH_BIND=127.0.0.1:3001",
    )

    @field_validator("receiver_bind", mode="after")
    @classmethod
    def _host(cls, text: str) -> str:
        if not _HOST.fullmatch(text):
            raise ValueError("must be the name or the address of a host, without a port")
        return text

    @field_validator("receiver_health_bind", mode="after")
    @classmethod
    def _place(cls, text: str | None) -> str | None:
        if text is not None:
            host_and_port(text)
        return text


def host_and_port(text: str) -> tuple[str, int]:
    """The two parts of `host:port`. Raises `ValueError`."""
    found = _PLACE.fullmatch(text)
    if found is None:
        raise ValueError("must be an address and a port, as in 127.0.0.1:3001")
    return found["six"] or found["name"], _PORTS(found["port"])
