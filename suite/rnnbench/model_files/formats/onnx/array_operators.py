"""ONNX's operators that move the elements of arrays, in NumPy: those that its reference computes for some forms alone.

GatherElements: it has at most some dozen elements along the axis, and as many indices as elements along the others.
Pad: it has no sizes below zero, which take elements away.
Squeeze, Unsqueeze before version 13: it takes the axes one after the other, though each is one of the same array.
OneHot: its depth has to be an array without axes.
SequenceInsert: it puts what goes behind the last element before the first one.
Scatter, the older name of ScatterElements: it has none.
Split: it leaves out what is behind the last part, and counts sizes below zero from the end.
Source: onnx/reference/ops/op_*.py of each operator (onnx 1.23), and the texts of the operators.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from rnnbench.model_files.errors import ModelFileError
from rnnbench.model_files.formats.onnx.file import require_onnx


def gathered(self: Any, data: np.ndarray, indices: np.ndarray, *, axis: int = 0) -> tuple[np.ndarray]:
    """GatherElements: each index stands for its own place, with itself in place of that along `axis`."""
    places: list[np.ndarray] = list(np.indices(indices.shape, sparse=True))
    places[axis] = indices
    return (data[tuple(places)],)


def scattered(
    self: Any, data: np.ndarray, indices: np.ndarray, updates: np.ndarray, *, axis: int = 0
) -> tuple[np.ndarray]:
    """Scatter of the versions 9 and 10."""
    return (require_onnx("onnx.reference.ops.op_scatter_elements").scatter_elements(data, indices, updates, axis),)


def padded(
    self: Any,
    data: np.ndarray,
    given: np.ndarray | None = None,
    constant: np.ndarray | None = None,
    axes: np.ndarray | None = None,
    *,
    pads: Sequence[int] = (),
    value: float = 0.0,
    mode: str = "constant",
) -> tuple[np.ndarray]:
    """Pad. Before version 11 the sizes and the value are attributes. They are those before all axes, then behind."""
    sizes = [int(size) for size in (pads if given is None else given)]
    places = range(data.ndim) if axes is None else [int(axis) % data.ndim for axis in axes]
    sides = [(0, 0)] * data.ndim
    for place, *ends in zip(places, sizes[: len(places)], sizes[len(places) :], strict=True):
        sides[place] = (ends[0], ends[1])
    kept = (slice(max(-first, 0), size - max(-last, 0)) for size, (first, last) in zip(data.shape, sides, strict=True))
    data, added = data[tuple(kept)], [(max(first, 0), max(last, 0)) for first, last in sides]
    if mode != "constant":
        return (np.pad(data, added, mode),)  # type: ignore[call-overload]
    return (np.pad(data, added, constant_values=value if constant is None else np.ravel(constant)[0]),)


def parted(
    self: Any,
    x: np.ndarray,
    given: np.ndarray | None = None,
    *,
    axis: int = 0,
    split: Sequence[int] = (),
    num_outputs: int | None = None,
) -> tuple[np.ndarray, ...]:
    """Split. Before version 13 the sizes of the parts are an attribute. Without sizes all parts but the last are equal.

    Raises ModelFileError if the parts are not the whole.
    """
    size, count = x.shape[axis], len(self.onnx_node.output)
    sizes = [int(part) for part in (split if given is None else given)]
    if not sizes:
        each = -(-size // count)
        sizes = [*[each] * (count - 1), size - each * (count - 1)]
    if len(sizes) != count or min(sizes) < 0 or sum(sizes) != size or num_outputs not in (None, count):
        raise ModelFileError(
            f"Split makes {count} parts of the sizes {sizes} of {list(x.shape)} along axis {axis}; their sum has to be "
            f"{size}, without a size below zero"
        )
    return tuple(np.split(x, np.cumsum(sizes)[:-1], axis))


def squeezed(self: Any, x: np.ndarray, *, axes: Sequence[int] = ()) -> tuple[np.ndarray]:
    """Squeeze whose axes are an attribute."""
    return (np.squeeze(x, tuple(axes) or None),)


def unsqueezed(self: Any, x: np.ndarray, *, axes: Sequence[int]) -> tuple[np.ndarray]:
    """Unsqueeze whose axes are an attribute: those of its result."""
    return (np.expand_dims(x, tuple(axes)),)


def inserted(self: Any, sequence: Sequence[Any], tensor: Any, position: Any = None) -> tuple[list[Any]]:
    """SequenceInsert; behind all elements where no position is given."""
    values = list(sequence)
    values.insert(len(values) if position is None else int(np.ravel(position)[0]), tensor)
    return (values,)


def one_hot(
    self: Any, places: np.ndarray, depth: np.ndarray, values: np.ndarray, *, axis: int = -1
) -> tuple[np.ndarray]:
    """OneHot. A place below zero counts from the end."""
    count = int(np.ravel(depth)[0])
    axis = axis % (places.ndim + 1)
    there = np.arange(count).reshape(-1, *[1] * (places.ndim - axis))
    places = np.expand_dims(np.where(places < 0, places + count, places), axis)
    return (np.where(places == there, values[1], values[0]),)
