"""Slices and rows of StableHLO in NumPy whose places are values: read (`gather`) or written (`scatter`)."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from rnnbench.model_files.errors import ModelFileError
from rnnbench.model_files.formats.stablehlo.graph import Node, numbers

Array = np.ndarray


def _place(x: Array, starts: Sequence[Array], sizes: Sequence[int]) -> tuple[slice, ...]:
    """Where a slice of these sizes lies, moved to be within x."""
    firsts = (min(max(int(start), 0), all_ - size) for start, all_, size in zip(starts, x.shape, sizes, strict=True))
    return tuple(slice(first, first + size) for first, size in zip(firsts, sizes, strict=True))


def dynamic_slice(node: Node, inputs: Sequence[Array]) -> Array:
    """A slice of the first input. The others say where it starts; a start outside is moved inside."""
    return inputs[0][_place(inputs[0], inputs[1:], node.attributes["slice_sizes"])]


def dynamic_update(node: Node, inputs: Sequence[Array]) -> Array:
    """The first input with the second in the place of a slice of it. The others say where it starts."""
    x, update, *starts = inputs
    changed = x.copy()
    changed[_place(x, starts, update.shape)] = update
    return changed


def gather(node: Node, inputs: Sequence[Array]) -> Array:
    """One slice of the operand for each row of indices, as the specification says."""
    x, indices = inputs
    dims, sizes = node.attributes["dimension_numbers"], node.attributes["slice_sizes"]
    offset, collapsed, placed, over, starts = (
        numbers(dims, name)
        for name in (
            *("offset_dims", "collapsed_slice_dims", "start_index_map"),
            *("operand_batching_dims", "start_indices_batching_dims"),
        )
    )
    rows, along = _rows(indices, dims)
    batch = [axis for axis in range(len(node.types[0].shape)) if axis not in offset]
    order = [*batch, *offset]
    y = np.empty([node.types[0].shape[axis] for axis in order], x.dtype)
    for row in np.ndindex(*rows.shape[:-1]):
        first = [0] * x.ndim
        for axis, start in zip(placed, rows[row], strict=True):
            first[axis] = start
        for axis, other in zip(over, starts, strict=True):
            first[axis] = row[other - (other > along)]
        part = x[_place(x, [np.asarray(start) for start in first], sizes)]
        y[row] = part.reshape([size for axis, size in enumerate(part.shape) if axis not in (*collapsed, *over)])
    return y.transpose(np.argsort(order))


def scatter(node: Node, inputs: Sequence[Array]) -> Array:
    """Rows written into an array, as `x.at[i].set(row)` is lowered. Rows that lie outside are left out.

    Raises ModelFileError for rows that are combined with what is there, and for one that lies partly outside.
    """
    (body,) = node.regions
    if len(inputs) != 3 or body.nodes or body.results != body.arguments[1:]:
        raise ModelFileError(
            "a scatter that does more than write values into one array is not computed here; write what "
            "x.at[i].add(y) and its like give with x.at[i].set, or with jnp.where"
        )
    x, indices, updates = inputs
    dims = node.attributes["scatter_dimension_numbers"]
    window, inserted, placed, over, starts = (
        numbers(dims, name)
        for name in (
            *("update_window_dims", "inserted_window_dims", "scatter_dims_to_operand_dims"),
            *("input_batching_dims", "scatter_indices_batching_dims"),
        )
    )
    rows, along = _rows(indices, dims)
    kept = [axis for axis in range(x.ndim) if axis not in (*inserted, *over)]
    order = [*(axis for axis in range(updates.ndim) if axis not in window), *window]
    updates, y = updates.transpose(order), x.copy()
    for row in np.ndindex(*rows.shape[:-1]):
        first, sizes = [0] * x.ndim, [1] * x.ndim
        for axis, size in zip(kept, updates.shape[len(row) :], strict=True):
            sizes[axis] = size
        for axis, start in zip(placed, rows[row], strict=True):
            first[axis] = int(start)
        for axis, other in zip(over, starts, strict=True):
            first[axis] = row[other - (other > along)]
        bounds = list(zip(first, sizes, x.shape, strict=True))
        if all(at >= 0 and at + size <= all_ for at, size, all_ in bounds):
            y[tuple(slice(at, at + size) for at, size, _ in bounds)] = updates[row].reshape(sizes)
        elif all(at + size > 0 and at < all_ for at, size, all_ in bounds):
            raise ModelFileError("a scatter writes a part that lies partly outside, which compilers do differently")
    return y


def _rows(indices: Array, dims: str) -> tuple[Array, int]:
    """Indices with the axis along which one place is told as the last, and where that was."""
    match = re.search(r"index_vector_dim = (\d+)", dims)
    along = int(match[1]) if match else 0
    return (indices[..., None] if along == indices.ndim else np.moveaxis(indices, along, -1)), along
