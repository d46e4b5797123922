"""A screened change is confirmed by a comparison of its versions, on the trials that changed."""

from __future__ import annotations

import pytest
from fake_releases import fake_measurements
from harness_trials import SilentObserver, make_trial

from rnnbench.history import Change
from rnnbench.pipeline import SideError, confirm
from rnnbench.pipeline.confirmation import requirements_of
from rnnbench.results import Store
from rnnbench.sampling import PairBudget

TRIALS = [make_trial(chunk=chunk) for chunk in (1, 2, 4)]


def change(**changes):
    content = {
        "machine": "abc",
        "level": "trial",
        "subject": TRIALS[1].id,
        "backend": "fake",
        "measure": "bound",
        "run": "new",
        "night": "2026-01-02",
        "last_run": "old",
        "versions": ("rnnbench-fake 1.0", "rnnbench-fake 1.1"),
        "ratio": 1.06,
        "interval": (1.05, 1.07),
        "cause": "program",
        "reason": "",
        "together": (),
        **changes,
    }
    return Change(**content)


@pytest.fixture
def confirmed(tmp_path, monkeypatch):
    def run(asked, latencies=None):
        fake_measurements(monkeypatch, latencies or {"1.0": 1.0, "1.1": 1.05})
        return confirm(asked, TRIALS, PairBudget(60, 0.03), Store(tmp_path), tmp_path, SilentObserver())

    return run


def test_the_trial_that_changed_has_a_verdict_and_an_interval(confirmed):
    found = confirmed(change())
    assert found.confirmed
    assert found.environments == ("rnnbench-fake==1.0", "rnnbench-fake==1.1")
    ((trial, judged),) = found.verdicts.items()
    assert (trial, judged.verdict) == (TRIALS[1].id, "SLOWER")
    assert judged.interval[0] < 1.05 < judged.interval[1]


def test_of_a_backend_the_trials_that_moved_together_are_compared(confirmed):
    together = (TRIALS[0].id, TRIALS[2].id)
    found = confirmed(change(level="backend", subject="fake", together=together))
    assert tuple(found.verdicts) == together


@pytest.mark.parametrize(
    "latencies", [{"1.0": 1.0, "1.1": 1.0}, {"1.0": 1.0, "1.1": 0.9}, {"1.0": 1.0, "1.1": "crashed"}]
)
def test_the_same_the_opposite_and_a_failure_confirm_nothing(confirmed, latencies):
    assert not confirmed(change(), latencies).confirmed


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"measure": "build"}, "build: only latencies are compared in turn"),
        ({"versions": ("rnnbench-fake 1.0",) * 2}, "its versions did not change"),
        ({"subject": "elsewhere"}, "none of the trials given is this one"),
    ],
)
def test_what_cannot_be_confirmed_is_refused_with_the_reason(confirmed, changes, message):
    with pytest.raises(SideError, match=message):
        confirmed(change(**changes))


def test_versions_of_a_row_become_requirements():
    assert requirements_of("onnx 1.20.0, onnxruntime 1.24.1") == "onnx==1.20.0 onnxruntime==1.24.1"
