"""Convolutions over time, against PyTorch's over the steps of the ring and those of x."""

from __future__ import annotations

import numpy as np
import pytest
from drawn_layers import drawn, with_ring

from rnnbench.rnn.layers import DepthwiseTimeConvolution, LayerKind, TimeConvolution, TimeFrequencyConvolution


@pytest.mark.parametrize(
    ("kind", "groups"),
    [
        (TimeConvolution(4, 6, 3), 1),
        (TimeConvolution(4, 6, 2, "relu"), 1),
        (DepthwiseTimeConvolution(5, 4), 5),
        (DepthwiseTimeConvolution(5, 2, "relu"), 5),
    ],
)
def test_it_computes_what_pytorchs_conv1d_does(kind: LayerKind, groups: int) -> None:
    torch = pytest.importorskip("torch")
    layer = drawn(kind)
    weight = layer.weights["weight"]
    seen = torch.from_numpy(np.ascontiguousarray(with_ring(layer).transpose(1, 2, 0)))
    y = torch.nn.functional.conv1d(
        seen,
        torch.from_numpy(weight if weight.ndim == 3 else weight[:, None]),
        torch.from_numpy(layer.weights["bias"]),
        groups=groups,
    )
    if kind.activation == "relu":  # type: ignore[attr-defined]
        y = y.relu()
    np.testing.assert_allclose(layer.run(), y.permute(2, 0, 1).numpy(), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("span", [2, 5])
def test_over_frequencies_too_is_pytorchs_conv2d(span: int) -> None:
    torch = pytest.importorskip("torch")
    kind = TimeFrequencyConvolution(frequencies=5, channels=3, filters=2, taps=4, span=span, activation="relu")
    layer = drawn(kind)
    seen = with_ring(layer).reshape(-1, 3, 5, 3).transpose(1, 3, 0, 2)
    weight, bias = (torch.from_numpy(layer.weights[name]) for name in ("weight", "bias"))
    y = torch.nn.functional.conv2d(torch.from_numpy(np.ascontiguousarray(seen)), weight, bias).relu()
    expected = y.permute(2, 0, 3, 1).reshape(7, 3, -1).numpy()
    np.testing.assert_allclose(layer.run(), expected, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize(
    "kind",
    [TimeConvolution(4, 6, 3), DepthwiseTimeConvolution(5, 4), TimeFrequencyConvolution(5, 3, 2, 4, 2)],
)
def test_its_ring_has_the_last_inputs(kind: LayerKind) -> None:
    layer = drawn(kind)
    last = with_ring(layer)[1 - kind.taps :]  # type: ignore[attr-defined]
    np.testing.assert_array_equal(layer.final()["ring"], last.swapaxes(0, 1).reshape(len(layer.x[0]), -1))
