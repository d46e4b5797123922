"""Checks of magnitudes share runs of the reference with other trials of the model."""

from __future__ import annotations

from dataclasses import replace

import pytest
from harness_trials import make_trial
from honest_adapter import HonestSession
from verdicts import verdicts

from rnnbench.conformance import ReferenceTrajectories, magnitudes, suite


@pytest.mark.parametrize("batch", [1, 3])
def test_trials_with_other_chunks_and_states_use_the_same_files_rightly(tmp_path, monkeypatch, batch):
    monkeypatch.setattr(suite, "CHECKS", magnitudes.MAGNITUDE_CHECKS)
    for state in ("stitched", "none"):
        for chunk in (1, 3, 4, 12):
            trial = replace(make_trial(state=state, chunk=chunk), batch=batch)
            found = {name: result.detail for name, result in verdicts(trial, HonestSession, tmp_path).items()}
            assert found == {"saturation": "", "denormals": "", "magnitudes": ""}


def test_trials_of_other_lengths_use_the_same_files_rightly(tmp_path, monkeypatch):
    monkeypatch.setattr(suite, "CHECKS", magnitudes.MAGNITUDE_CHECKS)
    for steps in (1, 2, 5, 8):
        trial = replace(make_trial(chunk=1), steps=steps)
        assert {result.detail for result in verdicts(trial, HonestSession, tmp_path).values()} == {""}


def test_no_step_is_coarser_than_those_whose_rounding_is_measured(tmp_path, monkeypatch):
    monkeypatch.setattr(magnitudes, "steps_measured", lambda model, steps: min(steps, 12))
    (scales,) = magnitudes._rising(1, 128, ReferenceTrajectories(make_trial(), tmp_path))
    assert scales.shape == (128,)
    assert set(scales[:12]) == set(magnitudes.MAGNITUDES)
    assert set(scales[11:]) == {magnitudes.HUGE}
