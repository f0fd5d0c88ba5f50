"""What `check` says of the rules of the triggers file: one-shots, forges that nothing hears, the webhook's secret."""

import json
from pathlib import Path

import pytest

from pidispatch.cli.checks import boxed, files, rules
from pidispatch.cli.checks.row import Told, passed
from pidispatch.cli.checks.scene import Scene
from pidispatch.cli.heard import unheard_rules
from pidispatch.values.forge import JobKind
from tests.support.oneshots import marked, write
from tests.support.oneshots import rule as one_shot
from tests.unit.triggers.entries import ABSENT, entry, rule


@pytest.fixture
def scene(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Scene:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/no-engine.sock")
    monkeypatch.setenv("VALKEY_URL", f"unix://{tmp_path}/no-server.sock")
    monkeypatch.delenv("PI_TRIGGERS_FILE", raising=False)
    monkeypatch.delenv("WEBHOOK_SECRET", raising=False)
    monkeypatch.chdir(tmp_path)
    return Scene(30)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "triggers.json"


def test_without_a_file_or_rules_nothing_is_said(scene: Scene, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    looks = (rules.uses, rules.one_shots, rules.forges, rules.webhooks, boxed.named_images)
    for look in looks:
        with pytest.raises(Told):
            list(look(scene))
    assert list(files.triggers(scene)) == []
    monkeypatch.setenv("PI_TRIGGERS_FILE", str(write(path, entry())))
    for look in looks:
        assert list(look(scene)) == []


def test_what_the_entries_make_use_of_is_told(scene: Scene, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PI_TRIGGERS_FILE", str(path))
    write(path, entry(run={"image": "own:1"}))
    assert list(rules.uses(scene)) == [passed("images: own:1")]
    write(
        path,
        entry(run={"image": "own:1"}),
        rule(run={"replicas": 2, "instructions": "words of the operator", "skillsDir": "/srv/skills"}),
        rule(run={"replicas": 3, "image": "other:1"}),
        rule("gitlab", run={"command": "wf secret words", "flow": ABSENT, "image": "own:1"}),
        marked(one_shot(flow="x", instructions="more", image="third:1")),
    )
    assert list(rules.uses(Scene(30))) == [
        passed(
            "2 with replicas; 2 with instructions; 1 with a command; images: own:1, other:1, third:1; folders of "
            "skills: /srv/skills"
        )
    ]
    write(path, *(rule(run={"image": f"own:{number}"}) for number in range(25)))
    [found] = rules.uses(Scene(30))
    assert found.found.endswith(", own:19 and 5 more")


def test_images_are_looked_for_where_an_entry_can_start_jobs(
    scene: Scene, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(
        path,
        entry(run={"image": "own:1"}),
        rule(run={"image": "other:1"}),
        rule(trigger="comment", run={"image": "own:1"}),
        rule("gitlab", run={"image": "unheard:1"}),
        marked(one_shot(flow="x", image="spent:1")),
        one_shot(41, flow="x", image="other:1"),
    )
    monkeypatch.setenv("PI_TRIGGERS_FILE", str(path))
    local, github = JobKind.LOCAL, JobKind.GITHUB
    assert rules.images_of(scene) == {"own:1": [(0, local), (2, github)], "other:1": [(1, github), (5, github)]}
    # There is no engine here, which has a row of its own.
    with pytest.raises(Told):
        list(boxed.named_images(scene))
    monkeypatch.delenv("PI_TRIGGERS_FILE")
    assert rules.images_of(scene) == {"other:1": [(1, github), (5, github)], "own:1": [(2, github)]}


def test_one_shots_are_armed_or_spent(scene: Scene, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(path, one_shot(), rule(), marked(one_shot(41)), one_shot(42))
    monkeypatch.setenv("PI_TRIGGERS_FILE", str(path))
    assert list(rules.one_shots(scene)) == [
        passed("triggers 0, 3 fire once and are armed"),
        passed("triggers 2 have fired and match nothing; pi-dispatch triggers rearm INDEX arms one again"),
    ]
    [row] = files.look_into([path])
    assert (row.status, row.found) == ("pass", f"{path} is good; triggers: 4 (firing once: 2 armed, 1 spent)")
    monkeypatch.delenv("PI_TRIGGERS_FILE")
    armed, spent = rules.one_shots(scene)
    assert (armed.status, spent.status) == ("warn", "pass")
    assert f"triggers 0, 3 of {path} fire once and are armed, and PI_TRIGGERS_FILE is not set" in armed.found
    # A spent one alone needs no file of a worker's.
    write(path, marked(one_shot()))
    assert [one.status for one in rules.one_shots(Scene(30))] == ["pass"]


def test_rules_of_a_forge_that_nothing_hears(scene: Scene, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spent = marked({"on": {**one_shot()["on"], "action": ["close"]}, "run": {"kind": "gitlab", "flow": "x"}})
    write(path, rule("gitlab"), rule(), rule("azure"), rule("gitlab", "comment"), spent)
    monkeypatch.setenv("PI_TRIGGERS_FILE", str(path))
    [found] = rules.forges(scene)
    assert found.status == "warn"
    assert found.found == (
        "triggers 0, 3 are about GitLab, triggers 2 are about Azure DevOps, which this version does not hear: they "
        "cannot fire"
    )
    [row] = files.look_into([path])
    assert (row.status, row.found.endswith(found.found)) == ("warn", True)
    assert unheard_rules() == {"gitlab": [0, 3], "azure": [2]}


def test_a_secret_is_looked_for_where_a_rule_is_about_github(
    scene: Scene, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(path, marked(one_shot()), rule("gitlab"))
    assert list(rules.webhooks(scene)) == []
    write(path, marked(one_shot()), rule())
    [found] = rules.webhooks(Scene(30))
    assert (found.status, "triggers 1 are about GitHub, and WEBHOOK_SECRET is not set" in found.found) == ("warn", True)
    monkeypatch.setenv("WEBHOOK_SECRET", "a private secret")
    assert list(rules.webhooks(Scene(30))) == [passed("WEBHOOK_SECRET is set")]


def test_the_file_of_the_current_folder_is_a_receivers_alone(scene: Scene, path: Path) -> None:
    write(path, entry(run={"folder": "/nowhere/at/all"}), rule())
    [found] = files.triggers(scene)
    assert (found.status, found.remedy) == ("pass", None)
    assert found.found == (
        f"{path} is good; triggers: 2; PI_TRIGGERS_FILE is not set: only a receiver that is started in this folder "
        "reads it"
    )
    path.write_text("{")
    [found] = files.triggers(scene)
    assert found.status == "warn"
    assert "is no JSON" in found.found
    for look in (rules.one_shots, rules.forges, rules.webhooks):
        with pytest.raises(Told):
            list(look(scene))


@pytest.mark.parametrize(
    "content",
    [
        *("", "{", "[]", "{}", '{"triggers": 1}', '{"triggers": [1, {}, {"on": {}}, {"on": [], "run": {}}]}'),
        '{"triggers": [{"on": {}, "run": {"kind": 7}}, {"on": {}, "run": {"kind": "bitbucket"}}]}',
        "[" * 100_000,
    ],
)
def test_a_look_at_the_queue_stumbles_over_no_file(content: str, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PI_TRIGGERS_FILE", str(path))
    assert unheard_rules() == {}
    path.write_text(content)
    assert unheard_rules() == {}
    path.write_text(json.dumps({"triggers": [rule("gitlab")]}))
    assert unheard_rules() == {"gitlab": [0]}
    monkeypatch.setenv("PI_TRIGGERS_FILE", "")
    assert unheard_rules() == {}
