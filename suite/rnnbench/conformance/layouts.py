"""Layouts in memory that a caller's arrays may have, each with a function that copies arrays into it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.lib.stride_tricks import as_strided

from rnnbench.backends import Arrays
from rnnbench.conformance.feeding import PAGE

LayOut = Callable[[Arrays], Arrays]
"""Copies of the arrays of one call, or of one state, laid out in some way."""


def _reversed(x: np.ndarray) -> np.ndarray:
    return x[::-1, ::-1, ::-1].copy()[::-1, ::-1, ::-1]


def _reversed_steps(x: np.ndarray) -> np.ndarray:
    return x[::-1].copy()[::-1]


def _reversed_rows(x: np.ndarray) -> np.ndarray:
    return x[:, ::-1].copy()[:, ::-1]


def _reversed_inputs(x: np.ndarray) -> np.ndarray:
    return x[..., ::-1].copy()[..., ::-1]


def _every_second_step(x: np.ndarray) -> np.ndarray:
    return np.repeat(x, 2, axis=0)[::2]


def _strided(x: np.ndarray) -> np.ndarray:
    return np.repeat(x, 2, axis=2)[..., ::2]


def _offset(x: np.ndarray) -> np.ndarray:
    """Its second item begins a page, so it is aligned to its item size, and not to any larger size."""
    memory = np.empty(x.nbytes + PAGE, np.uint8)
    start = -(memory.ctypes.data + x.itemsize) % PAGE
    shifted = memory[start : start + x.nbytes].view(x.dtype).reshape(x.shape)
    shifted[...] = x
    return shifted


def _odd(x: np.ndarray) -> np.ndarray:
    """Not aligned even to its item size, as an array behind a header of odd length."""
    memory = np.empty(x.nbytes + 1, np.uint8)
    shifted = memory[1:].view(x.dtype) if x.itemsize == 1 else np.frombuffer(memory.data, x.dtype, x.size, offset=1)
    shifted = shifted.reshape(x.shape)
    shifted[...] = x
    return shifted


def _part(x: np.ndarray) -> np.ndarray:
    """The middle of an array that is larger in each dimension."""
    larger = np.zeros([size + 2 for size in x.shape], x.dtype)
    middle = larger[tuple(slice(1, -1) for _ in x.shape)]
    middle[...] = x
    return middle


def _read_only(x: np.ndarray) -> np.ndarray:
    copy = x.copy()
    copy.flags.writeable = False
    return copy


def of_each(lay_out: Callable[[np.ndarray], np.ndarray]) -> LayOut:
    """A layout that applies `lay_out` to every array."""
    return lambda arrays: {name: lay_out(array) for name, array in arrays.items()}


def named_backwards(arrays: Arrays) -> Arrays:
    """The same arrays in the reverse order of their names."""
    return dict(reversed(list(arrays.items())))


def _side_by_side(arrays: Arrays) -> Arrays:
    """All arrays of one dtype in one buffer. No array begins at the buffer's start."""
    parts: dict[str, np.ndarray] = {}
    for dtype in {array.dtype for array in arrays.values()}:
        same = {name: array for name, array in arrays.items() if array.dtype == dtype}
        buffer = np.concatenate([np.zeros(1, dtype), *(array.ravel() for array in same.values())])
        ends = 1 + np.cumsum([array.size for array in same.values()])
        for (name, array), end in zip(same.items(), ends, strict=True):
            parts[name] = buffer[end - array.size : end].reshape(array.shape)
    return {name: parts[name] for name in arrays}


LAYOUTS: dict[str, LayOut] = {
    "reversed in memory": of_each(_reversed),
    "with its first dimension reversed": of_each(_reversed_steps),
    "with its second dimension reversed": of_each(_reversed_rows),
    "with its last dimension reversed": of_each(_reversed_inputs),
    "every second step of another array": of_each(_every_second_step),
    "every second item of another array": of_each(_strided),
    "in Fortran's order": of_each(np.asfortranarray),
    "off any vector's boundary": of_each(_offset),
    "at an odd address": of_each(_odd),
    "a part of a larger array": of_each(_part),
    "read-only": of_each(_read_only),
    "side by side in one buffer": _side_by_side,
    "given last one first": named_backwards,
}
"""Each layout by its description in messages."""


def overlapping(x: np.ndarray, index: int) -> np.ndarray:
    """An array of the shape and some numbers of x [steps, batch, input], which share memory: windows that slide over a
    signal, one row for all rows, or one input for all inputs, by `index`. From 3 on, it is x itself."""
    if index == 0:
        return as_strided(x.ravel(), x.shape, (x.itemsize,) * x.ndim, writeable=False)
    one = {1: x[:, :1], 2: x[..., :1]}.get(index, x)
    return np.broadcast_to(one, x.shape) if one is not x else x
