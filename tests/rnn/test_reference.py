"""Properties of the oracle that hold whatever the equations are, and the ones that no other framework here can show."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from quick_tests import examples
from random_models import models, problem

from rnnbench.rnn import Model, Weights, draw_state, draw_weights, run_reference
from rnnbench.rnn.spec import Cell


@examples(20)
@given(model=models(direction="forward"), cut=st.integers(1, 6), batch=st.integers(1, 3), scale=st.sampled_from([1, 3]))
def test_a_stream_may_be_cut_anywhere(model: Model, cut: int, batch: int, scale: float) -> None:
    data = problem(model, 7, batch, scale=scale)
    whole = run_reference(model, data.weights, data.x, data.state)
    first = run_reference(model, data.weights, data.x[:cut], data.state)
    second = run_reference(model, data.weights, data.x[cut:], first.final)
    np.testing.assert_allclose(np.concatenate([first.y, second.y]), whole.y, rtol=1e-10, atol=1e-12)
    for name, final in whole.final.items():
        np.testing.assert_allclose(second.final[name], final, rtol=1e-10, atol=1e-12)


@examples(20)
@given(model=models(direction="forward"), batch=st.integers(1, 3))
def test_states_hold_the_state_after_each_step(model: Model, batch: int) -> None:
    data = problem(model, 5, batch)
    whole = run_reference(model, data.weights, data.x, data.state)
    assert whole.states is not None
    for steps in (1, 3, 5):
        head = run_reference(model, data.weights, data.x[:steps], data.state)
        for name, final in head.final.items():
            np.testing.assert_allclose(whole.states[name][steps - 1], final, rtol=1e-10, atol=1e-12)
    np.testing.assert_array_equal(whole.states["h"][:, -1], whole.y)


@examples(20)
@given(model=models(cell=st.sampled_from(["lstm", "gru", "rnn"]), direction="reverse"), batch=st.integers(1, 3))
def test_reverse_is_forward_over_the_flipped_stream(model: Model, batch: int) -> None:
    data = problem(model, 6, batch)
    backward = run_reference(model, data.weights, data.x, data.state)
    forward = run_reference(model.model_copy(update={"direction": "forward"}), data.weights, data.x[::-1], data.state)
    assert backward.states is None
    np.testing.assert_allclose(backward.y, forward.y[::-1], rtol=1e-10, atol=1e-12)
    for name, final in forward.final.items():
        np.testing.assert_allclose(backward.final[name], final, rtol=1e-10, atol=1e-12)


@examples(20)
@given(model=models(), batch=st.integers(2, 4))
def test_rows_of_a_batch_do_not_touch_each_other(model: Model, batch: int) -> None:
    data = problem(model, 4, batch)
    whole = run_reference(model, data.weights, data.x, data.state)
    row = {name: array[:, 1:2] for name, array in data.state.items()}
    alone = run_reference(model, data.weights, data.x[:, 1:2], row)
    np.testing.assert_allclose(whole.y[:, 1:2], alone.y, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_counter_is_exact(dtype: str) -> None:
    model = Model(cell="counter", input=3, hidden=3)
    data = problem(model, 1000, 2)
    found = run_reference(model, data.weights, data.x, data.state, dtype=dtype, summation=5)
    np.testing.assert_array_equal(found.y, data.state["h"] + np.cumsum(data.x, axis=0))


@examples(20)
@given(model=models(), summation=st.none() | st.integers(0, 9))
def test_float32_stays_float32_and_close(model: Model, summation: int | None) -> None:
    data = problem(model, 5, 2)
    exact = run_reference(model, data.weights, data.x, data.state)
    found = run_reference(model, data.weights, data.x, data.state, dtype="float32", summation=summation)
    arrays = [found.y, *found.final.values(), *(found.states or {}).values()]
    assert {array.dtype for array in arrays} == {np.dtype("float32")}
    np.testing.assert_allclose(found.y, exact.y, rtol=1e-4, atol=1e-5)


def test_orders_of_summation_differ_by_rounding_only() -> None:
    model = Model(cell="lstm", input=33, hidden=64)
    data = problem(model, 8, 1)

    def run(dtype: str, summation: int | None) -> np.ndarray:
        return run_reference(model, data.weights, data.x, data.state, dtype=dtype, summation=summation).y

    assert len({run("float32", seed).tobytes() for seed in range(4)}) == 4
    np.testing.assert_array_equal(run("float32", 1), run("float32", 1))
    np.testing.assert_allclose(run("float64", 1), run("float64", None), rtol=1e-10, atol=1e-13)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_saturated_gates_neither_overflow_nor_warn(dtype: str) -> None:
    model = Model(cell="lstm", input=2, hidden=3)
    data = problem(model, 6, 1, scale=1e4)
    with np.errstate(all="raise", under="ignore"):
        y = run_reference(model, data.weights, data.x, data.state, dtype=dtype).y
    assert np.isfinite(y).all()


@examples(20)
@given(model=models(cell="lstm", direction="forward", cell_clip=st.floats(0.05, 0.5), projection=0, layers=1))
def test_cell_clip_bounds_the_cell_state_before_it_is_read(model: Model) -> None:
    data = problem(model, 6, 2, scale=3)
    found = run_reference(model, data.weights, data.x, data.state)
    assert model.cell_clip is not None
    assert np.abs(found.final["c"]).max() <= model.cell_clip
    assert np.abs(found.y).max() <= np.tanh(model.cell_clip)


def test_clip_bounds_the_inputs_of_activations_and_not_the_state() -> None:
    model = Model(cell="rnn", input=2, hidden=3, activation="relu", clip=0.25)
    data = problem(model, 6, 2, scale=3)
    assert run_reference(model, data.weights, data.x, data.state).y.max() == 0.25
    lstm = Model(cell="lstm", input=2, hidden=3, clip=0.25)
    data = problem(lstm, 6, 2, scale=3)
    held = {"h": data.state["h"], "c": np.full_like(data.state["c"], 4.0)}
    first = run_reference(lstm, data.weights, data.x[:1], held)
    assert np.abs(first.final["c"]).min() > 4.0 / (1 + np.exp(0.25)) - np.tanh(0.25)


@pytest.mark.parametrize(
    ("x", "state", "complaint"),
    [
        (np.zeros((2, 1, 9)), None, r"x: expected shape \[steps ≥ 1, batch, 3\], got \[2, 1, 9\]"),
        (np.zeros((0, 1, 3)), None, r"got \[0, 1, 3\]"),
        (np.zeros((2, 1, 3)), {"h": np.zeros((1, 2, 4))}, r"h: expected shape \[1, 1, 4\], got \[1, 2, 4\]"),
        (np.zeros((2, 1, 3)), {"c": np.zeros((1, 1, 4))}, r"state: expected the arrays \['h'\], got \['c'\]"),
    ],
)
def test_a_wrong_shape_is_refused(x: np.ndarray, state: dict[str, np.ndarray] | None, complaint: str) -> None:
    model = Model(cell="gru", input=3, hidden=4)
    with pytest.raises(ValueError, match=complaint):
        run_reference(model, Weights(problem(model, 1, 1).weights.layers), x, state)


@examples(20)
@given(model=models(), lengths=st.lists(st.integers(1, 6), min_size=1, max_size=4))
def test_a_row_with_a_length_is_that_row_alone_cut_there(model: Model, lengths: list[int]) -> None:
    data = problem(model, 6, len(lengths))
    together = run_reference(model, data.weights, data.x, lengths=np.array(lengths))
    for row, length in enumerate(lengths):
        alone = run_reference(model, data.weights, data.x[:length, [row]])
        np.testing.assert_allclose(together.y[:length, [row]], alone.y, rtol=1e-12, atol=1e-14)
        assert not together.y[length:, row].any()
        for name, array in alone.final.items():
            np.testing.assert_allclose(together.final[name][:, [row]], array, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize(("cell", "state"), [("lstm", "c"), ("gru", "h")])
def test_a_unit_keeps_its_state_where_its_gate_is_pinned(cell: Cell, state: str) -> None:
    model, units = Model(cell=cell, input=4, hidden=3), np.arange(2)
    weights, start = draw_weights(model, 0, "float64"), draw_state(model, 2, 1, "float64")

    def moved(preactivation: float) -> np.ndarray:
        """What is left of a change by 1, after a step, in unit i of row i."""
        x = model.pinning_x(weights, 2, preactivation)[None]
        before, after = (run_reference(model, weights, x, {**start, state: start[state] + by}) for by in (0, 1))
        return (after.final[state] - before.final[state])[0, units, units]

    np.testing.assert_allclose(moved(100.0), 1.0, rtol=1e-9)
    assert np.abs(moved(-100.0)).max() < 0.9
