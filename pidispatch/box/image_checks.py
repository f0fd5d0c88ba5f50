"""Proves what a job image claims, on the engine that will run it.

Labels are claims and nothing on a job's path looks behind them, so an operator runs this once per image and host
(docs/reference/job-image.md). Each proof is a look from inside: a throw-away container, hardened like a job's, without
network and mounts.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from pidispatch.values import names
from pidispatch.values.errors import ConfigError
from pidispatch.values.forge import JobKind

if TYPE_CHECKING:
    from docker import DockerClient
    from docker.models.containers import Container
    from docker.models.images import Image

SENTINEL: Final = "pi-dispatch-guardrails-v1"
TOOLS: Final = ("bash", "fd", "git", "jq", "rg")
#: The command-line client that an image must hold to claim a forge.
FORGE_TOOLS: Final[Mapping[str, str]] = {"github": "gh", "gitlab": "glab", "forgejo": "tea"}
#: What the guardrails must say, in these words, for an image to claim `replicas`.
BRANCH_RULE: Final = "only the branch that the prompt names"
#: A user no image knows: what holds for it holds for every owner of a folder.
STRANGER: Final = 4242
#: Longest a look may take, in seconds; the agent's start takes one on a small machine.
PATIENCE_SECONDS: Final = 120

_DUMMY: Final = "pi-verify"
_RULES: Final = "/opt/pi-dispatch/HARD_RULES.md"
_PI: Final = "/app/node_modules/@earendil-works/pi-coding-agent/dist/bundle/cli.js"

_LOOK: Final = rf"""
echo "uid=$(id -u)"
for tool in "$@"; do if command -v "$tool" >/dev/null; then echo "tool=$tool"; fi; done
for place in /home/pi /home/pi/.pi /home/pi/.pi/agent; do
  echo "home=$place $(stat -c %a "$place" 2>/dev/null || echo missing)"
done
if grep -qs {SENTINEL} {_RULES}; then echo guardrails=yes; fi
if tr -s '[:space:]' ' ' 2>/dev/null < {_RULES} | grep -qF '{BRANCH_RULE}'; then echo branch=yes; fi
{{ find / /opt -maxdepth 0 \( ! -user 0 -o -perm /022 \)
  find /app /opt/pi-dispatch /entrypoint.sh ! -type l \( ! -user 0 -o -perm /022 \)
}} 2>&1 | head -n 3 | sed 's/^/open=/'
"""
#: How `gh` and git meet a job's token: none, and then one.
_GITHUB: Final = rf"""
unset GITHUB_TOKEN GH_TOKEN GH_HOST GH_ENTERPRISE_TOKEN GITHUB_ENTERPRISE_TOKEN GIT_ASKPASS SSH_ASKPASS
export GIT_TERMINAL_PROMPT=0
ask() {{ printf 'protocol=https\nhost=%s\n\n' "$1" | git credential fill 2>/dev/null | sed -n "s/^password=/$2=/p"; }}
echo "gh=$(gh --version 2>&1 | head -n 1)"
ask github.com unasked
export GITHUB_TOKEN={_DUMMY}
ask github.com answered
ask elsewhere.invalid elsewhere
"""
_START: Final = f"""
echo "pi=$(node {_PI} --version 2>&1 | head -n 1)"
exec /entrypoint.sh
"""


@dataclass(frozen=True, slots=True)
class Check:
    """One claim and whether it holds. `detail` says what was found, and what to do when it does not hold."""

    name: str
    ok: bool
    detail: str


@dataclass(frozen=True, slots=True)
class _Seen:
    """What a container printed and how it ended; no exit code: it never started or never ended."""

    code: int | None
    output: str
    trouble: str

    def values(self, key: str) -> list[str]:
        prefix = f"{key}="
        return [line.removeprefix(prefix) for line in self.output.splitlines() if line.startswith(prefix)]


def verify(client: "DockerClient", ref: str) -> list[Check]:
    """Every claim of the image `ref`, each proven or disproven; takes a few seconds.

    Raises `ConfigError` when the image is not on this engine, `InfraError` when the engine does not answer.
    """
    # Imported here: docker-py costs every start of the program a quarter of a second.
    from docker.errors import ImageNotFound

    from pidispatch.box import faults

    try:
        image = client.images.get(ref)
        return _checks(client, image)
    except ImageNotFound:
        raise ConfigError(
            f"There is no image {ref} on this engine, and jobs never pull one. Build it (pi-dispatch image build) "
            f"or fetch it (docker pull {ref}).",
            cause="job-image-missing",
        ) from None
    except faults.ENGINE_FAULTS as error:
        raise faults.fault(f"the container engine could not verify {ref}", error) from error


def _checks(client: "DockerClient", image: "Image") -> list[Check]:
    labels = {str(key): str(value) for key, value in (image.labels or {}).items()}
    version = labels.get(names.LABEL_PI_VERSION, "").strip()
    look = _inside(client, image, _LOOK, [*TOOLS, *FORGE_TOOLS.values()], user=None)
    own = _inside(client, image, _START, [], user=None, home=names.IMAGE_UID)
    checks = [
        *_configuration(image.attrs.get("Config") or {}),
        *_contents(look),
        *[check for forge in _claims(labels, names.LABEL_FORGES) for check in _forge(client, image, forge, look)],
        _version(version, own, "pi"),
        _runner(own, "runner"),
    ]
    for capability in _claims(labels, names.LABEL_CAPABILITIES):
        checks += _capability(client, image, capability, version, look)
    return checks


def _capability(client: "DockerClient", image: "Image", capability: str, version: str, look: _Seen) -> list[Check]:
    if capability == names.CAPABILITY_ANY_UID:
        stranger = _inside(client, image, _START, [], user=STRANGER, home=STRANGER)
        return [
            _version(version, stranger, f"anyUid: pi as user {STRANGER}"),
            _runner(stranger, f"anyUid: runner as user {STRANGER}"),
        ]
    if capability == names.CAPABILITY_REPLICAS:
        says = bool(look.values("branch"))
        return [Check("replicas: guardrails", says, f"{_RULES} {'says' if says else 'does not say'}: {BRANCH_RULE}")]
    return [Check(f"capability {capability}", False, "claimed, but this version cannot prove it")]


def _claims(labels: Mapping[str, str], label: str) -> list[str]:
    return [claim.strip() for claim in labels.get(label, "").split(",") if claim.strip()]


def _configuration(config: Mapping[str, Any]) -> list[Check]:
    entrypoint, workdir = config.get("Entrypoint"), config.get("WorkingDir")
    home = [entry for entry in config.get("Env") or [] if str(entry).startswith("HOME=")]
    return [
        _equal("entrypoint", entrypoint, ["/entrypoint.sh"]),
        _equal("working folder", workdir, "/workspace"),
        Check("no ENV HOME", not home, f"take {home[0]} out" if home else "HOME follows the job's user"),
    ]


def _equal(name: str, found: object, due: object) -> Check:
    return Check(name, found == due, f"{found}" if found == due else f"{found or 'none'} where {due} is due")


def _contents(look: _Seen) -> list[Check]:
    if not look.values("uid"):
        return [Check("look inside", False, look.trouble or "the image has no /bin/sh that runs")]
    uid = look.values("uid")[0]
    missing = sorted(set(TOOLS) - set(look.values("tool")))
    homes = [place for place in look.values("home") if not place.endswith(" 777")]
    return [
        _equal("user", f"uid {uid}", f"uid {names.IMAGE_UID}"),
        Check("tools", not missing, f"missing: {', '.join(missing)}" if missing else ", ".join(TOOLS)),
        Check("home folders", not homes, f"not open to every user: {', '.join(homes)}" if homes else "0777"),
        Check(
            "program files",
            not look.values("open"),
            f"not there, or not root's alone to write: {'; '.join(look.values('open'))}"
            if look.values("open")
            else "root's, and nobody else can write them",
        ),
        Check(
            "guardrails",
            bool(look.values("guardrails")),
            f"{_RULES} {'carries' if look.values('guardrails') else 'lacks'} {SENTINEL}",
        ),
    ]


def _forge(client: "DockerClient", image: "Image", forge: str, look: _Seen) -> list[Check]:
    tool = FORGE_TOOLS.get(forge)
    if tool is None:
        return [Check(f"forge {forge}", False, f"unknown; this version knows {', '.join(FORGE_TOOLS)}")]
    if tool not in look.values("tool"):
        return [Check(f"forge {forge}", False, f"{tool} is missing")]
    if forge != JobKind.GITHUB:
        return [Check(f"forge {forge}", True, f"{tool} is there")]
    return _github(_inside(client, image, _GITHUB, [], user=None, home=names.IMAGE_UID))


def _github(seen: _Seen) -> list[Check]:
    said = next(iter(seen.values("gh")), "") or seen.trouble
    wrong = [
        words
        for words, holds in (
            ("hands github.com no token", seen.values("answered") == [_DUMMY]),
            ("answers github.com without a token", not seen.values("unasked")),
            ("hands the token to another host", not seen.values("elsewhere")),
        )
        if not holds
    ]
    good = "hands a job's token to github.com over https, and is silent without one"
    return [
        Check("forge github", said.startswith("gh version "), said or "gh says nothing"),
        Check("forge github: credential of git", not wrong, f"git {', '.join(wrong)}" if wrong else f"git {good}"),
    ]


def _version(claimed: str, seen: _Seen, name: str) -> Check:
    found = seen.values("pi")[0] if seen.values("pi") else seen.trouble or "did not start"
    if not claimed:
        return Check(name, found[:1].isdigit(), f"{found} (the image claims no version, so no job resumes)")
    return Check(name, found == claimed, found if found == claimed else f"claimed {claimed}, found {found}")


def _runner(seen: _Seen, name: str) -> Check:
    """Started without a configuration, the runner must refuse: exit code 2 and one exit line, its last."""
    if seen.code is None:
        return Check(name, False, seen.trouble)
    events = [event for event in map(_event, seen.output.splitlines()) if event]
    exits = events.count("exit")
    if seen.code == 2 and exits == 1 and events[-1] == "exit":
        return Check(name, True, "starts, and refuses to run without a configuration")
    found = f"exit code {seen.code} and {exits} exit lines where 2 and one, the last, were due"
    return Check(name, False, f"{found}; {seen.trouble}" if seen.trouble else found)


def _event(line: str) -> str | None:
    if not line.startswith('{"event"'):
        return None
    try:
        return str(json.loads(line)["event"])
    except (ValueError, KeyError):
        return None


def _inside(
    client: "DockerClient",
    image: "Image",
    script: str,
    arguments: Sequence[str],
    *,
    user: int | None,
    home: int | None = None,
) -> _Seen:
    """Runs a shell script in a container of `image`. With `home` (a uid) /home/pi is that user's own, as in a job."""
    tmpfs = {"/tmp": "size=64m,mode=1777"}
    environment = {"PI_OFFLINE": "1", "PI_JOB_ID": "pi-verify"}
    if home is not None:
        tmpfs[names.BOX_HOME] = f"size=64m,mode=0777,uid={home},gid={home}"
    options: dict[str, Any] = {}
    if user is not None:
        options["user"] = f"{user}:{user}"
        environment["HOME"] = names.BOX_HOME
    container = client.containers.create(
        image,
        entrypoint=["/bin/sh", "-c", script, "sh"],
        command=list(arguments),
        environment=environment,
        network_mode="none",
        read_only=True,
        tmpfs=tmpfs,
        cap_drop=["ALL"],
        security_opt=["no-new-privileges"],
        pids_limit=512,
        mem_limit="1g",
        init=True,
        use_config_proxy=False,
        **options,
    )
    try:
        return _watch(container)
    finally:
        container.remove(force=True)


def _watch(container: "Container") -> _Seen:
    from docker.errors import APIError
    from requests.exceptions import ConnectionError as NoAnswer
    from requests.exceptions import ReadTimeout

    try:
        container.start()
    except APIError as error:
        return _Seen(None, "", f"does not start: {error.explanation}")
    try:
        code = int(container.wait(timeout=PATIENCE_SECONDS)["StatusCode"])
    except (ReadTimeout, NoAnswer):
        return _Seen(None, _logs(container, stdout=True), f"did not end within {PATIENCE_SECONDS} s")
    return _Seen(code, _logs(container, stdout=True), _logs(container, stderr=True).strip()[-300:])


def _logs(container: "Container", *, stdout: bool = False, stderr: bool = False) -> str:
    return container.logs(stdout=stdout, stderr=stderr).decode(errors="replace")
