"""Instants as whole numbers since 1970 began in UTC: the form in which they are stored, compared and part of ids."""

from datetime import UTC, datetime, timedelta
from typing import Final

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)
_MILLISECOND: Final = timedelta(milliseconds=1)


def to_us(instant: datetime) -> int:
    """Microseconds of an aware instant."""
    return (instant - _EPOCH) // _MICROSECOND


def to_ms(instant: datetime) -> int:
    """Milliseconds of an aware instant, the rest left out."""
    return (instant - _EPOCH) // _MILLISECOND


def from_ms(milliseconds: int) -> datetime:
    """The instant, in UTC. Raises `OverflowError` for one that no calendar holds."""
    return _EPOCH + milliseconds * _MILLISECOND
