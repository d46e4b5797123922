"""LiteRT's operators that move the places of an image, in NumPy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

Array = np.ndarray


def space_to_batch(x: Array, blocks: Array, sides: Array) -> Array:
    """Blocks of the axes after the first become rows of the batch."""
    count, rest = len(blocks), [(0, 0)] * (x.ndim - 1 - len(blocks))
    padded = np.pad(x, [(0, 0), *(tuple(map(int, side)) for side in sides), *rest])
    sizes = [part for size, block in zip(padded.shape[1 : count + 1], blocks, strict=True) for part in (-1, int(block))]
    sizes[::2] = [size // int(block) for size, block in zip(padded.shape[1 : count + 1], blocks, strict=True)]
    split = padded.reshape(padded.shape[0], *sizes, *padded.shape[count + 1 :])
    inner, outer = [2 + 2 * axis for axis in range(count)], [1 + 2 * axis for axis in range(count)]
    moved = split.transpose([*inner, 0, *outer, *range(1 + 2 * count, split.ndim)])
    return moved.reshape(-1, *sizes[::2], *padded.shape[count + 1 :])


def batch_to_space(x: Array, blocks: Array, crops: Array) -> Array:
    """BATCH_TO_SPACE_ND: blocks of x's batch become places of its next axes, less `crops` [axes, 2] at their ends."""
    count = len(blocks)
    split = x.reshape(*(int(block) for block in blocks), -1, *x.shape[1:])
    order = [count]
    for axis in range(count):
        order += [count + 1 + axis, axis]
    moved = split.transpose([*order, *range(2 * count + 1, split.ndim)])
    sizes = [size * int(block) for size, block in zip(x.shape[1 : count + 1], blocks, strict=True)]
    whole = moved.reshape(-1, *sizes, *x.shape[count + 1 :])
    kept = (slice(int(first), size - int(last)) for size, (first, last) in zip(sizes, crops, strict=True))
    return whole[(slice(None), *kept)]


def resized_nearest(options: Any, inputs: Sequence[Any]) -> Sequence[Array]:
    """RESIZE_NEAREST_NEIGHBOR of x [batch, height, width, channels] to the sizes [height, width]."""
    x, sizes = inputs[0], [int(size) for size in inputs[1]]
    for axis, size in enumerate(sizes, 1):
        old = x.shape[axis]
        aligned = options.AlignCorners() and size > 1
        scale = (old - 1) / (size - 1) if aligned else old / size
        places = (np.arange(size) + (0.5 if options.HalfPixelCenters() else 0.0)) * scale
        nearest = np.floor(places + 0.5) if aligned else np.floor(places)
        x = np.take(x, np.minimum(nearest, old - 1).astype(int), axis)
    return (x,)
