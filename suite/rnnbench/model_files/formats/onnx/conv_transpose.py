"""ConvTranspose in NumPy: each place of the kernel adds a product of matrices to every so many places of the result.

ONNX's reference visits each element of the result in Python. In a network with transposed convolutions nearly all of
its time goes there. With several groups, it adds the bias of the first group to all, and keeps one channel of each.
Source: https://onnx.ai/onnx/operators/onnx__ConvTranspose.html.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

Sizes = Sequence[int]


def conv_transpose(
    self: Any,
    x: np.ndarray,
    w: np.ndarray,
    b: np.ndarray | None = None,
    *,
    auto_pad: str | None = None,
    dilations: Sizes | None = None,
    group: int | None = None,
    kernel_shape: Sizes | None = None,
    output_padding: Sizes | None = None,
    output_shape: Sizes | None = None,
    pads: Sizes | None = None,
    strides: Sizes | None = None,
) -> tuple[np.ndarray]:
    """y [batch, channels, …] of x [batch, channels, …] and w [channels of x, channels of a group of y, …]."""
    count = x.ndim - 2
    steps, gaps = strides or (1,) * count, dilations or (1,) * count
    added = output_padding or (0,) * count
    whole = _spread(x, w, group or 1, steps, gaps)
    lengths = [size + more for size, more in zip(whole.shape[2:], added, strict=True)]
    if not output_shape and auto_pad in ("SAME_UPPER", "SAME_LOWER"):
        output_shape = [size * step for size, step in zip(x.shape[2:], steps, strict=True)]
    if output_shape:
        total = [max(length - size, 0) for length, size in zip(lengths, output_shape, strict=True)]
        smaller, larger = [size // 2 for size in total], [size - size // 2 for size in total]
        first, last = (smaller, larger) if auto_pad == "SAME_UPPER" else (larger, smaller)
        lengths = [size + low + high for size, low, high in zip(output_shape, first, last, strict=True)]
    else:
        padding = [0] * (2 * count) if not pads or auto_pad == "VALID" else list(pads)
        first, last = padding[:count], padding[count:]
    y = np.zeros((*whole.shape[:2], *lengths), x.dtype)
    y[tuple(slice(size) for size in whole.shape)] = whole[tuple(slice(size) for size in y.shape)]
    kept = (slice(low, length - high) for low, length, high in zip(first, lengths, last, strict=True))
    y = y[(slice(None), slice(None), *kept)]
    return (y if b is None else y + b.reshape(-1, *(1,) * count),)


def _spread(x: np.ndarray, w: np.ndarray, groups: int, steps: Sizes, gaps: Sizes) -> np.ndarray:
    """The result without bias, before anything is cut from its sides or added to them."""
    sides = zip(x.shape[2:], w.shape[2:], steps, gaps, strict=True)
    lengths = [(size - 1) * step + (window - 1) * gap + 1 for size, window, step, gap in sides]
    y = np.zeros((x.shape[0], groups, w.shape[1], *lengths), x.dtype)
    parts = zip(np.split(x, groups, axis=1), np.split(w, groups), strict=True)
    for number, (part, weights) in enumerate(parts):
        products = np.moveaxis(np.tensordot(part, weights, ([1], [0])), x.ndim - 1, 1)
        for place in np.ndindex(*w.shape[2:]):
            starts = [at * gap for at, gap in zip(place, gaps, strict=True)]
            ends = [start + (size - 1) * step + 1 for start, size, step in zip(starts, x.shape[2:], steps, strict=True)]
            there = (slice(start, end, step) for start, end, step in zip(starts, ends, steps, strict=True))
            y[:, number][(slice(None), slice(None), *there)] += products[(..., *place)]
    return y.reshape(x.shape[0], groups * w.shape[1], *lengths)
