"""Which newest versions have to be judged, and by which jobs."""

from __future__ import annotations

import pytest

from rnnbench.night import builds
from rnnbench.night.builds import ALL, VersionSearch, checks_of, has_changed, is_new, jobs_of, newest_of
from rnnbench.night.state import BackendNight, Build, Good, Held, State
from rnnbench.pipeline import Release, SideError

GOOD = {"fake": Good(version="1.1", requirements="rnnbench-fake==1.1", since="2026-01-01")}


def build(version: str) -> Build:
    return Build(version=version, requirements=f"rnnbench-fake=={version}")


def held(version: str, *alerts: str) -> State:
    return State(good=GOOD, held={"fake": Held(version=version, alerts=alerts)})


@pytest.mark.parametrize(
    ("version", "state", "new"),
    [
        ("1.2", State(), True),
        ("1.1", State(good=GOOD), False),
        ("1.2", State(good=GOOD), True),
        ("1.0", State(good=GOOD), True),
        ("1.2", held("1.2", "an-alert"), False),
        ("1.2", held("1.2"), True),
        ("1.3", held("1.2", "an-alert"), True),
    ],
    ids=["first", "good", "later", "earlier", "held back", "held back by nothing", "later than what is held back"],
)
def test_a_version_is_judged_unless_it_is_good_or_held_back_by_an_alert(version: str, state: State, new: bool) -> None:
    assert is_new("fake", build(version), state) == new
    assert has_changed("fake", build(version), state) == (new and bool(state.good))
    assert not is_new("fake", None, state)


@pytest.mark.parametrize(
    ("pre", "counts"), [((), False), (("another",), False), (("fake",), True), ((ALL,), True)], ids=str
)
def test_pre_releases_count_for_a_backend_and_for_all(
    monkeypatch: pytest.MonkeyPatch, pre: tuple[str, ...], counts: bool
) -> None:
    asked = []

    def newest_release(package: str, *, pre: bool) -> Release:
        asked.append(pre)
        return Release(package, "1.2")

    monkeypatch.setattr(builds, "released_package", lambda backend: "rnnbench-fake")
    monkeypatch.setattr(builds, "newest_release", newest_release)
    assert newest_of(["fake"], VersionSearch(pre=frozenset(pre)))["fake"].newest == build("1.2")
    assert asked == [counts]


def test_an_index_that_does_not_answer_is_a_problem_of_the_package_that_was_asked_for(monkeypatch) -> None:
    def fails(package: str, *, pre: bool) -> Release:
        raise SideError("the index does not answer")

    monkeypatch.setattr(builds, "released_package", lambda backend: "rnnbench-fake")
    monkeypatch.setattr(builds, "newest_release", fails)
    found = newest_of(["fake"], VersionSearch())["fake"]
    assert found == BackendNight(package="rnnbench-fake", problem="the index does not answer")


def test_the_baseline_has_no_newest_version_since_its_trials_are_anchors(monkeypatch) -> None:
    monkeypatch.setattr(builds, "released_package", lambda backend: pytest.fail("nobody asks for it"))
    assert newest_of(["numpy"], VersionSearch()) == {"numpy": BackendNight()}


def test_a_changed_backend_has_a_job_and_the_others_with_a_package_share_one() -> None:
    nights = {
        "fake": BackendNight(package="rnnbench-fake", newest=build("1.2")),
        "same": BackendNight(package="same", newest=build("1.1")),
        "unknown": BackendNight(package="unknown", problem="the index does not answer"),
        "baseline": BackendNight(),
    }
    state = State(good={**GOOD, "same": GOOD["fake"]})
    assert jobs_of(nights, state) == [
        {"name": "fake", "backends": "fake"},
        {"name": "unchanged", "backends": "same,unknown"},
    ]
    assert checks_of(nights, state) == [{"backend": "fake", "requirements": "rnnbench-fake==1.2"}]
    assert jobs_of({"fake": nights["fake"]}, state) == [{"name": "fake", "backends": "fake"}]
    assert checks_of({"baseline": BackendNight(newest=build("1.2"))}, State()) == []
