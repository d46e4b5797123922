"""The arrays of a user's model file, of x and states as the suite feeds them, over any framework's operations.

The suite has x [chunk, batch, sum of sizes] and reads y of this form; `FileArray.layout` says how each array of the
file lies. An operation that would change nothing is left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol, TypeVar

import numpy as np

from rnnbench.model_files import FileArray, FileNetwork

V = TypeVar("V")


class ArrayOps(Protocol[V]):
    """What a framework does with its arrays. `columns` and `joined` are of the last of three axes."""

    def reshaped(self, value: V, shape: Sequence[int]) -> V: ...
    def transposed(self, value: V, order: Sequence[int]) -> V: ...
    def columns(self, value: V, first: int, end: int) -> V: ...
    def cast(self, value: V, dtype: str) -> V: ...
    def joined(self, values: Sequence[V]) -> V: ...


def to_file(
    ops: ArrayOps[V], network: FileNetwork, x: V, states: Mapping[str, V], chunk: int, batch: int
) -> dict[str, V]:
    """The file's inputs by name, without its constants."""
    arrays, first = {}, 0
    for array in network.inputs:
        part = x if len(network.inputs) == 1 else ops.columns(x, first, first + array.size)
        first += array.size
        laid = _laid(ops, part, array, chunk, batch)
        arrays[array.name] = laid if array.dtype == network.dtype else ops.cast(laid, array.dtype)
    for state in network.states:
        arrays[state.before.name] = _laid(ops, states[state.name], state.before, chunk, batch)
    return arrays


def from_file(
    ops: ArrayOps[V], network: FileNetwork, got: Mapping[str, V], chunk: int, batch: int
) -> tuple[V, dict[str, V]]:
    """y, and the next states by the names of the states, of the file's outputs."""
    parts = [_result(ops, got[a.name], a, network.dtype, chunk, batch) for a in network.results]
    shapes = network.state_shapes(batch)
    states = {
        state.name: _read(ops, got[state.after.name], state.after, shapes[state.name], chunk, batch)
        for state in network.states
    }
    return parts[0] if len(parts) == 1 else ops.joined(parts), states


def native_shapes(network: FileNetwork, chunk: int, batch: int) -> dict[str, tuple[int, ...]]:
    """The shape of each input in the file's own order, without constants."""
    arrays = (*network.inputs, *(state.before for state in network.states))
    return {array.name: array.layout(chunk, batch).native for array in arrays}


def _laid(ops: ArrayOps[V], value: V, array: FileArray, chunk: int, batch: int) -> V:
    split, order, native = array.layout(chunk, batch)
    return ops.reshaped(_turned(ops, ops.reshaped(value, split), split, order), native)


def _result(ops: ArrayOps[V], value: V, array: FileArray, dtype: str, chunk: int, batch: int) -> V:
    """An output as a part of y, which has the widest type of all outputs."""
    part = _read(ops, value, array, (chunk, batch, array.size), chunk, batch)
    return part if array.dtype == dtype else ops.cast(part, dtype)


def _read(ops: ArrayOps[V], value: V, array: FileArray, shape: Sequence[int], chunk: int, batch: int) -> V:
    _, order, native = array.layout(chunk, batch)
    back = tuple(int(axis) for axis in np.argsort(order))
    return ops.reshaped(_turned(ops, ops.reshaped(value, native), native, back), shape)


def _turned(ops: ArrayOps[V], value: V, shape: Sequence[int], order: tuple[int, ...]) -> V:
    """Nothing where no axis of more than one element changes its place; the next reshape does the rest."""
    long = [axis for axis in order if shape[axis] > 1]
    if long == sorted(long):
        return value
    return ops.transposed(value, order)
