"""Which account is this deployment's own: known before anything is heard, or nothing is.

Without it the receiver would answer what its own jobs write, for ever.
"""

from collections.abc import Callable
from typing import Final

from pidispatch.config.asked import asked
from pidispatch.config.log import log
from pidispatch.forges.protocol import Account
from pidispatch.values.clock import Clock
from pidispatch.values.errors import ConfigError, InfraError
from pidispatch.values.event import Identity
from pidispatch.values.forge import JobKind

#: Seconds until the second try, and the most between two.
_FIRST_S: Final = 5.0
_MOST_S: Final = 30.0
#: Seconds for which one try may take.
FUSE_S: Final = 10.0


def own_identity(
    kind: JobKind,
    account: Account,
    window_s: float,
    clock: Clock,
    sleep: Callable[[float], object],
    fuse_s: float = FUSE_S,
) -> Identity:
    """The account's identity, asked for again and again for `window_s` while the forge does not answer.

    Raises `ConfigError` at once where it can never be known, and `InfraError` where it was not known in time.
    """
    until, gap = clock.monotonic() + window_s, _FIRST_S
    while True:
        try:
            found = _try(account, fuse_s)
        except InfraError as error:
            left = until - clock.monotonic()
            if left <= 0:
                raise _unknown(kind, error) from None
            pause = min(gap, left)
            log().warning("self_identity_retry", forge=kind, cause=error.cause, seconds=round(pause))
            sleep(pause)
            gap = min(gap * 2, _MOST_S)
            continue
        if found.id is None and found.alias is None:
            raise ConfigError(f"{kind} does not say which account is this deployment's own", "identity-unknown")
        log().info("self_identity", forge=kind, id=found.id)
        return found


def _try(account: Account, fuse_s: float) -> Identity:
    try:
        return asked(account.identity).result(fuse_s)
    except TimeoutError:
        raise InfraError(f"no answer within {fuse_s:g} s", "identity-timed-out") from None


def _unknown(kind: JobKind, error: InfraError) -> InfraError:
    return InfraError(
        f"{kind} did not say which account is this deployment's own, and without that a receiver would answer itself: "
        f"{error.message}. See that this machine reaches it, then start again",
        error.cause,
    )
