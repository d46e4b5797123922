"""Checks of magnitudes share runs of the reference with other trials of the model."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import onnx_files as files
import pytest
from harness_trials import make_trial
from honest_adapter import HonestSession
from onnx import helper
from quick_tests import for_proof
from verdicts import failures, verdicts

from rnnbench.conformance import ReferenceTrajectories, magnitudes, suite
from rnnbench.model_files import describe, network_of, section_of


@pytest.mark.first(1)
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


def test_rows_of_their_own_lengths_end_as_those_of_the_reference_do(tmp_path, monkeypatch):
    """The reference has the lengths of the ring's first chunk."""
    monkeypatch.setattr(suite, "CHECKS", magnitudes.MAGNITUDE_CHECKS)
    trial = replace(make_trial(state="none"), batch=3, lengths="ragged")
    first, second, *_ = ReferenceTrajectories(trial, tmp_path).ring
    assert (first["lengths"] != second["lengths"]).any()
    assert not failures(trial, HonestSession, tmp_path)


def test_no_step_is_coarser_than_those_whose_rounding_is_measured(tmp_path, monkeypatch):
    monkeypatch.setattr(magnitudes, "steps_measured", lambda model, steps: min(steps, 16))
    (scales,) = magnitudes._rising(1, 128, ReferenceTrajectories(make_trial(), tmp_path))
    assert scales.shape == (128,)
    assert set(scales[:16]) == set(magnitudes.MAGNITUDES)
    assert set(scales[15:]) == {magnitudes.HUGE}


class Flushing(HonestSession):
    """Subnormal numbers are zero wherever they come in, as with the processor's flag for it."""

    def compute(self, x):
        self.state = {name: self.flushed(array) for name, array in self.state.items()}
        return super().compute(self.flushed(x))

    @staticmethod
    def flushed(array):
        return np.where(np.abs(array) < np.finfo(np.float32).tiny, 0, array).astype(array.dtype)


class OneForSmall(Flushing):
    """Neither what the numbers give nor what zero gives."""

    @staticmethod
    def flushed(array):
        return np.where(np.abs(array) < np.finfo(np.float32).tiny, 1e-3, array).astype(array.dtype)


def after(operator, references):
    """A trial of a cell that reads operator(x), and a folder for its references, which its tests share."""
    folder = references / operator
    folder.mkdir(exist_ok=True)
    proto = files.cell("x", ["h"], ["next_h"])
    for node in proto.graph.node:
        node.input[:] = ["~read" if name == "x" else name for name in node.input]
    proto.graph.node.insert(0, helper.make_node(operator, ["x"], ["~read"]))
    path = files.saved(proto, folder / "cell.onnx")
    found = describe(path)
    model = network_of(path, section_of(found, path.name), found)
    return replace(make_trial(time="given", chunk=1), model=model), folder


@pytest.mark.parametrize("operator", ["Sign", *for_proof("Floor", "Ceil", "Relu")])
def test_a_runtime_that_flushes_is_honest_before_any_operator(references, monkeypatch, operator):
    monkeypatch.setattr(suite, "CHECKS", magnitudes.MAGNITUDE_CHECKS)
    trial, folder = after(operator, references)
    assert not failures(trial, HonestSession, folder)
    assert not failures(trial, Flushing, folder)


@pytest.mark.parametrize("operator", ["Sign", *for_proof("Floor", "Ceil", "Relu")])
def test_what_is_wrong_near_zero_is_found_before_any_operator(references, monkeypatch, operator):
    monkeypatch.setattr(suite, "CHECKS", magnitudes.MAGNITUDE_CHECKS)
    trial, folder = after(operator, references)
    assert {"denormals", "magnitudes"} <= failures(trial, OneForSmall, folder).keys()


def test_inputs_of_ten_thousand_are_compared_as_far_as_their_rounding_is_measured(tmp_path):
    trial = replace(make_trial(chunk=5), steps=4_000)
    assert len(ReferenceTrajectories(trial, tmp_path).scaled(1e4).x) == 510
    assert len(ReferenceTrajectories(make_trial(chunk=5), tmp_path).scaled(1e4).x) == 10
