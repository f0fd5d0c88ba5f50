"""The entries of the triggers file: what they make use of, the rules that fire once, those that nothing hears, and what
hearing them takes.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from pidispatch.cli.checks.row import Finding, passed, warned
from pidispatch.cli.checks.scene import Scene
from pidispatch.cli.heard import is_served
from pidispatch.config.text import printable
from pidispatch.triggers.entry import CronTrigger, ForgeRun, ForgeTrigger
from pidispatch.triggers.identity import oneshot_of
from pidispatch.values.forge import FORGES, JobKind

#: Images, folders and hosts that are named one by one.
_NAMED: Final = 20
#: What to do about rules that nothing hears.
TAKE_OUT: Final = "take them out, or use a version that hears the forge"


def uses(scene: Scene) -> Iterator[Finding]:
    """What the entries make use of, spent ones too."""
    _, file = scene.triggers
    runs = [one.run for one in file.triggers]
    forges = [one for one in runs if isinstance(one, ForgeRun)]
    told = [
        _counted([one for one in forges if one.replicas is not None], "with replicas"),
        _counted([one for one in forges if one.instructions is not None], "with instructions"),
        _counted([one for one in forges if one.command is not None], "with a command"),
        _listed([one.image for one in runs], "images"),
        _listed([one.skills_dir for one in forges], "folders of skills"),
    ]
    if words := "; ".join(one for one in told if one):
        yield passed(words)


def images_of(scene: Scene) -> dict[str, list[tuple[int, JobKind]]]:
    """The images of the entries that can start jobs, each with the places and kinds of these."""
    configured = scene.settings("PI_TRIGGERS_FILE").triggers_file
    _, file = scene.triggers
    found: dict[str, list[tuple[int, JobKind]]] = {}
    for at, one in enumerate(file.triggers):
        # No worker runs a schedule of the current folder's file.
        scheduled = isinstance(one, CronTrigger) and configured is not None
        fires = isinstance(one, ForgeTrigger) and one.mark is None and is_served(one.run.kind)
        if one.run.image is not None and (scheduled or fires):
            found.setdefault(one.run.image, []).append((at, JobKind(one.run.kind)))
    return found


def one_shots(scene: Scene) -> Iterator[Finding]:
    """The rules that fire once, and whether the file that they are marked in is the one that was meant."""
    configured = scene.settings("PI_TRIGGERS_FILE").triggers_file
    path, file = scene.triggers
    armed, spent = _once(file.triggers)
    if armed and configured is None:
        yield warned(
            f"triggers {places(armed)} of {printable(str(path))} fire once and are armed, and PI_TRIGGERS_FILE is not "
            "set: a worker marks the triggers.json of the folder that it is started in, perhaps not the file that the "
            "receiver reads",
            "set PI_TRIGGERS_FILE to the whole path of the file, for workers and receivers",
        )
    elif armed:
        yield passed(f"triggers {places(armed)} fire once and are armed")
    if spent:
        yield passed(
            f"triggers {places(spent)} have fired and match nothing; pi-dispatch triggers rearm INDEX arms one again"
        )


def forges(scene: Scene) -> Iterator[Finding]:
    """Rules of forges that this version does not hear."""
    _, file = scene.triggers
    if (deaf := told_unheard(file.triggers)) is not None:
        yield warned(deaf, TAKE_OUT)


def webhooks(scene: Scene) -> Iterator[Finding]:
    """What GitHub's webhooks are verified with, where a rule is about them. It is never shown."""
    _, file = scene.triggers
    rules = [at for at, one in file.forge_rules if one.run.kind is JobKind.GITHUB and one.mark is None]
    if not rules:
        return
    if scene.settings("WEBHOOK_SECRET").webhook_secret:
        yield passed("WEBHOOK_SECRET is set")
    else:
        yield warned(
            f"triggers {places(rules)} are about GitHub, and WEBHOOK_SECRET is not set: a receiver that is started in "
            "this environment is refused",
            "set it to the secret of the webhook, where the receiver is started; a poller needs none",
        )


def told_once(entries: Sequence[object]) -> str | None:
    """How many rules of a file fire once; `None` where none does."""
    armed, spent = _once(entries)
    counts = ((len(armed), "armed"), (len(spent), "spent"))
    words = ", ".join(f"{count:,} {word}" for count, word in counts if count)
    return f"firing once: {words}" if words else None


def told_unheard(entries: Sequence[object]) -> str | None:
    """Which armed rules of a file are of a forge that this version does not hear; `None` where none is."""
    found: dict[JobKind, list[int]] = {}
    for at, one in enumerate(entries):
        if isinstance(one, ForgeTrigger) and one.mark is None and not is_served(one.run.kind):
            found.setdefault(one.run.kind, []).append(at)
    told = [f"triggers {places(where)} are about {FORGES[kind].title}" for kind, where in found.items()]
    return f"{', '.join(told)}, which this version does not hear: they cannot fire" if told else None


def _once(entries: Sequence[object]) -> tuple[list[int], list[int]]:
    """Places of the rules that fire once: armed, and spent."""
    rules = [(at, one) for at, one in enumerate(entries) if isinstance(one, ForgeTrigger) and oneshot_of(one)]
    return [at for at, one in rules if one.mark is None], [at for at, one in rules if one.mark is not None]


def _counted(entries: Sequence[object], what: str) -> str:
    return f"{len(entries):,} {what}" if entries else ""


def _listed(names: Sequence[str | None], what: str) -> str:
    """Every one of these, once."""
    found = dict.fromkeys(printable(one) for one in names if one is not None)
    return f"{what}: {some(tuple(found))}" if found else ""


def some(names: Sequence[str]) -> str:
    """These names, as far as one reads them."""
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more


def places(found: Sequence[int]) -> str:
    """Entries, by their places."""
    return ", ".join(map(str, found))
