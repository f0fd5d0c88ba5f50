"""The worker's connection to the server: once lost, it is tried again every few seconds, however long that takes.

Celery's own pause grows to half a minute, and that is how long a job would wait once the server is back.
"""

from typing import Any, Final

from pidispatch.config.log import log
from pidispatch.jobs.transport import KeptConnection

#: Seconds: the first pause, what each adds, and what may be added in all.
_PAUSES: Final[dict[str, Any]] = {"interval_start": 1, "interval_step": 1, "interval_max": 2}


class Reconnecting(KeptConnection):
    """A connection of Celery's with short pauses."""

    def ensure_connection(self, *arguments: Any, **options: Any) -> Any:
        """Connect; where nothing answers, again and again."""
        return super().ensure_connection(*arguments, **{**_PAUSES, **options})

    def maybe_close_channel(self, channel: Any) -> None:
        """Close a channel, also that of a connection which is lost already: a worker that stops then stops cleanly.

        Its tickets are not given back by it, since nobody is there to take them; they come again by themselves.
        """
        try:
            super().maybe_close_channel(channel)
        except AttributeError:
            # The transport was taken from the channel when the connection was lost, and closing asks for it.
            log().debug("channel_lost")
