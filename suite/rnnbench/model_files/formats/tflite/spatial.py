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


def resized_bilinear(options: Any, inputs: Sequence[Any]) -> Sequence[Array]:
    """RESIZE_BILINEAR of x [batch, height, width, channels] to the sizes [height, width]."""
    x = inputs[0]
    for axis, size in enumerate(map(int, inputs[1]), 1):
        old = x.shape[axis]
        scale = (old - 1) / (size - 1) if options.AlignCorners() and size > 1 else old / size
        shift = 0.5 if options.HalfPixelCenters() else 0.0
        places = (np.arange(size) + shift) * scale - shift
        low, high = (np.clip(edge(places), 0, old - 1).astype(int) for edge in (np.floor, np.ceil))
        part = (places - low).reshape(-1, *[1] * (x.ndim - 1 - axis))
        x = np.take(x, low, axis) * (1 - part) + np.take(x, high, axis) * part
    return (x,)


def reversed_sequences(options: Any, inputs: Sequence[Any]) -> Sequence[Array]:
    """REVERSE_SEQUENCE: the first elements of each row backward, as many as its length."""
    x, lengths = inputs
    result = x.copy()
    axes = (options.BatchDim(), options.SeqDim())
    old, new = (np.moveaxis(array, axes, (0, 1)) for array in (x, result))
    for row, length in enumerate(map(int, lengths)):
        new[row, :length] = old[row, :length][::-1]
    return (result,)


def depth_to_space(options: Any, inputs: Sequence[Any]) -> Sequence[Array]:
    """DEPTH_TO_SPACE of x [batch, height, width, channels]: channels become blocks of places."""
    (x,), size = inputs, options.BlockSize()
    batch, height, width, channels = x.shape
    split = x.reshape(batch, height, width, size, size, channels // size**2)
    return (split.transpose(0, 1, 3, 2, 4, 5).reshape(batch, height * size, width * size, -1),)


def space_to_depth(options: Any, inputs: Sequence[Any]) -> Sequence[Array]:
    """SPACE_TO_DEPTH of x [batch, height, width, channels]: blocks of places become channels."""
    (x,), size = inputs, options.BlockSize()
    batch, height, width, channels = x.shape
    split = x.reshape(batch, height // size, size, width // size, size, channels)
    return (split.transpose(0, 1, 3, 2, 4, 5).reshape(batch, height // size, width // size, -1),)
