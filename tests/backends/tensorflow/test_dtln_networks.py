"""DTLN against the layers of its source: Keras in float64, with the same weights."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from rnnbench.rnn import Weights, draw_inputs, draw_weights, run_reference
from rnnbench.rnn.networks.dtln import Dtln1, Dtln2

keras: Any = pytest.importorskip("keras")
layers, ops = keras.layers, keras.ops


def core(x: Any, mask: int, hidden: int) -> Any:
    for name in ("lstm1", "lstm2"):
        x = layers.LSTM(hidden, return_sequences=True, name=name, dtype="float64")(x)
    return layers.Dense(mask, activation="sigmoid", name="mask", dtype="float64")(x)


def keras_dtln1(network: Dtln1) -> Any:
    x = layers.Input((None, network.input), dtype="float64")
    return keras.Model(x, core(x, network.input, network.hidden))


def keras_dtln2(network: Dtln2) -> Any:
    encoded_size = 2 * network.hidden
    x = layers.Input((None, network.input), dtype="float64")
    encoded = layers.Conv1D(encoded_size, 1, use_bias=False, name="encoder", dtype="float64")(x)
    norm = layers.LayerNormalization(epsilon=1e-7, name="norm", dtype="float64")(encoded)
    masked = encoded * core(norm, encoded_size, network.hidden)
    decoder = layers.Conv1D(network.input, 1, padding="causal", use_bias=False, name="decoder", dtype="float64")
    return keras.Model(x, decoder(masked))


def run_keras(model: Any, weights: Weights, x: np.ndarray) -> np.ndarray:
    """Keras has the gates of an LSTM as i f g o, and a convolution of one tap as [1, input, width]."""
    arrays = weights.arrays
    for name in ("lstm1", "lstm2"):
        of_layer = [arrays[f"{name}_weight_ih"].T, arrays[f"{name}_weight_hh"].T, arrays[f"{name}_bias_ih"]]
        model.get_layer(name).set_weights(of_layer)
    model.get_layer("mask").set_weights([arrays["mask_weight"].T, arrays["mask_bias"]])
    if "norm_gamma" in arrays:
        model.get_layer("norm").set_weights([arrays["norm_gamma"], arrays["norm_beta"]])
        for name in ("encoder", "decoder"):
            model.get_layer(name).set_weights([arrays[f"{name}_weight"].T[None]])
    return np.asarray(model(x.swapaxes(0, 1))).swapaxes(0, 1)


@pytest.mark.first(1)
@pytest.mark.parametrize(
    ("network", "model"),
    [(Dtln1(input=7, hidden=5), keras_dtln1), (Dtln2(input=8, hidden=5), keras_dtln2)],
)
def test_is_the_network_of_keras(network: Dtln1 | Dtln2, model: Any) -> None:
    weights, x = draw_weights(network, 0, "float64"), draw_inputs(network, 6, 2, 1, "float64")
    expected = run_keras(model(network), weights, x)
    np.testing.assert_allclose(run_reference(network, weights, x).y, expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize(("network", "model"), [(Dtln1(), keras_dtln1), (Dtln2(), keras_dtln2)])
def test_keras_counts_as_many_parameters(network: Dtln1 | Dtln2, model: Any) -> None:
    assert network.weight_count == model(network).count_params()
