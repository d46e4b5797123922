"""Arrays that programs read and write where they are: NumPy's on the processor, the runtime's own on another device."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from functools import partial
from typing import Any, Protocol

import numpy as np
import onnxruntime as ort

Shapes = Mapping[str, tuple[int, ...]]
"""Of the graph's inputs or outputs for an array, by name: one, or one for each of its rows."""


class Buffer(Protocol):
    """One array. Its place never changes."""

    values: Mapping[str, Any]
    """The OrtValue of each of the graph's inputs or outputs for it."""
    write: Callable[[np.ndarray], None]
    read: Callable[[], np.ndarray]
    """A copy, in the shape that sessions exchange."""


class HostBuffer:
    """An array of NumPy's, which the runtime uses without a copy. `write` and `read` are NumPy's own functions."""

    def __init__(self, array: np.ndarray, shapes: Shapes) -> None:
        self.values: Mapping[str, Any] = {
            name: ort.OrtValue.ortvalue_from_numpy(part) for name, part in _parts(array, shapes).items()
        }
        self.write: Callable[[np.ndarray], None] = partial(np.copyto, array)
        self.read: Callable[[], np.ndarray] = array.copy


class DeviceBuffer:
    """An array in the memory of a device. The runtime copies to it and from it, and waits for the copy."""

    def __init__(self, array: np.ndarray, shapes: Shapes, device: str, in_turn: AbstractContextManager[object]) -> None:
        self._shape, self._shapes = array.shape, shapes
        self._in_turn = in_turn
        with in_turn:
            self.values: Mapping[str, Any] = {
                name: ort.OrtValue.ortvalue_from_shape_and_type(shape, array.dtype, device, 0)
                for name, shape in shapes.items()
            }
        self.write: Callable[[np.ndarray], None] = self._write
        self.read: Callable[[], np.ndarray] = self._read
        self.write(array)

    def _write(self, array: np.ndarray) -> None:
        with self._in_turn:
            for name, part in _parts(np.ascontiguousarray(array), self._shapes).items():
                self.values[name].update_inplace(part)

    def _read(self) -> np.ndarray:
        with self._in_turn:
            return np.concatenate([value.numpy().ravel() for value in self.values.values()]).reshape(self._shape)


def _parts(array: np.ndarray, shapes: Shapes) -> dict[str, np.ndarray]:
    """Equal parts of a contiguous array, as views in these shapes."""
    rows = array.reshape(len(shapes), -1)
    return {name: row.reshape(shape) for (name, shape), row in zip(shapes.items(), rows, strict=True)}


def buffer(array: np.ndarray, shapes: Shapes, device: str, in_turn: AbstractContextManager[object]) -> Buffer:
    """A buffer that begins with the values of `array`, which is the buffer's own from now on.

    Copies to a device and from it are made within `in_turn`.
    """
    return HostBuffer(array, shapes) if device == "cpu" else DeviceBuffer(array, shapes, device, in_turn)
