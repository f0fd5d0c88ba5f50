"""The Dockerfiles and lockfiles that ship, read as text: what is pinned, what is fetched, what is claimed."""

import json
import re
from pathlib import Path

import pytest

from pidispatch.box.image_checks import BRANCH_RULE, FORGE_TOOLS, SENTINEL, TOOLS
from pidispatch.image import CONTEXTS, Context, context_path
from pidispatch.values import names
from pidispatch.values.forge import JobKind

_BASE = context_path("base")
_JOB = context_path("job")
_TEST_NODE = Path(__file__).resolve().parents[2] / "image"
#: Debian package -> the command of the job image's contract that it brings.
_COMMANDS = {"bash": "bash", "fd-find": "fd", "git": "git", "jq": "jq", "ripgrep": "rg"}


def _instructions(context: Context) -> list[tuple[str, str]]:
    text = (context_path(context) / "Dockerfile").read_text()
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    logical = "\n".join(lines).replace("\\\n", " ").splitlines()
    return [(word.upper(), rest.strip()) for word, _, rest in (line.partition(" ") for line in logical)]


def _labels() -> dict[str, str]:
    arguments = dict(rest.split("=", 1) for word, rest in _instructions("job") if word == "ARG" and "=" in rest)
    [declared] = [rest for word, rest in _instructions("job") if word == "LABEL"]
    found = dict(re.findall(r'(\S+?)="([^"]*)"', declared))
    return {key: re.sub(r"\$\{(\w+)\}", lambda use: arguments[use[1]], value) for key, value in found.items()}


@pytest.mark.parametrize("context", CONTEXTS)
def test_dockerfile_fetches_nothing_by_url(context: Context) -> None:
    for word, rest in _instructions(context):
        assert word != "ADD", "ADD can fetch; COPY cannot"
        assert "://" not in rest


@pytest.mark.parametrize("context", CONTEXTS)
def test_dockerfile_names_no_moving_tag(context: Context) -> None:
    for word, rest in _instructions(context):
        if word == "FROM":
            assert rest == "${BASE}" or re.fullmatch(r"node:\d+\.\d+\.\d+-bookworm-slim", rest)
        assert "latest" not in rest


def test_job_image_takes_its_base_as_an_argument() -> None:
    assert _instructions("job")[:2] == [("ARG", "BASE"), ("FROM", "${BASE}")]


def test_job_image_needs_no_network() -> None:
    commands = " ".join(rest for word, rest in _instructions("job") if word == "RUN")
    assert commands
    assert not re.search(r"\b(apt|apt-get|npm|npx|pip|pip3|curl|wget|clone|fetch)\b", commands)


def test_job_image_ends_as_the_unprivileged_user_and_sets_no_home() -> None:
    instructions = _instructions("job")
    assert instructions[-1] == ("USER", f"{names.IMAGE_UID}:{names.IMAGE_UID}")
    assert ("ENTRYPOINT", '["/entrypoint.sh"]') in instructions
    assert ("WORKDIR", "/workspace") in instructions
    assert not any("HOME=" in rest for word, rest in instructions if word == "ENV")


def test_entrypoint_only_execs_the_runner() -> None:
    lines = (_JOB / "entrypoint.sh").read_text().splitlines()
    assert [line for line in lines if not line.startswith("#")] == ["exec /usr/bin/python3 -I /app/runner"]


def test_labels_claim_what_the_contexts_install() -> None:
    pinned = json.loads((_BASE / "package.json").read_text())["dependencies"]["@earendil-works/pi-coding-agent"]
    packages = (_BASE / "packages.txt").read_text().split()
    claimed = _labels()
    assert claimed.pop(names.LABEL_PI_VERSION) == pinned
    assert claimed.pop(names.LABEL_CAPABILITIES) == f"{names.CAPABILITY_ANY_UID},{names.CAPABILITY_REPLICAS}"
    forges = claimed.pop(names.LABEL_FORGES).split(",")
    assert forges == [JobKind.GITHUB]
    assert [forge for forge in forges if FORGE_TOOLS[forge] not in packages] == []
    assert claimed == {}


def test_base_installs_every_tool_of_the_contract() -> None:
    packages = (_BASE / "packages.txt").read_text().split()
    assert packages == sorted(set(packages))
    assert {_COMMANDS[package] for package in packages if package in _COMMANDS} == set(TOOLS)
    assert {"ca-certificates", "python3"} <= set(packages)


def test_guardrails_carry_the_sentinel_and_the_rule_of_branches() -> None:
    rules = " ".join((_JOB / "HARD_RULES.md").read_text().split())
    assert SENTINEL in rules
    assert BRANCH_RULE in rules


def test_git_of_the_job_image_asks_the_helper_that_is_copied_there() -> None:
    told = " ".join(rest for word, rest in _instructions("job") if word == "RUN")
    [helper] = re.findall(r"git config --system credential\.helper (\S+)", told)
    copies = [rest.split() for word, rest in _instructions("job") if word == "COPY"]
    assert [f"{place}{name}" for *sources, place in copies for name in sources if place.endswith("/")].count(
        helper
    ) == 1


@pytest.mark.parametrize("folder", [_BASE, _TEST_NODE], ids=["base", "test-node"])
def test_npm_dependencies_are_exact_and_locked(folder: Path) -> None:
    manifest = json.loads((folder / "package.json").read_text())
    lock = json.loads((folder / "package-lock.json").read_text())
    declared = {**manifest.get("dependencies", {}), **manifest.get("optionalDependencies", {})}
    assert declared
    for name, version in declared.items():
        assert re.fullmatch(r"\d+\.\d+\.\d+", version)
        assert lock["packages"][f"node_modules/{name}"]["version"] == version
    assert all(entry.get("integrity", "").startswith("sha512-") for path, entry in lock["packages"].items() if path)


@pytest.mark.parametrize("folder", [_BASE, _TEST_NODE], ids=["base", "test-node"])
def test_lockfile_names_no_registry(folder: Path) -> None:
    lock = json.loads((folder / "package-lock.json").read_text())
    assert [path for path, entry in lock["packages"].items() if "resolved" in entry] == []
    links = [line for line in (folder / "package-lock.json").read_text().splitlines() if "://" in line]
    assert [line for line in links if not line.strip().startswith('"url":')] == [], "only funding links remain"
    assert "omit-lockfile-registry-resolved=true" in (folder / ".npmrc").read_text().splitlines()


def test_node_of_the_base_and_of_the_tests_are_the_same() -> None:
    [tag] = [rest for word, rest in _instructions("base") if word == "FROM"]
    versions = json.loads((_TEST_NODE / "package.json").read_text())["optionalDependencies"].values()
    assert {f"node:{version}-bookworm-slim" for version in versions} == {tag}
