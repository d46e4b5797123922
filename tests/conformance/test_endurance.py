"""Long checks stop when their time is up, say how far they came, and take no allocator's lumps for a leak."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from harness_trials import make_trial
from rnnbench_fake import FakeBackend

from rnnbench.cases import Limits
from rnnbench.conformance import RING, ReferenceTrajectories, run_checks
from rnnbench.conformance import endurance as endurance_module
from rnnbench.conformance.endurance import CALLS, ENDURANCE, STEPS, WINDOWS, exact_after
from rnnbench.plan import request_of
from rnnbench.rnn import Model, run_reference

COUNTER = Model(cell="counter", input=3, hidden=3)


@pytest.fixture
def verdicts(tmp_path):
    def check(seconds, **trial):
        enduring = replace(make_trial(limits=Limits(endurance=seconds)), **trial)
        reference = ReferenceTrajectories(enduring, tmp_path)
        program = FakeBackend().build(request_of(enduring, reference.weights), tmp_path / "cache")
        return dict(run_checks(program, reference))

    return check


@pytest.mark.parametrize("model", [make_trial().model, COUNTER, Model(cell="rnn", input=1, hidden=1)], ids=str)
def test_an_honest_adapter_neither_drifts_nor_grows(verdicts, model):
    found = verdicts(0.3, model=model)
    assert found["drift"].verdict == found["memory"].verdict == "pass", found


def test_both_say_how_far_they_came_and_how_much_grew(verdicts):
    found = verdicts(0.1)
    drift, memory = found["drift"].figures, found["memory"].figures
    assert RING * 4 <= drift["steps"] <= STEPS
    assert f"{drift['steps']:,.0f} steps" in found["drift"].detail
    assert drift["growth"] > 0
    assert 0 < memory["calls"] <= CALLS
    assert f"{memory['calls']:,.0f}" in found["memory"].detail


def test_without_time_for_them_they_are_left_out(verdicts):
    assert not {"drift", "memory"} & set(verdicts(0.0))


@pytest.mark.parametrize("model", [make_trial().model, COUNTER], ids=lambda model: model.cell)
@pytest.mark.parametrize("calls", [1, 9, 16, 1003, 2500])
def test_what_is_expected_after_many_calls_is_what_the_reference_comes_to(tmp_path, model, calls):
    reference = ReferenceTrajectories(replace(make_trial(), model=model), tmp_path)
    x = np.concatenate([reference.ring[call % RING]["x"] for call in range(calls)])
    run = run_reference(model, reference.weights, x, reference.start)
    expected = exact_after(reference, calls)
    assert expected is not None
    np.testing.assert_allclose(expected["y"], run.y[-reference.trial.strategy.chunk :], atol=1e-11)
    for name, array in run.final.items():
        np.testing.assert_allclose(expected[name], array, atol=1e-11)


@pytest.mark.parametrize(
    ("kib_by_window", "verdict"),
    [
        ([0, 0, 0, 0], "pass"),
        ([1024, 0, 1024, 0], "pass"),
        ([4096, 512, 128, 16], "pass"),
        ([-64, 900, 900, 900], "pass"),
        ([100, 100, 100, 100], "fail"),
        ([300, 80, 200, 90], "fail"),
    ],
)
def test_only_memory_that_grows_in_every_window_is_lost(monkeypatch, tmp_path, kib_by_window, verdict):
    levels = [1 << 30]
    for grown in (*kib_by_window, *kib_by_window):
        levels.append(levels[-1] + (grown << 10))
    levels.insert(WINDOWS, levels[WINDOWS - 1])  # the second look begins where the first one ended
    measured = iter(levels)
    monkeypatch.setattr(endurance_module, "resident_in_use", lambda: next(measured))
    trial = make_trial(limits=Limits(endurance=0.01))
    reference = ReferenceTrajectories(trial, tmp_path)
    program = FakeBackend().build(request_of(trial, reference.weights), tmp_path / "cache")
    memory = next(check for check in ENDURANCE if check.name == "memory")
    assert memory.run(program.open, reference).verdict == verdict
