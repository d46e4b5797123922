"""ONNX's operators of windows that its reference computes wrongly for some forms, in NumPy.

MaxPool with strides of 1: the reference takes `pads` for two sides of each axis in turn, and has none in one axis. With
other strides and SAME_LOWER, it leaves out elements and pads at the wrong end.
LpPool: where a window is partly in the padding, it multiplies the rest up to a whole window.
LRN: it normalises as many channels as the batch has rows.
Source: onnx/reference/ops/op_{max_pool,lp_pool,lrn}.py and _op_common_pool.py (onnx 1.23), and the operators' texts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from rnnbench.model_files.errors import ModelFileError

Sizes = Sequence[int]


def max_pool(self: Any, x: np.ndarray, *, storage_order: int = 0, **windows: Any) -> tuple[np.ndarray]:
    """MaxPool of x [batch, channels, …]."""
    if any(self.onnx_node.output[1:]):
        raise ModelFileError("MaxPool that gives the places of its results, too (Indices), is not computed here")
    least = -np.inf if x.dtype.kind == "f" else np.iinfo(x.dtype).min
    return (_windows(x, least, **windows).max(axis=tuple(range(2 - x.ndim, 0))),)


def lp_pool(self: Any, x: np.ndarray, *, p: int = 2, **windows: Any) -> tuple[np.ndarray]:
    """LpPool of x [batch, channels, …]."""
    powers = np.power(_windows(np.abs(x), 0, **windows), p)
    return (np.power(powers.sum(axis=tuple(range(2 - x.ndim, 0))), 1 / p),)


def _windows(
    x: np.ndarray,
    fill: float,
    *,
    kernel_shape: Sizes,
    auto_pad: str = "NOTSET",
    ceil_mode: int = 0,
    dilations: Sizes | None = None,
    pads: Sizes | None = None,
    strides: Sizes | None = None,
) -> np.ndarray:
    """[batch, channels, …, …]: the place of each window, and those in it. `fill` is around x."""
    axes = tuple(range(2, x.ndim))
    steps, gaps = strides or [1] * len(axes), dilations or [1] * len(axes)
    spans = [(size - 1) * gap + 1 for size, gap in zip(kernel_shape, gaps, strict=True)]
    ends = list(pads or [0] * 2 * len(axes))
    pairs = zip(ends[: len(axes)], ends[len(axes) :], strict=True)
    sides, cuts = [(0, 0)] * 2, [slice(None)] * 2
    for size, span, step, pair in zip(x.shape[2:], spans, steps, pairs, strict=True):
        first, last = _same_padding(size, span, step, auto_pad) or (pair if auto_pad == "NOTSET" else (0, 0))
        rest = size + first + last - span
        count = -(-rest // step) + 1 if ceil_mode else rest // step + 1
        if ceil_mode and (count - 1) * step >= size + first:
            count -= 1  # A window begins in x, or before it.
        sides.append((first, max(last, (count - 1) * step + span - size - first)))
        cuts.append(slice(0, (count - 1) * step + 1, step))
    padded = np.pad(x, sides, constant_values=fill)
    windows = np.lib.stride_tricks.sliding_window_view(padded, spans, axes)
    result: np.ndarray = windows[(*cuts, *(slice(None, None, gap) for gap in gaps))]
    return result


def _same_padding(size: int, span: int, step: int, auto_pad: str) -> tuple[int, int] | None:
    """What SAME_UPPER and SAME_LOWER put before and behind an axis; None for other ways."""
    if auto_pad not in ("SAME_UPPER", "SAME_LOWER"):
        return None
    total = max((-(-size // step) - 1) * step + span - size, 0)
    smaller, larger = total // 2, total - total // 2
    return (smaller, larger) if auto_pad == "SAME_UPPER" else (larger, smaller)


def normalised_beside(
    self: Any, x: np.ndarray, *, size: int, alpha: float = 1e-4, beta: float = 0.75, bias: float = 1.0
) -> tuple[np.ndarray]:
    """LRN: by the squares of `size` channels around each one."""
    before = (size - 1) // 2
    squares = np.pad(np.square(x), [(0, 0), (before, size - 1 - before), *[(0, 0)] * (x.ndim - 2)])
    sums = np.lib.stride_tricks.sliding_window_view(squares, size, 1).sum(-1)
    return (x / (bias + alpha / size * sums) ** beta,)
