"""The keyword spotters against the published layers: those of Keras, in float64, with the same weights."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from rnnbench.rnn import Network, Weights, draw_inputs, draw_weights, run_reference
from rnnbench.rnn.networks.kws import LABELS, MEMORIES, KwsGru, KwsSvdf

keras: Any = pytest.importorskip("keras")
layers = keras.layers


def gru(network: KwsGru) -> Any:
    return keras.Sequential(
        [
            layers.Input((None, network.input), dtype="float64"),
            layers.GRU(network.hidden, return_sequences=True, name="gru", dtype="float64"),
            layers.Dense(128, name="dense1", dtype="float64"),
            layers.Dense(256, activation="relu", name="dense2", dtype="float64"),
            layers.Dense(LABELS, name="labels", dtype="float64"),
        ]
    )


def svdf(network: KwsSvdf) -> Any:
    """As `Svdf` of kws_streaming, each with a step of zeros before its first one for every step that it remembers."""
    model = keras.Sequential([layers.Input((None, network.input), dtype="float64")])
    for number, taps in enumerate(MEMORIES, start=1):
        model.add(layers.Dense(network.hidden, use_bias=False, name=f"frequency{number}", dtype="float64"))
        model.add(layers.ZeroPadding1D((taps - 1, 0), dtype="float64"))
        model.add(layers.DepthwiseConv1D(taps, name=f"time{number}", activation="relu", dtype="float64"))
        if number < len(MEMORIES):
            model.add(layers.Dense(network.hidden // 2, name=f"bottleneck{number}", dtype="float64"))
    model.add(layers.Dense(LABELS, name="labels", dtype="float64"))
    return model


def as_keras(layer: Any, arrays: dict[str, np.ndarray]) -> list[np.ndarray]:
    """A layer's arrays in Keras' layout, where the gates of a GRU are z r n."""
    if isinstance(layer, layers.GRU):
        reordered = {}
        for name, array in arrays.items():
            r, z, n = np.split(array, 3)
            reordered[name] = np.concatenate([z, r, n])
        biases = np.stack([reordered["bias_ih"], reordered["bias_hh"]])
        return [reordered["weight_ih"].T, reordered["weight_hh"].T, biases]
    if isinstance(layer, layers.DepthwiseConv1D):
        return [arrays["weight"].T[:, :, None], arrays["bias"]]
    return [arrays["weight"].T, *([arrays["bias"]] if "bias" in arrays else [])]


def run_keras(model: Any, weights: Weights, x: np.ndarray) -> np.ndarray:
    for layer in model.layers:
        prefix = f"{layer.name}_"
        arrays = {name.removeprefix(prefix): a for name, a in weights.arrays.items() if name.startswith(prefix)}
        if arrays:
            layer.set_weights(as_keras(layer, arrays))
    return np.asarray(model(x.swapaxes(0, 1))).swapaxes(0, 1)


@pytest.mark.parametrize(("network", "model"), [(KwsGru(input=3, hidden=5), gru), (KwsSvdf(input=3, hidden=6), svdf)])
def test_is_the_network_of_keras(network: Network, model: Any) -> None:
    weights, x = draw_weights(network, 0, "float64"), draw_inputs(network, 15, 2, 1, "float64")
    expected = run_keras(model(network), weights, x)
    np.testing.assert_allclose(run_reference(network, weights, x).y, expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize(("network", "model"), [(KwsGru(), gru), (KwsSvdf(), svdf)])
def test_keras_counts_as_many_parameters(network: Network, model: Any) -> None:
    assert network.weight_count == model(network).count_params()
