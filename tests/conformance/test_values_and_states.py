"""States are compared with the rounding that is expected after the steps that led to them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from harness_trials import make_trial
from honest_adapter import HonestSession
from verdicts import failures

from rnnbench.conformance import CHECKS, ReferenceTrajectories, suite
from rnnbench.conformance.tolerance import FACTOR
from rnnbench.conformance.values_and_states import MOST_PIECES, RANDOM_SPLITS, _splits
from rnnbench.rnn import Model

STEPS = 12


@pytest.mark.parametrize(("of_allowed", "accused"), [(0.5, set()), (1.5, {"values", "state"})])
def test_a_state_may_be_off_by_what_its_last_step_allows(references, monkeypatch, of_allowed, accused):
    """Errors of two units of this network grow fourfold with a step, so a step later more would be allowed."""
    growing = Model(cell="rnn", input=3, hidden=4, activation="relu", gain=8.0)
    trial = replace(make_trial(), model=growing, steps=STEPS)
    reference = ReferenceTrajectories(trial, references)
    allowed = FACTOR * reference.rounding_at(STEPS - 1, "h")
    grows = FACTOR * reference.rounding_at(STEPS, "h") > 3 * allowed
    assert grows.any()

    class OffAtTheEnd(HonestSession):
        fed = 0

        def compute(self, x):
            self.fed += len(x)
            return super().compute(x)

        def _read_state(self):
            off = of_allowed * allowed * grows if self.fed == STEPS else 0.0
            return {name: (array + off).astype(np.float32) for name, array in super()._read_state().items()}

    monkeypatch.setattr(suite, "CHECKS", [check for check in CHECKS if check.name in ("values", "state")])
    assert accused <= failures(trial, OffAtTheEnd, references).keys() <= {*accused, "state"}


@pytest.mark.parametrize("steps", [1, 2, 3, 12, 200])
def test_a_stream_is_split_in_known_ways_and_in_random_ones(steps):
    splits, chunk = list(_splits(steps, 4, 0)), 4
    assert splits[0] == [steps]
    assert all(min(sizes) >= 1 and sum(sizes) <= steps for sizes in splits)
    assert steps <= chunk + 1 or any(set(sizes[:-1]) == {chunk + 1} for sizes in splits)
    drawn = splits[-RANDOM_SPLITS:] if steps > 1 else []
    assert all(sum(sizes) == steps and 2 <= len(sizes) <= MOST_PIECES for sizes in drawn)
    assert steps < 200 or drawn != list(_splits(steps, chunk, 1))[-RANDOM_SPLITS:]
