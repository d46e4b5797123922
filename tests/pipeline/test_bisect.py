"""A bisection asks for few releases, finds the first bad one, and says where it cannot know it."""

from __future__ import annotations

import fake_records as fake
import pytest
from fake_releases import PACKAGE, fake_measurements
from harness_trials import SilentObserver, make_trial
from hypothesis import given
from hypothesis import strategies as st

from rnnbench.pipeline import (
    LatencyJudge,
    NotNowError,
    OutcomeJudge,
    Release,
    SideError,
    Step,
    Steps,
    bisect,
    bisect_releases,
)
from rnnbench.results import CheckResult, Store
from rnnbench.sampling import PairBudget

RELEASES = [Release(PACKAGE, f"1.{number}") for number in range(16)]


class Planned:
    """A judge that knows the first bad release, and releases that it cannot judge."""

    def __init__(self, first_bad, skipped=()):
        self.first_bad, self.skipped, self.asked = first_bad, set(skipped), []

    def check_ends(self, good, bad):
        return ()

    def judge(self, release):
        number = RELEASES.index(release)
        self.asked.append(number)
        state = "skipped" if number in self.skipped else "bad" if number >= self.first_bad else "good"
        return Step(release, state, "planned", "")


@given(st.integers(1, 15), st.sets(st.integers(1, 14)))
def test_the_first_bad_release_is_among_the_suspects_and_the_others_were_skipped(first_bad, skipped):
    judge = Planned(first_bad, skipped)
    found = bisect_releases(RELEASES, judge, lambda step: None)
    suspects = [RELEASES.index(release) for release in found.suspects]
    assert first_bad in suspects
    assert set(suspects[:-1]) <= skipped
    assert RELEASES.index(found.last_good) == suspects[0] - 1
    assert len(judge.asked) == len(set(judge.asked))


@pytest.mark.parametrize("first_bad", range(1, 16))
def test_a_bisection_of_sixteen_releases_takes_four_steps(first_bad):
    judge = Planned(first_bad)
    (suspect,) = bisect_releases(RELEASES, judge, lambda step: None).suspects
    assert RELEASES.index(suspect) == first_bad
    assert len(judge.asked) <= 4


@pytest.fixture
def judge(tmp_path):
    steps = Steps(make_trial(), Store(tmp_path), tmp_path / "environments", SilentObserver(), "tiny.yaml")
    return LatencyJudge(steps, PairBudget(60, 0.03), "bound")


def test_a_release_that_cannot_be_compared_is_skipped_with_the_reason(judge, monkeypatch):
    fake_measurements(monkeypatch, {"1.0": 1.0, "1.1": "nonconforming", "1.3": 1.05})
    told = []
    found = bisect_releases(RELEASES[:4], judge, told.append)
    assert [release.version for release in found.suspects] == ["1.1", "1.2", "1.3"]
    reasons = {step.release.version: (step.state, step.reason) for step in told}
    assert reasons["1.1"] == ("skipped", "it ends as nonconforming: planted")
    assert reasons["1.2"][0] == "skipped"
    assert "could not be made" in reasons["1.2"][1]


@pytest.mark.parametrize(
    ("latency", "pairs", "seen"),
    [
        (0.9, 6, r"FASTER, -10\.0 % \(-10\.2 % to -9\.8 %\);"),
        (1.1, 1, r"UNDECIDED, \+9\.9 %, of one pair of processes;"),
    ],
    ids=["faster", "one pair has no interval"],
)
def test_ends_that_do_not_differ_are_refused(judge, monkeypatch, latency, pairs, seen):
    fake_measurements(monkeypatch, {"1.0": 1.0, "1.3": latency}, pairs=pairs)
    with pytest.raises(SideError, match=rf"1\.3 is not slower than 1\.0: {seen}"):
        bisect_releases(RELEASES[:4], judge, lambda step: None)


def test_what_this_machine_cannot_install_now_ends_a_bisection_and_skips_no_release(judge, monkeypatch):
    fake_measurements(monkeypatch, {"1.0": 1.0, "1.3": 1.05})
    open_side = bisect.open_side

    def without_room(text, *others):
        if text.endswith("==1.1"):
            raise NotNowError("its disk is full")
        return open_side(text, *others)

    monkeypatch.setattr(bisect, "open_side", without_room)
    with pytest.raises(NotNowError, match="its disk is full"):
        bisect_releases(RELEASES[:4], judge, lambda step: None)


def records_of(monkeypatch, verdicts):
    """Releases whose check `memory` has these verdicts, by version."""

    def checked(self, release):
        result = CheckResult(verdict=verdicts[release.version])
        outcome = "nonconforming" if result.verdict == "fail" else "ok"
        record = fake.record(outcome=outcome).model_copy(update={"conformance": {"memory": result}})
        return record, "rnnbench check"

    monkeypatch.setattr(OutcomeJudge, "_check", checked)


@pytest.fixture
def outcome_judge(tmp_path):
    return OutcomeJudge(Steps(make_trial(), Store(tmp_path), tmp_path / "environments", SilentObserver(), "tiny.yaml"))


def test_a_release_in_which_the_failed_check_had_no_time_is_neither_good_nor_bad(outcome_judge, monkeypatch):
    records_of(monkeypatch, {"1.0": "pass", "1.1": "pass", "1.2": "too-short", "1.3": "fail"})
    told = []
    found = bisect_releases(RELEASES[:4], outcome_judge, told.append)
    assert [release.version for release in found.suspects] == ["1.2", "1.3"]
    (skipped,) = [step for step in told if step.state == "skipped"]
    assert "these checks did not run or were too short: memory" in skipped.reason


def test_a_good_release_in_which_the_failed_check_had_no_time_is_refused(outcome_judge, monkeypatch):
    records_of(monkeypatch, {"1.0": "too-short", "1.1": "fail"})
    with pytest.raises(SideError, match=r"1\.0 may not be good: ok, but .* too short: memory; give more time"):
        bisect_releases(RELEASES[:2], outcome_judge, lambda step: None)
