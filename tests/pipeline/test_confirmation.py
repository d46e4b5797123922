"""An alert is confirmed by a comparison of the versions before and after it, on trials of it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from fake_releases import fake_measurements
from harness_trials import SilentObserver, make_trial

from rnnbench.history import Detection
from rnnbench.pipeline import SideError, confirm, confirmation
from rnnbench.pipeline.confirmation import Confirmation, requirements_of, smallest_change, trials_of_alert
from rnnbench.results import Judgement, Store

TRIALS = [make_trial(chunk=chunk) for chunk in (1, 2, 4)]


def alert(**changes):
    content = {
        "machine": "abc",
        "backend": "fake",
        "what": "bound",
        "evidence": "candidate",
        "night": "2026-01-02T02:00:00",
        "run": "new",
        "versions": ("rnnbench-fake 1.0", "rnnbench-fake 1.1"),
        "ratio": 1.06,
        "interval": (1.05, 1.07),
        "members": (TRIALS[1].id,),
        **changes,
    }
    return Detection(**content)


@pytest.fixture
def confirmed(tmp_path, monkeypatch):
    def run(found, latencies=None):
        fake_measurements(monkeypatch, latencies or {"1.0": 1.0, "1.1": 1.05})
        return confirm(found, TRIALS, 60, Store(tmp_path), tmp_path, SilentObserver())

    return run


def test_the_trial_that_changed_has_a_verdict_and_an_interval(confirmed):
    done = confirmed(alert())
    assert done.answer == "confirmed"
    assert done.environments == ("rnnbench-fake==1.0", "rnnbench-fake==1.1")
    assert {trial: judged.verdict for trial, judged in done.verdicts.items()} == {TRIALS[1].id: "SLOWER"}
    measured = done.measured("2026-01-03")
    assert measured.interval[0] < measured.ratio == 1.05 < measured.interval[1]
    assert measured.versions == ("rnnbench-fake 1.0", "rnnbench-fake 1.1")


def test_of_a_backend_several_members_are_compared_and_no_other_trial(confirmed):
    members = (TRIALS[0].id, TRIALS[2].id)
    assert tuple(confirmed(alert(whole_backend=True, members=members)).verdicts) == members


def test_of_many_members_five_are_compared_from_first_to_last():
    many = [make_trial(chunk=chunk) for chunk in range(1, 41)]
    picked = trials_of_alert(alert(members=tuple(trial.id for trial in many)), many)
    assert picked == [many[k] for k in (4, 12, 20, 28, 36)]


@pytest.mark.parametrize(
    ("latencies", "answer"),
    [
        ({"1.0": 1.0, "1.1": 1.0}, "refuted"),
        ({"1.0": 1.0, "1.1": 0.9}, "refuted"),
        ({"1.0": 1.0, "1.1": "crashed"}, "undecided"),
    ],
)
def test_the_same_and_the_opposite_refute_and_a_failure_decides_nothing(confirmed, latencies, answer):
    assert confirmed(alert(), latencies).answer == answer


@pytest.mark.parametrize(
    ("verdicts", "answer"),
    [
        (("SLOWER", "SLOWER", "SAME"), "confirmed"),
        (("SLOWER", "SAME", "FASTER"), "refuted"),
        (("SLOWER", "SAME"), "undecided"),
        (("SLOWER", "UNDECIDED"), "undecided"),
    ],
)
def test_more_than_half_of_the_trials_decide(verdicts, answer, tmp_path):
    judged = {str(k): Judgement(1.0, (0.9, 1.1), verdict, 6) for k, verdict in enumerate(verdicts)}
    assert Confirmation(alert(), judged, ("", ""), (tmp_path, tmp_path)).answer == answer


def test_a_fall_is_confirmed_by_what_is_faster(confirmed):
    fall = alert(ratio=0.94, interval=(0.93, 0.95))
    assert confirmed(fall, {"1.0": 1.0, "1.1": 0.9}).answer == "confirmed"


def test_the_trial_with_the_median_ratio_stands_for_all(tmp_path):
    judged = {str(k): Judgement(k, (k - 0.01, k + 0.01), "SLOWER", 6) for k in (1.05, 1.5, 1.02)}
    assert Confirmation(alert(), judged, ("", ""), (tmp_path, tmp_path)).measured("2026-01-03").ratio == 1.05


def test_an_alert_is_confirmed_on_its_own_latency_path(monkeypatch, tmp_path):
    fake_measurements(monkeypatch, {"1.0": 1.0, "1.1": 1.05})
    compare = confirmation.compare_sides

    def of_both_paths(*given, **named):
        found = compare(*given, **named)
        public = (replace(c, path="public", judged=replace(c.judged, verdict="SAME")) for c in found.latencies)
        return replace(found, latencies=(*found.latencies, *public))

    monkeypatch.setattr(confirmation, "compare_sides", of_both_paths)
    answers = [
        confirm(alert(what=path), TRIALS, 60, Store(tmp_path / path), tmp_path, SilentObserver()).answer
        for path in ("bound", "public")
    ]
    assert answers == ["confirmed", "refuted"]


def test_a_small_change_is_looked_for_with_a_small_threshold():
    sizes = [smallest_change(alert(ratio=ratio)) for ratio in (1.5, 1.02, 0.98, 1.001)]
    assert sizes == pytest.approx([0.03, 0.0099, 0.0101, 0.005], abs=1e-4)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"what": "build"}, "it is about build; only latencies are compared in turn"),
        ({"versions": ("fakepackage", "fakepackage 2")}, "expected packages with their versions"),
        ({"versions": ("rnnbench-fake 1.0",) * 2}, "its versions did not change"),
        ({"members": ("elsewhere",)}, "none of the trials of these cases is one of its trials"),
    ],
)
def test_what_cannot_be_confirmed_is_refused_with_the_reason(confirmed, changes, message):
    with pytest.raises(SideError, match=message):
        confirmed(alert(**changes))


def test_versions_of_a_row_become_requirements():
    assert requirements_of("onnx 1.20.0, onnxruntime 1.24.1") == "onnx==1.20.0 onnxruntime==1.24.1"
