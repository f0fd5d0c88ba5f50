"""All checks in the order in which they are shown, and how they are made: all at once, none waiting for another."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from time import monotonic
from typing import Final

from pidispatch.cli.checks import boxed, configured, files, forges, kept, rules, served
from pidispatch.cli.checks.row import Finding, Row, Told, failed
from pidispatch.cli.checks.scene import Scene
from pidispatch.config.asked import asked
from pidispatch.config.text import scrub
from pidispatch.values.cause import remedy_of
from pidispatch.values.errors import DispatchError

#: Seconds that server and engine may take to answer, and all checks together.
PATIENCE_S: Final = 5.0
WHOLE_S: Final = 8.0
_MEND: Final = "mend what the message names"
_BUSY: Final = "see whether the machine or its disk is overloaded, then check again"


@dataclass(frozen=True)
class Check:
    """One look. It raises `Told` where another row says why it cannot be made, and a `DispatchError` where it fails."""

    #: Its name in every row of it.
    name: str
    look: Callable[[Scene], Iterable[Finding]]
    #: What to do where it gets no answer, and where it fails by a cause without a remedy of its own.
    silent: str = _BUSY
    mend: str = _MEND


CHECKS: Final = (
    Check("settings", configured.settings),
    Check("bounds", configured.bounds),
    Check("celery", configured.celery),
    Check("quiet-hours", files.quiet_hours),
    Check("triggers", files.triggers),
    Check("rules", rules.uses),
    Check("one-shots", rules.one_shots),
    Check("forges", rules.forges),
    Check("webhooks", rules.webhooks),
    Check("accounts", forges.accounts),
    Check("permissions", forges.permissions),
    Check("repositories", forges.repositories),
    Check("server", served.server, "it may be there all the same: see its own log, and the way to it"),
    Check("durability", served.durability),
    Check("store", served.store),
    Check("workers", served.workers),
    Check(
        "engine",
        boxed.engine,
        "it may be there all the same: see whether docker info answers, and restart it",
        "see that it runs and that this account may use it: docker info; or name another with DOCKER_HOST",
    ),
    Check("engine-lock", boxed.lock),
    Check("image", boxed.image),
    Check("named-images", boxed.named_images),
    Check("job-user", boxed.job_user),
    Check("egress", boxed.egress),
    Check("credential", kept.credential),
    Check("overlay", kept.overlay),
    Check("state-folder", kept.state_folder),
    Check("jobs-folder", kept.jobs_folder),
    Check("logs-folder", kept.logs_folder),
)


def look_around(
    checks: Sequence[Check] = CHECKS,
    *,
    repositories: Sequence[str] = (),
    patience_s: float = PATIENCE_S,
    whole_s: float = WHOLE_S,
) -> list[Row]:
    """Make all checks; their rows in the order of `checks`. Takes at most `whole_s` seconds, whatever hangs.

    `repositories` are looked at besides those of the settings.
    """
    until = monotonic() + whole_s
    scene = Scene(patience_s, repositories)
    answers = [(check, asked(lambda check=check: _made(check, scene))) for check in checks]  # type: ignore[misc]
    rows: list[Row] = []
    for check, answer in answers:
        try:
            findings = answer.result(max(0.0, until - monotonic()))
        except TimeoutError:
            findings = [_silence(check, whole_s)]
        rows += [Row(check.name, one.status, one.found, one.remedy) for one in findings]
    scene.close()
    return rows


def _made(check: Check, scene: Scene) -> list[Finding]:
    """What a check finds; whatever it raises is a finding too, so that no check takes another one with it."""
    findings: list[Finding] = []
    try:
        # What was found before a fault stays.
        findings.extend(check.look(scene))
    except Told:
        pass
    except TimeoutError:
        findings.append(_silence(check, scene.patience_s))
    except DispatchError as error:
        findings.append(failed(error.message, remedy_of(error.cause) or check.mend))
    except Exception as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else scrub(str(error))
        findings.append(failed(f"the look broke off: {type(error).__name__}: {why}", _MEND))
    return findings


def _silence(check: Check, seconds: float) -> Finding:
    return failed(f"no answer within {seconds:g} s", check.silent)
