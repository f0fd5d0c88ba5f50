"""What the pages, the comments and the messages name exists, and nothing stands in a file that must not."""

import os
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import click
import pytest

from pidispatch.cli.ended import Ended, as_document
from pidispatch.cli.main import VERBS, cli
from pidispatch.values.job import LocalJob
from pidispatch.values.reason import Reason, RunnerReason
from pidispatch.values.record import Result, RunRecord
from tools import docs, docs_source

ROOT = docs.ROOT
_OTHERS = {"node_modules", "__pycache__", "build", "dist", "pi_dispatch.egg-info"}
_PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
#: Put together here, so that this file does not hold what it looks for.
_FORBIDDEN = {
    "a path of this checkout": re.escape(str(ROOT)) + r"(?![\w.-])",
    "a path beside this checkout": re.escape(str(ROOT.parent / "sha")) + "red",
    "a path above the project": re.escape("../sha") + "red",
    "a book's division": r"(?i)\bchap" + r"ters?\b",
    "an unfinished place": r"\bTO" + r"DO\b|\bFIX" + r"ME\b",
    "a registry's host": r"registry\.npm" + r"js\.org|\bpypi" + r"\.org|deb\.debian" + r"\.org",
}


def _files() -> Iterator[tuple[str, str]]:
    for folder, folders, names in os.walk(ROOT):
        folders[:] = [name for name in folders if name not in _OTHERS and (name[0] != "." or name == ".ci")]
        for name in names:
            path = Path(folder) / name
            try:
                yield path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8")
            except (UnicodeDecodeError, FileNotFoundError):
                continue


def _tests_outside_here() -> str:
    here = Path(__file__).parent
    return "\n".join(
        path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("*.py") if here not in path.parents
    )


@pytest.mark.parametrize("what", _FORBIDDEN)
def test_no_file_holds(what: str) -> None:
    pattern = re.compile(_FORBIDDEN[what])
    found = [f"{name}: {match[0]}" for name, text in _files() if (match := pattern.search(text)) is not None]
    assert not found, f"{what} stands in: {'; '.join(found)}"


def test_every_page_that_a_file_names_exists() -> None:
    named = {
        (page, name)
        for name, text in _files()
        if name.endswith((".py", ".cfg", ".js", ".sh", "Makefile", "Dockerfile"))
        and not name.startswith("tests/unit/docs")
        for page in re.findall(r"docs/[A-Za-z0-9/_-]+\.md", text)
    }
    assert len(named) > 20
    missing = {f"{name} names {page}" for page, name in named if not (ROOT / page).is_file()}
    assert not missing


@pytest.mark.parametrize(
    "reason", [*Reason, *RunnerReason], ids=lambda reason: f"{type(reason).__name__}.{reason.name}"
)
def test_every_reason_is_used_by_a_test(reason: Reason | RunnerReason) -> None:
    pattern = rf"(?<!\w){type(reason).__name__}\.{reason.name}\b|[\"']{re.escape(reason.value)}[\"']"
    assert re.search(pattern, _tests_outside_here()), f"no test ends with {reason.value}"


def test_every_log_event_is_on_its_page() -> None:
    page = (ROOT / "docs/reference/events.md").read_text()
    events = docs.package_events()
    assert events
    assert [event.name for event in events if f"| `{event.name}` |" not in page] == []


def test_every_line_of_the_runner_is_explained() -> None:
    page = (ROOT / "docs/reference/runner.md").read_text()
    lines = {call.name for call in docs_source.runner_lines(docs_source.RUNNER)}
    assert {"turn", "exit"} <= lines
    assert {name for name in lines if f"`{name}`" not in page} == set()


def test_every_reason_of_the_runner_is_explained() -> None:
    page = (ROOT / "docs/reference/runner.md").read_text()
    assert [reason.value for reason in RunnerReason if f"`{reason.value}`" not in page] == []


def test_every_key_of_the_record_is_explained_and_no_other() -> None:
    page = (ROOT / "docs/reference/record.md").read_text()
    job = LocalJob(id="local-0", folder=Path("/srv/site"), task="t")
    result = Result.begin(datetime(2030, 1, 1, tzinfo=UTC), "anthropic", "m")
    printed = set(as_document(Ended(RunRecord.of(job, result, "here"), result)))
    assert {str(field.alias) for field in RunRecord.model_fields.values()} <= printed
    rows = [line.split("|")[1] for line in page.splitlines() if line.startswith("| `")]
    assert {key for row in rows for key in re.findall(r"`(\w+)`", row)} == printed


def _slug(heading: str) -> str:
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


@pytest.mark.parametrize("page", _PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_link_leads_somewhere(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert text.startswith("# ")
    for target in re.findall(r"\]\(([^)]+)\)", text):
        if "://" in target:
            continue
        name, _, anchor = target.partition("#")
        linked = (page.parent / name).resolve() if name else page
        assert linked.is_file(), f"{target} is not there"
        if anchor:
            headings = re.findall(r"^#+ (.+)$", linked.read_text(encoding="utf-8"), re.MULTILINE)
            assert anchor in {_slug(heading) for heading in headings}, f"{target} has no such heading"


def test_every_page_is_in_the_index() -> None:
    index = (ROOT / "docs/README.md").read_text()
    pages = {path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")} - {"README.md"}
    assert {page for page in pages if f"({page})" not in index} == set()


def _commands(text: str) -> Iterator[list[str]]:
    """What is shown to be typed: lines of shell blocks, and code inside of sentences."""
    for block in re.findall(r"```sh\n(.*?)```", text, re.DOTALL):
        yield from (line.split("#")[0].split() for line in block.splitlines())
    for span in re.findall(r"`([^`\n]+)`", re.sub(r"```.*?```", "", text, flags=re.DOTALL)):
        yield span.split()


def _after(words: list[str], program: str) -> list[str] | None:
    while words and re.fullmatch(r"[A-Z_]+=\S*", words[0]):
        words = words[1:]
    return words[1:] if words[:1] == [program] else None


def _targets() -> set[str]:
    """What `make` can be asked for."""
    return set(re.findall(r"^([a-z][a-z-]*) *:(?!=)", (ROOT / "Makefile").read_text(), re.MULTILINE))


@pytest.mark.parametrize("page", _PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_commands_on_the_pages_exist(page: Path) -> None:
    targets = _targets()
    for words in _commands(page.read_text(encoding="utf-8")):
        if made := _after(words, "make"):
            assert made[0] in targets, f"make {made[0]} is no target"
        if (called := _after(words, "pi-dispatch")) and called != ["..."]:
            _check_call(called)


def _check_call(words: list[str]) -> None:
    command: click.Command = cli
    # A command keeps the help option of the first context that asks for it.
    context = click.Context(cli, info_name="pi-dispatch", **cli.context_settings)
    while isinstance(command, click.Group) and words and words[0][0] not in "-[":
        verb = command.get_command(context, words[0])
        assert verb is not None, f"{context.command_path} has no verb {words[0]}"
        context, command, words = click.Context(verb, info_name=words[0], parent=context), verb, words[1:]
    options = {name for option in command.get_params(context) for name in option.opts}
    for word in words:
        if word.startswith("--"):
            assert word.strip("[]") in options, f"{context.command_path} has no option {word}"


def test_the_readme_names_every_verb_and_what_make_offers() -> None:
    readme = (ROOT / "README.md").read_text()
    assert all(f"pi-dispatch {verb}" in readme for verb in VERBS)
    contributing = (ROOT / "CONTRIBUTING.md").read_text()
    assert {name for name in ("demo", "test") if f"make {name}" not in readme} == set()
    assert {name for name in ("test", "lint", "docs", "bench") if f"make {name}" not in contributing} == set()
