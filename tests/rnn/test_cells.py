"""The bodies of layers, over NumPy primitives, compute what the references compute, for every variant and network."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from plain_primitives import Plain
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


@settings(max_examples=40)
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
