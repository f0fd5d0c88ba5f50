"""Faults of the container engine, in our own words and without the request that failed."""

from collections.abc import Callable

import docker.errors
import requests
import urllib3

from pidispatch.config.text import scrub
from pidispatch.values.errors import InfraError
from pidispatch.values.reason import Reason

#: Everything by which docker-py says that the engine refused, vanished or did not answer.
ENGINE_FAULTS = (
    docker.errors.DockerException,
    requests.RequestException,
    urllib3.exceptions.HTTPError,
    OSError,
)
_REMEDY = (
    "Check that it runs and that this account may use it (docker info), or name another one: "
    "DOCKER_HOST=unix:///path/to/docker.sock"
)


def describe(error: BaseException) -> str:
    """A fault of the engine for a log or a message: its kind, the HTTP status and the scrubbed explanation.

    Never the whole exception: it can repeat the request, and the request holds credentials.
    """
    status = getattr(error, "status_code", None)
    explanation = getattr(error, "explanation", None)
    words = [type(error).__name__, str(status) if status else "", scrub(explanation) if explanation else ""]
    return " ".join(word for word in words if word)


def fault(what: str, error: BaseException) -> InfraError:
    """The engine did not do what was asked of it before any container existed."""
    return InfraError(f"{what} ({describe(error)}). {_REMEDY}", Reason.CONTAINER_NEVER_STARTED.value)


def never_started(what: str, error: BaseException) -> InfraError:
    """The container did not come to run; nothing was spent."""
    return InfraError(f"{what} ({describe(error)})", Reason.CONTAINER_NEVER_STARTED.value)


def is_conflict(error: BaseException) -> bool:
    """The name is taken, so what has it is not ours."""
    return getattr(error, "status_code", None) == 409


def tried(call: Callable[[], object]) -> str | None:
    """Make a call whose failure must not hide another; what failed, `None` also where there was nothing to do."""
    try:
        call()
    except docker.errors.NotFound:
        return None
    except ENGINE_FAULTS as error:
        return describe(error)
    return None
