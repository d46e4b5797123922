"""Expected rounding is that of the dtype, goes on as it grew, and ends where a comparison says nothing."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from harness_trials import make_trial
from honest_adapter import HonestSession
from quick_tests import for_proof
from random_models import problem
from verdicts import failures, verdicts

from rnnbench.conformance import ReferenceTrajectories
from rnnbench.conformance import rounding as module
from rnnbench.conformance.rounding import (
    FACTOR,
    MEASURED_STEPS,
    Rounding,
    Y,
    expected_rounding,
    incomparable,
    run_and_rounding,
    steps_measured,
    undecided,
)
from rnnbench.rnn import DTYPES, Arithmetic, Model, draw_inputs, draw_weights, network_of, run_in, run_reference
from rnnbench.rnn.weight_forms import WeightForms

pytestmark = pytest.mark.usefixtures("few_turns")

EACH_KIND = ("float32", "bfloat16", "int8_static")
"""A dtype that sums in itself, one that sums in a wider one, and one with 8 bits."""
CHAOTIC = Model(cell="rnn", input=4, hidden=32, gain=8.0)


def expected(model: Model, steps: int, dtype: str = "float32") -> Rounding:
    data = problem(model, steps, 1, dtype=dtype)
    return expected_rounding(model, data.weights, data.x, None, dtype, seed=0)[Y]


@pytest.mark.parametrize("dtype", [name for name, dtype in DTYPES.items() if not dtype.activations])
def test_a_tame_network_rounds_by_a_few_units_of_its_dtype(dtype: str) -> None:
    rounding = expected(Model(cell="lstm", input=3, hidden=9), 40, dtype).over(40).max(axis=(1, 2))
    assert np.all(np.diff(rounding) >= 0)
    assert DTYPES[dtype].unit / 64 < rounding[0] <= rounding[-1] < 16 * DTYPES[dtype].unit


def test_each_row_of_a_fixed_range_is_measured_as_equal_numbers_are_all_rounded_to_one_side(monkeypatch) -> None:
    """With weights of one sign these errors add up. One row of many has equal numbers, in a costly network."""
    monkeypatch.setattr(module, "CHEAP", 1)
    model = Model(cell="lstm", input=512, hidden=2)
    x, drawn = problem(model, 1, 23, dtype="int8_static").x.copy(), draw_weights(model, 0, "int8_static")
    (layer,) = drawn.layers
    x[0, 17] = 1.49 * layer.ranges["w_ih"].scale
    weights = replace(drawn, layers=(replace(layer, w_ih=np.abs(layer.w_ih) / 4),), forms=WeightForms())
    off = run_in(Arithmetic("int8_static"), model, weights, x, None).y - run_reference(model, weights, x, None).y
    allowed = FACTOR * expected_rounding(model, weights, x, None, "int8_static", seed=0)[Y].at(0)
    assert np.abs(np.delete(off, 17, axis=1)).max() < allowed.max() / 4
    assert np.abs(off).max() < allowed.max()


def test_int8_weights_alone_round_as_float32_and_8_bit_activations_by_their_step() -> None:
    model = Model(cell="lstm", input=3, hidden=9)
    data = problem(model, 40, 1, dtype="int8_weights")
    plain, weights, dynamic = (
        expected_rounding(model, data.weights, data.x, None, dtype, seed=0)[Y].at(39).max()
        for dtype in ("float32", "int8_weights", "int8_dynamic")
    )
    ranges = draw_weights(model, 0, "int8_static")
    static = expected_rounding(model, ranges, data.x, None, "int8_static", seed=0)[Y].at(39).max()
    assert weights == plain
    assert 1e-4 < dynamic < 0.01
    assert 1e-5 < static < dynamic, "no program has fewer bits than the fixed ones"


def test_a_network_of_one_unit_is_not_lucky() -> None:
    """One step, one unit: of a few orders of summation all might round alike."""
    model = Model(cell="rnn", input=2, hidden=1, activation="relu")
    data = problem(model, 1, 8, seed=3, dtype="float32")
    rounding = expected_rounding(model, data.weights, data.x, None, "float32", seed=3)[Y].at(0).max()
    assert rounding > 2.0**-26


def test_a_small_network_is_measured_on_all_of_its_rows() -> None:
    """Of sixteen calls from zeros the two layers of relus, two units each, are 0 in all but a few."""
    model = Model(cell="rnn", activation="relu", direction="reverse", input=7, hidden=2, layers=2)
    data = problem(model, 1, 16, seed=831846, dtype="bfloat16")
    rounding = expected_rounding(model, data.weights, data.x, None, "bfloat16", seed=0)[Y]
    largest = np.abs(run_reference(model, data.weights, data.x).y).max()
    assert rounding.at(0).max() >= DTYPES["bfloat16"].unit * largest


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_a_saturated_network_rounds_by_the_unit_of_its_values(dtype: str) -> None:
    """Every output is 1 or -1 in any order of summation, and random roundings stay below the unit."""
    model = Model(cell="rnn", input=2, hidden=1)
    data = problem(model, 4, 1, dtype=dtype)
    x = np.full_like(data.x, 1000)
    assert (np.abs(run_reference(model, data.weights, x).y) == 1).all()
    rounding = expected_rounding(model, data.weights, x, None, dtype, seed=0)[Y]
    assert rounding.measured[0].max() >= DTYPES[dtype].unit


@pytest.mark.parametrize("direction", ["reverse", "bidirectional"])
def test_every_step_of_a_network_that_runs_backwards_may_be_as_far_off_as_the_worst(direction) -> None:
    """The first step comes last, after all roundings of the others."""
    measured = expected(Model(cell="lstm", input=3, hidden=9, direction=direction), 40).measured
    assert (measured == measured[0]).all()


@pytest.mark.parametrize(
    ("errors", "step", "times"), [([1, 1, 1, 1], 999, 1), ([1, 1, 2, 2], 7, 2), ([1, 2, 3, 4], 15, 4)]
)
def test_beyond_what_was_measured_the_error_goes_on_as_it_grew(errors, step: int, times: float) -> None:
    rounding = Rounding(np.array(errors, float)[:, None, None] * 1e-7, "float32")
    assert rounding.at(step).max() == pytest.approx(times * rounding.measured[-1].max())


def test_fewer_steps_are_measured_where_a_step_is_much_work() -> None:
    assert steps_measured(Model(cell="lstm", input=64, hidden=128), 512) == 512
    assert steps_measured(Model(cell="lstm", input=64, hidden=1024), 512) < 64
    large_state = network_of({"network": "gla", "input": 64, "hidden": 256})
    assert steps_measured(large_state, 512) < 64


def test_an_error_that_grew_faster_than_steps_is_an_exponential() -> None:
    rounding = Rounding(1e-7 * np.exp2(np.arange(8.0))[:, None, None], "float32")
    assert rounding.at(10).max() == pytest.approx(1e-7 * 2**10)


def test_in_a_network_that_forgets_no_error_is_an_exponential() -> None:
    """Its errors are forgotten as its start is: a check of thousands of calls could not fail otherwise."""
    rounding = Rounding(1e-7 * np.exp2(np.arange(8.0))[:, None, None], "float32", forgets=True)
    assert rounding.at(15).max() == pytest.approx(1e-7 * 2 ** (7 + 4))


def test_chaos_is_where_the_errors_share_has_grown_to_the_tolerance() -> None:
    scale = np.ones(6)
    assert list(incomparable(np.array([1e-7, 1e-5, 1e-3, 0.02, 0.1, 0.5]), scale)) == [False] * 4 + [True] * 2
    assert not incomparable(np.full(6, 0.1), scale).any(), "coarse from the first step on is no chaos"
    assert not incomparable(np.zeros(6), np.zeros(6)).any()
    assert not incomparable(np.exp(np.arange(6.0)), np.exp(np.arange(6.0))).any(), "values that grow with their errors"


def test_after_chaos_nothing_is_compared_though_the_values_grow_beyond_the_errors() -> None:
    error, scale = np.array([1e-7, 0.2, 0.2]), np.array([1.0, 1.0, 100.0])
    assert list(incomparable(error, scale)) == [False, True, True]


def test_a_chaotic_network_is_recognised_and_a_tame_one_is_not() -> None:
    assert expected(CHAOTIC, 200).at(3).max() < 1e-4
    assert expected(CHAOTIC, 200).at(199).max() == np.inf
    assert expected(CHAOTIC.model_copy(update={"gain": 1.0}), 200).at(10_000).max() < 1e-4


def test_a_value_beyond_the_dtypes_range_cannot_be_compared() -> None:
    growing = Model(cell="rnn", input=2, hidden=4, activation="relu", gain=8.0)
    assert expected(growing, 30, "float16").at(29).max() == np.inf
    assert expected(growing, 30, "float32").at(29).max() < np.inf


def test_counts_are_exact_as_far_as_the_dtype_has_whole_numbers() -> None:
    counter = Model(cell="counter", input=2, hidden=2)
    assert expected(counter, 9, "bfloat16").at(8).max() == 0
    assert expected(counter, 9, "bfloat16").at(10_000).max() == np.inf
    assert expected(counter, 9, "float32").at(10_000).max() == 0


def test_a_counter_is_exact_up_to_the_largest_count_that_its_inputs_may_reach() -> None:
    """float16 has every whole number up to 2,048. From a state of 4, inputs of 4 reach it at step 510."""
    rounding = Rounding(np.zeros((9, 1, 1)), "float16")
    assert [rounding.at(step).max() for step in (510, 511)] == [0, np.inf]


def of(model: Model, dtype: str = "float32"):
    return replace(make_trial(chunk=16), model=model, steps=192, dtype=dtype)


@pytest.mark.proof
@pytest.mark.parametrize("dtype", ["float32", *for_proof(*sorted(DTYPES.keys() - {"float32"}))])
def test_an_honest_adapter_of_a_chaotic_network_is_told_chaotic_and_not_accused(dtype: str, tmp_path) -> None:
    found = verdicts(of(CHAOTIC, dtype), HonestSession, tmp_path)
    # Under load a check that its time ended is too short, and accuses nobody.
    assert {figure.verdict for figure in found.values()} <= {"pass", "chaotic", "not-applicable", "too-short"}
    assert found["values"].verdict == "chaotic"
    assert "y at step" in found["values"].detail
    assert found["reset"].verdict == "pass", "bits are the same whatever the network"


def test_a_wrong_adapter_of_a_chaotic_network_is_found_before_the_chaos(tmp_path) -> None:
    class Wrong(HonestSession):
        def compute(self, x: np.ndarray) -> np.ndarray:
            return super().compute(x * np.float32(1.001))

    assert "values" in failures(of(CHAOTIC), Wrong, tmp_path)


def test_rows_that_end_early_are_measured_as_they_end(tmp_path: Path) -> None:
    """Backwards a row starts at its own end: saturated from the last step, one of its gates is not from the third."""
    model = Model(cell="lstm", input=8, hidden=17, direction="bidirectional")
    trial = replace(make_trial(state="none"), model=model, batch=3, lengths="ragged")
    reference = ReferenceTrajectories(trial, tmp_path)
    assert reference.lengths is not None
    huge = reference.scaled(1e4)
    got = run_reference(model, reference.weights, huge.x, dtype="float32", lengths=reference.lengths[0]).y
    assert np.abs(got - huge.y).max() < 2 * huge.rounding.max()


def test_a_decision_within_the_tolerance_ends_the_comparison() -> None:
    error = np.full(4, 1e-6)
    margin = np.array([[0.5, 0.5], [0.5, 2 * FACTOR * 0.9e-6], [0.5, 0.5], [0.5, 0.5]])
    assert list(undecided(error, margin)) == [False, True, True, True]
    assert not undecided(error[:3], margin[[0, 2, 3]]).any()


@pytest.mark.parametrize(("dtype", "seed"), [("float32", 0), ("float16", 1)])
def test_a_search_is_compared_where_its_decisions_are_clear(dtype: str, seed: int) -> None:
    network = network_of(
        {"network": "rnnt", "input": 16, "hidden": 6, "prediction": 6, "blank_bias": 6, "max_symbols": 2}
    )
    weights, x = draw_weights(network, seed), draw_inputs(network, 12, 1, seed)
    margin = run_reference(network, weights, x).margin
    assert margin is not None
    measured = expected_rounding(network, weights, x, None, dtype, 0)[Y].measured.max(axis=(1, 2))
    tolerance = 2 * FACTOR * measured[np.isfinite(measured)].max()
    assert np.isfinite(measured).sum() == (margin.min(axis=1) > tolerance).cumprod().sum() > 0


@pytest.mark.each_value
@pytest.mark.parametrize("dtype", [*EACH_KIND, *for_proof(*sorted(DTYPES.keys() - set(EACH_KIND)))])
@pytest.mark.parametrize("cell", ["lstm", "counter"])
@pytest.mark.parametrize(("steps", "batch"), [(12, 2), (12, 200), (MEASURED_STEPS + 8, 1)])
def test_a_run_is_the_references_whether_or_not_all_of_it_is_measured(dtype, cell, steps, batch) -> None:
    model = Model(cell=cell, input=3, hidden=3)
    data = problem(model, steps, batch, dtype=dtype)
    given = (model, data.weights, data.x, data.state)
    run, rounding = run_and_rounding(*given, dtype, 0)
    exact = run_reference(*given)
    np.testing.assert_allclose(run.y, exact.y, rtol=0, atol=1e-13)
    for name, array in exact.final.items():
        np.testing.assert_allclose(run.final[name], array, rtol=0, atol=1e-13)
    expected = expected_rounding(*given, dtype, 0)
    assert rounding.keys() == expected.keys() == {Y, *exact.final}
    for name, of_array in expected.items():
        np.testing.assert_array_equal(rounding[name].measured, of_array.measured)


def test_y_has_the_rounding_of_y_whatever_a_state_has() -> None:
    """A cell of a million is rounded by 0.06, and y, which is at most 1, by a hundred-thousandth of that."""
    model = Model(cell="lstm", input=3, hidden=8)
    data = problem(model, 12, 2)
    large = {**data.state, "c": data.state["c"] * 1e6}
    _, rounding = run_and_rounding(model, data.weights, data.x, large, "float32", 0)
    assert rounding["c"].at(11).max() > 1e-3
    assert rounding[Y].at(11).max() < 2e-6


def test_a_run_that_is_measured_whole_is_made_once(monkeypatch) -> None:
    """With large weights it takes as long as what is measured."""
    data = problem(CHAOTIC, 12, 2)
    monkeypatch.setattr(module, "run_reference", None)
    run, _ = run_and_rounding(CHAOTIC, data.weights, data.x, None, "float32", 0)
    assert run.y.shape == (12, 2, CHAOTIC.hidden)
