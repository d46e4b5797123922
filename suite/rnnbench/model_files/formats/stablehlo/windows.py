"""A convolution and a reduction of windows of StableHLO in NumPy, with any strides, padding and dilations."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from rnnbench.model_files import limits
from rnnbench.model_files.errors import ModelFileError
from rnnbench.model_files.formats.stablehlo.graph import Node

Array = np.ndarray
_NUMBERS = re.compile(r"conv<\[(.*?)\]x\[(.*?)\]->\[(.*?)\]>")


def convolution(node: Node, inputs: Sequence[Array]) -> Array:
    """Raises ModelFileError for groups of the batch."""
    dimensions = _NUMBERS.search(node.attributes["dimension_numbers"])
    if dimensions is None or node.attributes.get("batch_group_count", 1) != 1:
        raise ModelFileError("a convolution in groups of the batch is not computed here")
    x_axes, w_axes, y_axes = ([name.strip() for name in dimensions[side].split(",")] for side in (1, 2, 3))
    spatial = [str(axis) for axis in range(len(x_axes) - 2)]
    x = inputs[0].transpose([x_axes.index(name) for name in ("b", "f", *spatial)])
    w = inputs[1].transpose([w_axes.index(name) for name in ("o", "i", *spatial)])
    for axis, turned in enumerate(node.attributes.get("window_reversal", ())):
        w = np.flip(w, 2 + axis) if turned else w
    strides, spread, gaps = (
        node.attributes.get(key, (1,) * len(spatial)) for key in ("window_strides", "lhs_dilation", "rhs_dilation")
    )
    windows = _windows(x, w.shape[2:], strides, spread, gaps, _padding(node, len(spatial)), np.zeros(()))
    groups = int(node.attributes.get("feature_group_count", 1))
    parts = zip(np.split(windows, groups, 1), np.split(w, groups, 0), strict=True)
    axes = list(range(2 + len(spatial), 2 + 2 * len(spatial)))
    summed = [np.tensordot(part, weights, ([1, *axes], list(range(1, w.ndim)))) for part, weights in parts]
    y = np.concatenate(summed, axis=-1)
    order = ["b", *spatial, "f"]
    return y.transpose([order.index(name) for name in y_axes])


def reduced_windows(node: Node, function: Any, x: Array, start: Array) -> Array:
    """Each window of x by one operation, such as a sum. Raises ModelFileError for windows of too many elements."""
    sizes = node.attributes["window_dimensions"]
    ones = (1,) * len(sizes)
    strides, spread, gaps = (
        node.attributes.get(key, ones) for key in ("window_strides", "base_dilations", "window_dilations")
    )
    windows = _windows(x[None, None], sizes, strides, spread, gaps, _padding(node, len(sizes)), start)[0, 0]
    if windows.size > limits.ELEMENTS:
        raise ModelFileError(f"windows of more than {limits.ELEMENTS:,} elements together are not computed here")
    reduced = function.reduce(windows, axis=tuple(range(len(sizes), 2 * len(sizes))))
    return np.asarray(function(reduced, start)).astype(x.dtype)


def _padding(node: Node, count: int) -> Array:
    return np.asarray(node.attributes.get("padding", np.zeros((count, 2), int)))


def _windows(
    x: Array,
    sizes: Sequence[int],
    strides: Sequence[int],
    spread: Sequence[int],
    gaps: Sequence[int],
    padding: Array,
    fill: Array,
) -> Array:
    """[batch, features, *places, *window]: what each element of the result reads. `fill` is around and between x."""
    wide = [max(0, (size - 1) * step + 1) for size, step in zip(x.shape[2:], spread, strict=True)]
    lengths = [size + int(low) + int(high) for size, (low, high) in zip(wide, padding, strict=True)]
    padded = np.full((*x.shape[:2], *lengths), fill, fill.dtype)
    source, target = [slice(None)] * 2, [slice(None)] * 2
    for size, step, (low, _), length in zip(x.shape[2:], spread, padding, lengths, strict=True):
        places = np.arange(size) * step + int(low)
        kept = np.flatnonzero((places >= 0) & (places < length))
        first, end = (int(kept[0]), int(kept[-1]) + 1) if len(kept) else (0, 0)
        source.append(slice(first, end))
        target.append(slice(first * step + int(low), (end - 1) * step + int(low) + 1, step) if len(kept) else slice(0))
    padded[tuple(target)] = x[tuple(source)]
    spans = [(size - 1) * gap + 1 for size, gap in zip(sizes, gaps, strict=True)]
    views = np.lib.stride_tricks.sliding_window_view(padded, spans, tuple(range(2, 2 + len(sizes))))
    steps = (slice(None, None, step) for step in strides)
    inner = (slice(None, None, gap) for gap in gaps)
    return views[(slice(None), slice(None), *steps, *inner)]
