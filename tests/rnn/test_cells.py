"""The bodies of layers, over NumPy primitives, compute what the references compute, for every variant and network."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from plain_primitives import Plain
from quick_tests import examples
from random_models import models, problem, with_other_activations
from small_networks import COMPOSED, small

from rnnbench.rnn import (
    LAYER_PRIMITIVES,
    Model,
    Network,
    Weights,
    draw_inputs,
    draw_state,
    draw_weights,
    primitives_of,
    run_graph,
    run_reference,
    state_by_layer,
)
from rnnbench.rnn.cells import cell_body
from rnnbench.rnn.quantised import Range


def run_bodies(network: Network, weights: Weights, x: np.ndarray, state: Mapping[str, np.ndarray]) -> np.ndarray:
    """y by the bodies of all layers, step by step."""
    states = state_by_layer(network, {name: list(array) for name, array in state.items()})

    def run(index: int, x: np.ndarray) -> np.ndarray:
        layer, body = network.graph[index], network.body(Plain(), weights, index)
        projected = np.stack([body.project(step) for step in x])
        if not layer.states:
            return projected
        kept, outputs = states[index], []
        for step in projected[::-1] if layer.backward else projected:
            y, kept = body.advance(step, kept)
            outputs.append(y)
        return np.stack(outputs[::-1] if layer.backward else outputs)

    return run_graph(network, x, run, lambda parts: np.concatenate(parts, axis=2))


@examples(40)
@given(
    model=models() | with_other_activations(),
    steps=st.integers(1, 6),
    batch=st.integers(1, 3),
    seed=st.integers(0, 99),
    scale=st.sampled_from([1.0, 4.0]),
)
def test_agrees_with_the_oracle(model: Model, steps: int, batch: int, seed: int, scale: float) -> None:
    data = problem(model, steps, batch, seed, scale)
    expected = run_reference(model, data.weights, data.x, data.state).y
    np.testing.assert_allclose(run_bodies(model, data.weights, data.x, data.state), expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize(
    "model",
    [
        Model(cell="lstm", input=3, hidden=4, projection=2, clip=0.4, cell_clip=0.3),
        Model(cell="gru", input=3, hidden=4, clip=0.4),
        Model(cell="gru", input=3, hidden=4, clip=0.4, reset_after=False),
        Model(cell="rnn", input=3, hidden=4, clip=0.4),
    ],
    ids=str,
)
def test_what_is_clipped_is_clipped_before_each_activation(model: Model) -> None:
    data = problem(model, 4, 2, 0, 4.0)
    x, state = data.x, data.state
    expected = run_reference(model, data.weights, x, state).y
    whole = run_reference(model.model_copy(update={"clip": None, "cell_clip": None}), data.weights, x, state).y
    assert np.abs(expected - whole).max() > 0.1
    np.testing.assert_allclose(run_bodies(model, data.weights, x, state), expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize(
    ("model", "operands"),
    [
        (Model(cell="lstm", input=3, hidden=4, projection=2), ["w_ih", "w_hh", "w_hr"]),
        (Model(cell="gru", input=3, hidden=4), ["w_ih", "w_hh"]),
        (Model(cell="gru", input=3, hidden=4, reset_after=False), ["w_ih", "w_hh", "w_hh"]),
        (Model(cell="rnn", input=3, hidden=4), ["w_ih", "w_hh"]),
    ],
)
def test_each_product_quantises_its_operand_to_the_range_of_its_matrix(model: Model, operands: list[str]) -> None:
    names = {Range(1.0, zero): name for zero, name in enumerate(("w_ih", "w_hh", "w_hr"))}
    used: list[str] = []

    class Noting(Plain):
        def quantised(self, x: np.ndarray, operand: Range) -> np.ndarray:
            used.append(names[operand])
            return x

    data = problem(model, 1, 2, 0, 1.0)
    layer = replace(data.weights.layers[0], ranges={name: operand for operand, name in names.items()})
    body = cell_body(Noting(), model, layer)
    body.advance(body.project(data.x[0]), tuple(array[0] for array in data.state.values()))
    assert used == operands


@pytest.mark.parametrize("name", COMPOSED)
def test_the_bodies_of_a_network_compute_what_its_reference_computes(name: str) -> None:
    network = small(name)
    weights = draw_weights(network, 0, "float64")
    x, state = draw_inputs(network, 5, 2, 1, "float64"), draw_state(network, 2, 2, "float64")
    expected = run_reference(network, weights, x, state)
    np.testing.assert_allclose(run_bodies(network, weights, x, state), expected.y, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("name", [Model.network, *COMPOSED])
def test_a_network_says_its_shapes_and_primitives(name: str) -> None:
    """`primitives_of` raises where a layer's spec and its body disagree."""
    network = Model(cell="lstm", input=3, hidden=4) if name == Model.network else COMPOSED[name]()
    for time in ("looped",) if network.lacks_time("parallel") else ("looped", "parallel", "chunked:4"):
        assert primitives_of(network, time) <= LAYER_PRIMITIVES
    for smaller in network.smaller():
        assert type(smaller) is type(network)
        assert smaller.weight_count < network.weight_count
        primitives_of(smaller)
