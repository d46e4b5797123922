"""The oracle's trajectories are the reference's, worked out once for all trials that ask the same."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from harness_trials import make_trial

from rnnbench.conformance import oracle as module
from rnnbench.conformance.oracle import PASSES, RING, Oracle
from rnnbench.rnn.reference import run_reference
from rnnbench.rnn.spec import Model


@pytest.fixture
def oracle(tmp_path):
    return Oracle(make_trial(chunk=4), tmp_path)


def test_the_two_streams_are_the_references_own(oracle):
    model, weights = oracle.trial.model, oracle.weights
    for got, state in ((oracle.from_zeros(), None), (oracle.from_start(), oracle.start)):
        expected = run_reference(model, weights, oracle.x, state)
        np.testing.assert_allclose(got.y, expected.y, rtol=0, atol=1e-14)
        for name, array in expected.final.items():
            np.testing.assert_allclose(got.final[name], array, rtol=0, atol=1e-14)
            np.testing.assert_allclose(got.states[name], expected.states[name], rtol=0, atol=1e-14)


def test_the_ring_is_followed_past_its_end(oracle):
    x = np.concatenate([chunk["x"] for chunk in oracle.ring] * PASSES)
    expected = run_reference(oracle.trial.model, oracle.weights, x, oracle.start)
    ring = oracle.of_ring
    assert len(ring.y) == PASSES * RING
    np.testing.assert_allclose(np.concatenate(list(ring.y)), expected.y, rtol=0, atol=1e-13)
    np.testing.assert_allclose(ring.states["h"], expected.states["h"][3::4], rtol=0, atol=1e-13)


def test_a_settled_ring_is_where_any_number_of_calls_leads(oracle):
    calls = oracle.of_ring.settled_after + 5
    assert calls > 5, "an LSTM with such weights forgets"
    x = np.concatenate([oracle.ring[index % RING]["x"] for index in range(calls)])
    expected = run_reference(oracle.trial.model, oracle.weights, x, oracle.start)
    last = (calls - 1) % RING
    np.testing.assert_allclose(expected.final["h"], oracle.of_ring.orbit_states["h"][last], rtol=0, atol=1e-9)
    np.testing.assert_allclose(expected.y[-4:], oracle.of_ring.orbit_y[last], rtol=0, atol=1e-9)


def test_a_counter_never_settles_and_is_said_not_to(tmp_path):
    trial = dataclasses.replace(make_trial(), model=Model(cell="counter", input=3, hidden=3))
    oracle = Oracle(trial, tmp_path)
    assert oracle.of_ring.settled_after == 0 or not np.any(oracle.of_ring.states["h"][RING - 1] - oracle.start["h"])
    assert not oracle.rounding.over(100).any(), "whole numbers have no rounding"


def test_chunks_of_a_ring_are_distinct(oracle):
    assert len({chunk["x"].tobytes() for chunk in oracle.ring}) == RING


def test_with_state_none_every_chunk_starts_from_zeros(tmp_path):
    oracle = Oracle(make_trial(state="none"), tmp_path)
    for chunk, y in zip(oracle.ring, oracle.of_ring.y, strict=True):
        expected = run_reference(oracle.trial.model, oracle.weights, chunk["x"])
        np.testing.assert_allclose(y, expected.y, rtol=0, atol=1e-14)


def test_expected_rounding_is_that_of_float32_and_never_falls(oracle):
    assert np.all(np.diff(oracle.rounding.over(1000)) >= 0)
    assert 1e-9 < oracle.rounding_at(0) < 1e-6


def test_a_second_trial_with_the_same_question_computes_nothing(tmp_path, monkeypatch):
    first = Oracle(make_trial("fake:honest"), tmp_path)
    expected = first.of_ring.y, first.from_zeros().y, first.rounding.measured
    monkeypatch.setattr(module, "run_reference", None)
    again = Oracle(make_trial("fake:wrong-bound"), tmp_path)
    for got, was in zip((again.of_ring.y, again.from_zeros().y, again.rounding.measured), expected, strict=True):
        np.testing.assert_array_equal(got, was)
