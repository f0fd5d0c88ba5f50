"""The ladder: its order, where it stops, and the steps that need no engine."""

import json
import re
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from pidispatch.box.engine import EngineFacts, ImageFacts
from pidispatch.runs.ladder import LADDER, Step, climb
from pidispatch.runs.note import write_note
from pidispatch.runs.site import Site
from pidispatch.values.errors import ConfigError, InfraError
from pidispatch.values.outcome import Refused
from pidispatch.values.progress import CheckPassed
from pidispatch.values.reason import AbortReason, Reason
from pidispatch.values.verdict import Defer, Why
from pidispatch.workspace.folder import Folder
from pidispatch.workspace.jobdir import make_job_dir
from tests.support.repository import make_repository
from tests.unit.runs.place import Place, note_of

ROOT = Path(__file__).resolve().parents[3]
STEPS = {step.name: step for step in LADDER}
LATER = Defer(why=Why.SCOPE_BUSY, delay_ms=5000)


def passing(name: str, taken: list[str], result: str | Refused | Defer | None = "") -> Step:
    def take(_: Site) -> str | Refused | Defer | None:
        taken.append(name)
        return result

    return Step(name, take)


def test_the_order_is_the_documented_one() -> None:
    page = (ROOT / "docs" / "explanation" / "ladder.md").read_text()
    assert re.findall(r"^\| \d+ \| `(\w+)`", page, re.MULTILINE) == [step.name for step in LADDER]


def test_each_step_that_is_passed_is_told_and_one_that_does_not_apply_is_not(tmp_path: Path) -> None:
    place, taken = Place(tmp_path), list[str]()
    steps = (passing("a", taken, "detail"), passing("b", taken, None), passing("c", taken))

    assert climb(place.site, steps) is None
    assert taken == ["a", "b", "c"]
    assert place.told == [CheckPassed(name="a", detail="detail"), CheckPassed(name="c")]


@pytest.mark.parametrize("answer", [Refused(reason=Reason.JOB_IMAGE_MISSING), LATER])
def test_what_turns_a_job_away_ends_it(tmp_path: Path, answer: Refused | Defer) -> None:
    place, taken = Place(tmp_path), list[str]()

    assert climb(place.site, (passing("a", taken, answer), passing("b", taken))) is answer
    assert taken == ["a"]
    assert place.told == []


def test_an_abort_ends_it_between_two_steps(tmp_path: Path) -> None:
    place, taken = Place(tmp_path), list[str]()

    def abort(site: Site) -> str:
        site.abort.set(AbortReason.SHUTDOWN)
        return ""

    assert climb(place.site, (Step("a", abort), passing("b", taken))) is None
    assert taken == []


def test_a_record_must_have_a_place_before_anything_else(tmp_path: Path) -> None:
    (tmp_path / "logs").touch()
    with pytest.raises(InfraError) as caught:
        STEPS["records"].take(Place(tmp_path, PI_LOGS_DIR=str(tmp_path / "logs")).site)
    assert caught.value.cause == "logs-dir"
    assert LADDER[0].name == "records"


def test_a_folder_is_held_until_the_attempt_ends(tmp_path: Path) -> None:
    repository = make_repository(tmp_path / "site")
    state = str(tmp_path / "state")
    first, second = (Place(repository.path, PI_STATE_DIR=state) for _ in range(2))
    assert STEPS["folder"].take(first.site) == ""
    with capture_logs() as events:
        assert STEPS["folder"].take(second.site) == LATER
    told = {"event": "scope_busy_deferred", "jobId": "local-1", "kind": "local", "delayMs": 5000}
    assert events == [told | {"log_level": "info"}]
    first.site.cleanup.close()
    assert STEPS["folder"].take(second.site) == ""
    second.site.cleanup.close()


def test_a_lock_that_cannot_be_taken_is_a_fault_and_no_busy_folder(tmp_path: Path) -> None:
    repository = make_repository(tmp_path / "site")
    (tmp_path / "state" / "locks" / ".gate").mkdir(parents=True)
    with pytest.raises(InfraError) as caught:
        STEPS["folder"].take(Place(repository.path, PI_STATE_DIR=str(tmp_path / "state")).site)
    assert caught.value.cause == "folder-lock"


def test_a_folder_with_an_unsettled_run_takes_no_new_one(tmp_path: Path) -> None:
    repository, other = make_repository(tmp_path / "site"), make_repository(tmp_path / "other")
    variables = {"PI_STATE_DIR": str(tmp_path / "state"), "PI_JOBS_DIR": str(tmp_path / "jobs")}
    left = make_job_dir(tmp_path / "jobs", (1, 1))
    write_note(left.note, note_of(repository.path))
    place = Place(repository.path, None, **variables)
    with pytest.raises(InfraError, match="the run local-9 in 'site' was broken off and is not settled") as caught:
        STEPS["folder"].take(place.site)
    assert caught.value.cause == "unsettled"
    beside = Place(other.path, None, **variables)
    assert STEPS["folder"].take(beside.site) == ""
    for each in (place, beside):
        each.site.cleanup.close()


def test_an_image_for_forges_serves_local_jobs(tmp_path: Path) -> None:
    class OneImage:
        def image(self, _reference: str) -> ImageFacts:
            return ImageFacts(digest="sha256:1", capabilities=frozenset(), forges=frozenset({"github"}))

    place = Place(tmp_path)
    place.site.engine = OneImage()  # type: ignore[assignment]
    assert STEPS["image"].take(place.site) == "pi-job:latest"
    assert place.site.image.digest == "sha256:1"


def test_a_root_folder_is_refused_before_the_image_is_looked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class OneEngine:
        def facts(self) -> EngineFacts:
            return EngineFacts(
                here=True, readable=True, desktop=False, security_options=(), socket_uid=0, socket_gid=999
            )

    place = Place(tmp_path)
    place.site.connect = OneEngine  # type: ignore[assignment]
    place.site.folder = Folder(tmp_path, 0, 0)
    monkeypatch.setattr("os.geteuid", lambda: 0)
    found = STEPS["engine"].take(place.site)
    assert isinstance(found, Refused)
    assert (found.reason, found.cause) == (Reason.JOB_USER_UNMAPPABLE, "folder-owned-by-root")
    names = [step.name for step in LADDER]
    assert names.index("engine") < names.index("image") < names.index("user")


def auth(folder: Path, provider: str = "anthropic") -> str:
    (folder / "auth.json").write_text(json.dumps({provider: {"type": "api_key", "key": "sk-stored"}}))
    return str(folder)


def test_the_environments_key_goes_before_pis_own(tmp_path: Path) -> None:
    place = Place(tmp_path, {"ANTHROPIC_API_KEY": "sk-env"}, PI_CODING_AGENT_DIR=auth(tmp_path))
    assert STEPS["credential"].take(place.site) == "anthropic"
    assert place.site.stored == {}


def test_pis_own_key_is_taken_where_there_is_no_other(tmp_path: Path) -> None:
    place = Place(tmp_path, PI_CODING_AGENT_DIR=auth(tmp_path))
    assert STEPS["credential"].take(place.site) == "anthropic (pi's own key)"
    assert place.site.stored == {"ANTHROPIC_API_KEY": "sk-stored"}
    assert "sk-stored" not in repr(place.site)


@pytest.mark.parametrize("settings", [{"PI_AUTH_FROM_PI": "0"}, {"PI_PROVIDER": "openai"}])
def test_no_key_is_refused_with_what_to_export(tmp_path: Path, settings: dict[str, str]) -> None:
    place = Place(tmp_path, None, PI_CODING_AGENT_DIR=auth(tmp_path), **settings)
    found = STEPS["credential"].take(place.site)
    assert isinstance(found, Refused)
    assert found.reason is Reason.PROVIDER_UNCONFIGURED
    assert str(found.remedy).startswith("export ")


def test_a_forwarded_name_that_is_no_key_of_the_provider_is_none(tmp_path: Path) -> None:
    place = Place(tmp_path, {"MY_KEY": "k"}, PI_CODING_AGENT_DIR=str(tmp_path), PI_FORWARD_ENV="MY_KEY")
    assert isinstance(STEPS["credential"].take(place.site), Refused)


def test_an_open_network_asks_the_engine_nothing(tmp_path: Path) -> None:
    place = Place(tmp_path, PI_EGRESS="0")
    assert STEPS["egress"].take(place.site) is None
    assert place.site.neighbour is None


@pytest.mark.parametrize(
    "variable",
    ["PI_JOBS_DIR", "PI_STATE_DIR", "PI_LOGS_DIR", "PI_EGRESS_DIR", "PI_CODING_AGENT_DIR", "PI_GLOBAL_PI_DIR"],
)
@pytest.mark.parametrize("place", ["site/own", "site", "."])
def test_a_folder_that_meets_one_of_our_own_is_refused(tmp_path: Path, variable: str, place: str) -> None:
    repository = make_repository(tmp_path / "site")
    own = {name: str(tmp_path / "beside" / name) for name in ("PI_JOBS_DIR", "PI_STATE_DIR", "PI_LOGS_DIR")}
    (tmp_path / place).mkdir(exist_ok=True)
    site = Place(repository.path, None, **own | {variable: str(tmp_path / place)}).site
    with pytest.raises(ConfigError, match=f"'site' and {variable}=") as caught:
        STEPS["folder"].take(site)
    assert caught.value.cause == "folder-overlap"


def test_a_link_to_our_own_that_leads_elsewhere_now_is_followed_anew(tmp_path: Path) -> None:
    repository = make_repository(tmp_path / "site")
    own = {name: str(tmp_path / "beside" / name) for name in ("PI_STATE_DIR", "PI_LOGS_DIR")}
    link = tmp_path / "jobs"
    link.symlink_to(tmp_path / "beside")
    (tmp_path / "beside").mkdir()
    (repository.path / "own").mkdir()

    def taken() -> None:
        place = Place(repository.path, None, **own | {"PI_JOBS_DIR": str(link / "jobs")})
        STEPS["folder"].take(place.site)
        place.site.cleanup.close()

    (tmp_path / "beside" / "jobs").mkdir()
    taken()
    link.unlink()
    link.symlink_to(repository.path / "own")
    (repository.path / "own" / "jobs").mkdir()
    with pytest.raises(ConfigError, match="'site' and PI_JOBS_DIR="):
        taken()
