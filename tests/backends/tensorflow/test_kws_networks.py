"""The keyword spotters against the published layers: those of Keras, in float64, with the same weights."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from rnnbench.rnn import Network, Weights, draw_inputs, draw_weights, run_reference
from rnnbench.rnn.networks.kws import KERNELS, LABELS, MEMORIES, KwsCrnn, KwsGru, KwsSvdf

keras: Any = pytest.importorskip("keras")
layers = keras.layers
WARM_UP = sum(taps - 1 for taps, _ in KERNELS)
"""Steps at which the convolutions of the CRNN see zeros from before a stream."""


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


def crnn(network: KwsCrnn, padded: bool = True) -> Any:
    """As `CRNN` of kws_streaming. With `padded`, a step of zeros before its first one for every step remembered."""
    model = keras.Sequential([layers.Input((None, network.input), dtype="float64")])
    model.add(layers.Reshape((-1, network.input, 1), dtype="float64"))
    for number, (taps, span) in enumerate(KERNELS, start=1):
        if padded:
            model.add(layers.ZeroPadding2D(((taps - 1, 0), (0, 0)), dtype="float64"))
        name = f"convolution{number}"
        model.add(layers.Conv2D(network.filters, (taps, span), name=name, activation="relu", dtype="float64"))
    frequencies = network.input - sum(span - 1 for _, span in KERNELS)
    model.add(layers.Reshape((-1, frequencies * network.filters), dtype="float64"))
    model.add(layers.GRU(network.hidden, return_sequences=True, name="gru", dtype="float64"))
    model.add(layers.Dense(128, name="dense1", dtype="float64"))
    model.add(layers.Dense(256, activation="relu", name="dense2", dtype="float64"))
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
    if isinstance(layer, layers.Conv2D):
        return [arrays["weight"].transpose(2, 3, 1, 0), arrays["bias"]]
    return [arrays["weight"].T, *([arrays["bias"]] if "bias" in arrays else [])]


def run_keras(model: Any, weights: Weights, x: np.ndarray) -> np.ndarray:
    for layer in model.layers:
        prefix = f"{layer.name}_"
        arrays = {name.removeprefix(prefix): a for name, a in weights.arrays.items() if name.startswith(prefix)}
        if arrays:
            layer.set_weights(as_keras(layer, arrays))
    return np.asarray(model(x.swapaxes(0, 1))).swapaxes(0, 1)


@pytest.mark.first(1)
@pytest.mark.parametrize(
    ("network", "model"),
    [
        (KwsGru(input=3, hidden=5), gru),
        (KwsSvdf(input=3, hidden=6), svdf),
        (KwsCrnn(input=7, filters=4, hidden=5), crnn),
    ],
)
def test_is_the_network_of_keras(network: Network, model: Any) -> None:
    weights, x = draw_weights(network, 0, "float64"), draw_inputs(network, 15, 2, 1, "float64")
    expected = run_keras(model(network), weights, x)
    np.testing.assert_allclose(run_reference(network, weights, x).y, expected, rtol=1e-10, atol=1e-12)


@pytest.mark.first(1)
@pytest.mark.parametrize(("network", "model"), [(KwsGru(), gru), (KwsSvdf(), svdf), (KwsCrnn(), crnn)])
def test_keras_counts_as_many_parameters(network: Network, model: Any) -> None:
    assert network.weight_count == model(network).count_params()


def test_a_stream_whose_gru_starts_after_the_warm_up_is_the_published_crnn_over_a_whole_clip() -> None:
    """Every later y: the published network leaves out the steps at which its convolutions would see zeros."""
    network = KwsCrnn(input=7, filters=4, hidden=5)
    weights, x = draw_weights(network, 0, "float64"), draw_inputs(network, 15, 2, 1, "float64")
    warm = run_reference(network, weights, x[:WARM_UP]).final
    y = run_reference(network, weights, x[WARM_UP:], {**warm, "gru_h": np.zeros_like(warm["gru_h"])}).y
    expected = run_keras(crnn(network, padded=False), weights, x)
    np.testing.assert_allclose(y, expected, rtol=1e-10, atol=1e-12)
