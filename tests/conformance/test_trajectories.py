"""The reference's trajectories are the reference's, worked out once for all trials that ask the same."""

from __future__ import annotations

import dataclasses
import os
import shutil
import tracemalloc

import numpy as np
import pytest
from harness_trials import make_trial

from rnnbench.conformance import RING, ReferenceTrajectories, ring_trajectory
from rnnbench.conformance import trajectories as module
from rnnbench.conformance.ring_trajectory import PASSES, RingReference
from rnnbench.conformance.rounding import Y
from rnnbench.rnn import Model, run_reference
from rnnbench.rnn.networks.gla import GatedLinearAttentionLayer
from rnnbench.rnn.networks.rnnt_greedy import Rnnt


@pytest.fixture
def reference(tmp_path):
    return ReferenceTrajectories(make_trial(chunk=4), tmp_path)


def test_the_two_streams_are_the_references_own(reference):
    model, weights = reference.trial.model, reference.weights
    for got, state in ((reference.from_zeros(), None), (reference.from_start(), reference.start)):
        expected = run_reference(model, weights, reference.x, state)
        np.testing.assert_allclose(got.y, expected.y, rtol=0, atol=1e-14)
        for name, array in expected.final.items():
            np.testing.assert_allclose(got.final[name], array, rtol=0, atol=1e-14)
            np.testing.assert_allclose(got.states[name], expected.states[name], rtol=0, atol=1e-14)


def test_margins_of_a_search_go_with_its_streams(tmp_path):
    search = Rnnt(input=4, hidden=3, prediction=3, max_symbols=2)
    reference = ReferenceTrajectories(dataclasses.replace(make_trial(), model=search, batch=2, steps=4), tmp_path)
    for stream, state in ((reference.from_zeros(), reference.zeros), (reference.from_start(), reference.start)):
        expected = run_reference(search, reference.weights, reference.x, state)
        np.testing.assert_allclose(stream.margin, expected.margin, rtol=1e-9)


def test_the_ring_is_followed_past_its_end(reference):
    x = np.concatenate([chunk["x"] for chunk in reference.ring] * PASSES)
    expected = run_reference(reference.trial.model, reference.weights, x, reference.start)
    ring = reference.ring_trajectory
    assert len(ring.y) == PASSES * RING
    np.testing.assert_allclose(np.concatenate(list(ring.y)), expected.y, rtol=0, atol=1e-13)
    np.testing.assert_allclose(ring.states["h"], expected.states["h"][3::4], rtol=0, atol=1e-13)


@pytest.mark.proof
def test_a_network_with_a_large_state_is_followed_in_little_memory(tmp_path):
    network = GatedLinearAttentionLayer(input=16, hidden=64)
    trial = dataclasses.replace(make_trial(chunk=64), model=network)
    reference = ReferenceTrajectories(trial, tmp_path)
    a_pass = RING * 64 * reference.start["attention_s"].nbytes * 2
    tracemalloc.start()
    try:
        assert reference.ring_trajectory.followed_calls >= 4 * RING
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < 3 * a_pass


def test_a_settled_ring_is_where_any_number_of_calls_leads(reference):
    calls = reference.ring_trajectory.settled_after + 5
    assert calls > 5, "an LSTM with such weights forgets"
    x = np.concatenate([reference.ring[index % RING]["x"] for index in range(calls)])
    expected = run_reference(reference.trial.model, reference.weights, x, reference.start)
    last = (calls - 1) % RING
    np.testing.assert_allclose(
        expected.final["h"], reference.ring_trajectory.orbit_states["h"][last], rtol=0, atol=1e-9
    )
    np.testing.assert_allclose(expected.y[-4:], reference.ring_trajectory.orbit_y[last], rtol=0, atol=1e-9)


def test_a_pass_that_begins_as_the_one_before_is_not_computed(tmp_path, monkeypatch):
    """An LSTM has forgotten its start to the bit after a pass of so many steps, but not after the pass's first call."""
    lengths, run = [], ring_trajectory.run_reference

    def counted(*given):
        lengths.append(len(given[2]))
        return run(*given)

    monkeypatch.setattr(ring_trajectory, "run_reference", counted)
    ring = ReferenceTrajectories(make_trial(chunk=16), tmp_path).ring_trajectory
    assert lengths == [RING * 16] * PASSES
    assert ring.followed_calls == 3 * RING
    assert 0 < ring.settled_after < ring.followed_calls
    np.testing.assert_array_equal(ring.orbit_y, ring.y[RING:])


def test_a_counter_never_settles_and_is_said_not_to(tmp_path):
    trial = dataclasses.replace(make_trial(), model=Model(cell="counter", input=3, hidden=3))
    reference = ReferenceTrajectories(trial, tmp_path)
    assert reference.ring_trajectory.settled_after == 0 or not np.any(
        reference.ring_trajectory.states["h"][RING - 1] - reference.start["h"]
    )
    assert not reference.roundings[Y].over(100).any(), "whole numbers have no rounding"


@pytest.mark.parametrize("chunk", [1, 5, 64])
def test_passes_of_an_exact_network_that_are_run_at_once_are_the_same(tmp_path, monkeypatch, chunk):
    trial = dataclasses.replace(make_trial(chunk=chunk), model=Model(cell="counter", input=3, hidden=3))
    reference, arrays = ReferenceTrajectories(trial, tmp_path), []
    ring = RingReference(trial, reference.weights, reference.ring, reference.start)
    for together in (ring_trajectory.TOGETHER, 1):
        monkeypatch.setattr(ring_trajectory, "TOGETHER", together)
        arrays.append(ring.stream())
    at_once, one_by_one = arrays
    assert at_once.keys() == one_by_one.keys()
    for name, array in one_by_one.items():
        np.testing.assert_array_equal(at_once[name], array)


def test_chunks_of_a_ring_are_distinct(reference):
    assert len({chunk["x"].tobytes() for chunk in reference.ring}) == RING


def test_with_state_none_every_chunk_starts_from_zeros(tmp_path):
    reference = ReferenceTrajectories(make_trial(state="none"), tmp_path)
    for chunk, y in zip(reference.ring, reference.ring_trajectory.y, strict=True):
        expected = run_reference(reference.trial.model, reference.weights, chunk["x"])
        np.testing.assert_allclose(y, expected.y, rtol=0, atol=1e-14)


def test_expected_rounding_is_that_of_float32_and_never_falls(reference):
    assert np.all(np.diff(reference.roundings[Y].over(1000), axis=0) >= 0)
    assert ((reference.rounding_at(0) > 1e-9) & (reference.rounding_at(0) < 1e-6)).all()


def test_a_second_trial_with_the_same_question_computes_nothing(tmp_path, monkeypatch):
    first = ReferenceTrajectories(make_trial("fake:honest"), tmp_path)
    expected = first.ring_trajectory.y, first.from_zeros().y, first.roundings[Y].measured
    for computing in (module, ring_trajectory):
        monkeypatch.setattr(computing, "run_reference", None)
    again = ReferenceTrajectories(make_trial("fake:wrong-bound"), tmp_path)
    for got, was in zip(
        (again.ring_trajectory.y, again.from_zeros().y, again.roundings[Y].measured), expected, strict=True
    ):
        np.testing.assert_array_equal(got, was)


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04", None], ids=["empty", "no archive", "torn"])
def test_a_damaged_file_of_the_reference_is_made_again(tmp_path, content):
    first = ReferenceTrajectories(make_trial("fake:honest"), tmp_path)
    expected = first.from_zeros().y
    (file,) = tmp_path.glob("stream-*.npz")
    whole = file.read_bytes()
    file.write_bytes(whole[: len(whole) // 2] if content is None else content)
    again = ReferenceTrajectories(make_trial("fake:wrong-bound"), tmp_path)
    assert np.array_equal(again.from_zeros().y, expected)
    assert file.read_bytes()[:2] == b"PK"
    assert len(file.read_bytes()) == len(whole)


def test_a_file_in_the_place_of_another_one_and_a_pipe_are_made_again(tmp_path):
    """As after a person who copies files of a run that is to be resumed."""
    trial = make_trial("fake:honest")
    other = ReferenceTrajectories(dataclasses.replace(trial, seed=1), tmp_path / "other")
    first = ReferenceTrajectories(trial, tmp_path / "run")
    expected, wrong = first.from_zeros().y, other.from_zeros().y
    assert not np.array_equal(expected, wrong)
    (file,), (foreign,) = (list((tmp_path / name).glob("stream-*.npz")) for name in ("run", "other"))
    for replace_file in (lambda: shutil.copy(foreign, file), lambda: (file.unlink(), os.mkfifo(file))):
        replace_file()
        again = ReferenceTrajectories(trial, tmp_path / "run")
        assert np.array_equal(again.from_zeros().y, expected)
        assert again.seconds > 0


def test_a_start_is_no_state_of_zeros_and_another_one_in_each_row(reference):
    rows = [row for array in reference.start.values() for layer in array for row in layer]
    assert all(row.any() for row in rows)
    assert len({row.tobytes() for row in rows}) == len(rows)


def test_what_starts_or_is_cut_otherwise_has_files_of_its_own(reference, tmp_path):
    x, other = reference.x, ReferenceTrajectories(make_trial(chunk=2), tmp_path)
    assert not np.array_equal(reference.run(x).y, reference.run(x, reference.start).y)
    shapes = [each.ring_trajectory.y.shape[1] for each in (reference, other)]
    assert shapes == [4, 2]


@pytest.mark.parametrize("state", ["none", "stitched"])
def test_rows_that_are_equal_are_run_once(tmp_path, monkeypatch, state):
    """Calls that are alike differ in few rows. Rows of one x from two states are two rows."""
    trial = dataclasses.replace(make_trial(state=state), batch=4)
    reference = ReferenceTrajectories(trial, tmp_path)
    x = reference.x[:, [0, 1, 0, 0]]
    start = {name: array[:, [0, 1, 0, 3]] for name, array in reference.start.items()} if state == "stitched" else None
    asked, run = [], module.run_and_rounding

    def counted(*given):
        asked.append(given[2].shape[1])
        return run(*given)

    monkeypatch.setattr(module, "run_and_rounding", counted)
    for _ in range(2):  # The second one is read from its file.
        got = ReferenceTrajectories(trial, tmp_path).run(x, start)
        expected = run_reference(trial.model, reference.weights, x, start)
        np.testing.assert_allclose(got.y, expected.y, rtol=0, atol=1e-14)
        for name, array in expected.final.items():
            np.testing.assert_allclose(got.final[name], array, rtol=0, atol=1e-14)
    assert asked == [2 if start is None else 3]
