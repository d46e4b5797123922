"""Convolutions and pools of LiteRT in NumPy. Source: tensorflow/lite/kernels/internal/reference."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from rnnbench.model_files.formats.tflite.activation import activated
from rnnbench.model_files.formats.tflite.schema import require_schema

Array = np.ndarray


def conv_2d(options: Any, inputs: Sequence[Any]) -> Sequence[Array]:
    """x [batch, rows, columns, channels] by weights [outputs, height, width, channels of a group], and a bias. Source:
    reference/conv.h.
    """
    x, weights, bias = (*inputs, None)[:3]
    _, height, width, channels = weights.shape
    groups = x.shape[3] // channels
    parts = zip(np.split(_windows(options, x, height, width), groups, 3), np.split(weights, groups), strict=True)
    y = np.concatenate([np.einsum("bijchw,ohwc->bijo", part, own, optimize=True) for part, own in parts], axis=-1)
    return (activated(options.FusedActivationFunction(), y if bias is None else y + bias),)


def depthwise_conv_2d(options: Any, inputs: Sequence[Any]) -> Sequence[Array]:
    """x [batch, rows, columns, channels] by weights [1, height, width, outputs], each channel by itself. Source:
    reference/depthwiseconv_float.h.
    """
    x, weights, bias = (*inputs, None)[:3]
    _, height, width, outputs = weights.shape
    per_channel = weights[0].reshape(height, width, x.shape[3], outputs // x.shape[3])
    y = np.einsum("bijchw,hwcm->bijcm", _windows(options, x, height, width), per_channel, optimize=True)
    y = y.reshape(*y.shape[:3], outputs)
    return (activated(options.FusedActivationFunction(), y if bias is None else y + bias),)


def transpose_conv(options: Any, inputs: Sequence[Any]) -> Sequence[Array]:
    """Each element of x adds the weights, times itself, to a window of y. Source: reference/transpose_conv.h."""
    sizes, weights, x, bias = (*inputs, None)[:4]
    batch, rows, columns, outputs = (int(size) for size in sizes)
    _, height, width, _ = weights.shape
    strides = options.StrideH(), options.StrideW()
    same = _is_same(options)
    grown = [
        (size - 1) * step + length for size, step, length in zip(x.shape[1:3], strides, (height, width), strict=True)
    ]
    before = [max(0, g - size) // 2 if same else 0 for g, size in zip(grown, (rows, columns), strict=True)]
    whole = np.zeros((batch, max(grown[0], rows + before[0]), max(grown[1], columns + before[1]), outputs), x.dtype)
    for row in range(height):
        for column in range(width):
            part = np.einsum("bijc,oc->bijo", x, weights[:, row, column])
            lines = slice(row, row + strides[0] * x.shape[1], strides[0])
            whole[:, lines, column : column + strides[1] * x.shape[2] : strides[1]] += part
    y = whole[:, before[0] : before[0] + rows, before[1] : before[1] + columns]
    return (activated(options.FusedActivationFunction(), y if bias is None else y + bias),)


def max_pool_2d(options: Any, inputs: Sequence[Any]) -> Sequence[Array]:
    """The largest number of each window of x [batch, rows, columns, channels]. Source: reference/pooling.h."""
    x = np.asarray(inputs[0])
    least = -np.inf if x.dtype.kind == "f" else np.iinfo(x.dtype).min
    return (activated(options.FusedActivationFunction(), _pooled(options, x, least).max(axis=(4, 5))),)


def average_pool_2d(options: Any, inputs: Sequence[Any]) -> Sequence[Array]:
    """What is around x does not count."""
    counts = _pooled(options, np.ones_like(inputs[0], float), 0.0).sum(axis=(4, 5))
    sums = _pooled(options, inputs[0], 0.0).sum(axis=(4, 5))
    return (activated(options.FusedActivationFunction(), sums / counts),)


def _windows(options: Any, x: Array, height: int, width: int) -> Array:
    """[batch, rows, columns, channels, height, width]: what each element of a convolution reads."""
    strides, dilations = (options.StrideH(), options.StrideW()), (options.DilationHFactor(), options.DilationWFactor())
    spans = [(length - 1) * step + 1 for length, step in zip((height, width), dilations, strict=True)]
    padded = _padded(x, spans, strides, same=_is_same(options))
    views = np.lib.stride_tricks.sliding_window_view(padded, spans, (1, 2))
    return views[:, :: strides[0], :: strides[1], :, :: dilations[0], :: dilations[1]]


def _pooled(options: Any, x: Array, fill: float) -> Array:
    """[batch, rows, columns, channels, height, width]: the windows of x, with `fill` around it."""
    window, strides = (options.FilterHeight(), options.FilterWidth()), (options.StrideH(), options.StrideW())
    padded = _padded(x, window, strides, same=_is_same(options), fill=fill)
    return np.lib.stride_tricks.sliding_window_view(padded, window, (1, 2))[:, :: strides[0], :: strides[1]]


def _padded(x: Array, window: Sequence[int], strides: Sequence[int], *, same: bool, fill: float = 0.0) -> Array:
    """x [batch, height, width, channels] with what padding SAME puts around it: zeros, or `fill`."""
    sides = [(0, 0)]
    for size, length, stride in zip(x.shape[1:3], window, strides, strict=True):
        extra = max((-(-size // stride) - 1) * stride + length - size, 0) if same else 0
        sides.append((extra // 2, extra - extra // 2))
    return np.pad(x, [*sides, (0, 0)], constant_values=fill)


def _is_same(options: Any) -> bool:
    """Whether the padding is SAME."""
    return bool(options.Padding() == require_schema().Padding.SAME)
