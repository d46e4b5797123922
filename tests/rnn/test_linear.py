"""The forms that run many steps at once compute what the recurrence computes, a step after the other."""

from __future__ import annotations

import numpy as np
import pytest
from plain_primitives import Plain
from small_networks import COMPOSED, small

from rnnbench.rnn import (
    Arithmetic,
    Model,
    Network,
    Weights,
    draw_inputs,
    draw_state,
    draw_weights,
    run_graph,
    run_reference,
    state_by_array,
    state_by_layer,
    together,
)
from rnnbench.rnn.layers import MinGru
from rnnbench.rnn.linear import LinearBody

LINEAR = [name for name in COMPOSED if not small(name).lacks_time("parallel")]
Arrays = dict[str, np.ndarray]


def run_together(
    network: Network, weights: Weights, x: np.ndarray, state: Arrays, time: str
) -> tuple[np.ndarray, Arrays]:
    """y and the state after x [steps, batch, input], all steps at once."""
    steps, batch, _ = x.shape
    before = state_by_layer(network, {name: list(array) for name, array in state.items()})
    after = list(before)

    def run(index: int, x: np.ndarray) -> np.ndarray:
        body = network.body(Plain(), weights, index)
        y = body.project(x)
        if before[index]:
            y, after[index] = together(body, time, y, before[index], steps, batch)
        return y

    y = run_graph(network, x.reshape(steps * batch, -1), run, lambda parts: np.concatenate(parts, axis=1))
    return y.reshape(steps, batch, -1), {name: np.stack(rows) for name, rows in state_by_array(network, after).items()}


@pytest.mark.parametrize("time", ["parallel", "chunked:4"])
@pytest.mark.parametrize("steps", [1, 2, 3, 4, 5, 7, 8, 13])
@pytest.mark.parametrize("name", LINEAR)
def test_many_steps_at_once_are_the_recurrence(name: str, steps: int, time: str) -> None:
    network = small(name)
    weights = draw_weights(network, 0, "float64")
    x, state = draw_inputs(network, steps, 3, 1, "float64"), draw_state(network, 3, 2, "float64")
    expected = run_reference(network, weights, x, state)
    y, after = run_together(network, weights, x, state, time)
    np.testing.assert_allclose(y, expected.y, rtol=1e-9, atol=1e-11)
    for name, array in after.items():
        np.testing.assert_allclose(array, expected.final[name], rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("form", [LinearBody.scanned, LinearBody.block], ids=lambda form: form.__name__)
@pytest.mark.parametrize("gates", [(-100.0,), (100.0,), (100.0, -100.0), (-30.0, -30.0, 12.0)], ids=str)
def test_gates_near_0_and_1_cost_no_digits_in_float32(form: object, gates: tuple[float, ...]) -> None:
    """Each step keeps 1 − σ(gate) of the state: all, nothing, and both by turns, where ratios of products overflow."""
    steps = 24
    kind = MinGru(2, 3)
    weights = {"weight": np.repeat(np.eye(2), 3, axis=0), "bias": np.zeros(6)}
    x = np.stack([np.resize(gates, steps), np.linspace(-1, 1, steps)], axis=1)[:, None]
    state = {"h": np.array([[0.3, -0.5, 0.9]])}
    expected, _ = kind.run(Arithmetic(), weights, x, state)
    body = kind.body(Plain(), {name: array.astype(np.float32) for name, array in weights.items()})
    projected = body.project(x.reshape(steps, 2).astype(np.float32))
    run = getattr(body, form.__name__)  # type: ignore[attr-defined]
    y, _ = run(projected, (state["h"].astype(np.float32),), steps, 1)
    assert y.dtype == np.float32
    np.testing.assert_allclose(y[:, None], expected, rtol=2e-6, atol=2e-6)


@pytest.mark.parametrize("time", ["parallel", "chunked:4"])
def test_a_network_whose_gates_read_its_state_says_that_it_has_no_such_time(time: str) -> None:
    lstm = Model(cell="lstm", input=3, hidden=4)
    assert lstm.lacks_time(time) == (
        f"{time} needs states that are linear in themselves, and the gates of h4 read its state: its steps can only "
        "run one after the other; ask for looped or unrolled."
    )
    assert not lstm.lacks_time("looped")
