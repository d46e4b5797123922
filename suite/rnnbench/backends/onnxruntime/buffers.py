"""Arrays that programs read and write where they are: NumPy's on the processor, the runtime's own on another device."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from typing import Any, Protocol

import numpy as np
import onnxruntime as ort


class Buffer(Protocol):
    """One array. Its place never changes."""

    value: Any
    """The OrtValue, in the shape of the graph's input or output."""
    write: Callable[[np.ndarray], None]
    read: Callable[[], np.ndarray]
    """A copy, in the shape that sessions exchange."""


class HostBuffer:
    """An array of NumPy's, which the runtime uses without a copy. `write` and `read` are NumPy's own functions."""

    def __init__(self, array: np.ndarray, shape: tuple[int, ...]) -> None:
        self.value = ort.OrtValue.ortvalue_from_numpy(array.reshape(shape))
        self.write: Callable[[np.ndarray], None] = partial(np.copyto, array)
        self.read: Callable[[], np.ndarray] = array.copy


class DeviceBuffer:
    """An array in the memory of a device. The runtime copies to it and from it, and waits for the copy."""

    def __init__(
        self, array: np.ndarray, shape: tuple[int, ...], device: str, in_turn: AbstractContextManager[object]
    ) -> None:
        self._shape, self._graph_shape = array.shape, shape
        self._in_turn = in_turn
        with in_turn:
            self.value = ort.OrtValue.ortvalue_from_shape_and_type(shape, array.dtype, device, 0)
        self.write: Callable[[np.ndarray], None] = self._write
        self.read: Callable[[], np.ndarray] = self._read
        self.write(array)

    def _write(self, array: np.ndarray) -> None:
        with self._in_turn:
            self.value.update_inplace(np.ascontiguousarray(array).reshape(self._graph_shape))

    def _read(self) -> np.ndarray:
        with self._in_turn:
            return np.array(self.value.numpy()).reshape(self._shape)


def buffer(array: np.ndarray, shape: tuple[int, ...], device: str, in_turn: AbstractContextManager[object]) -> Buffer:
    """A buffer that begins with the values of `array`, which is the buffer's own from now on.

    Copies to a device and from it are made within `in_turn`.
    """
    return HostBuffer(array, shape) if device == "cpu" else DeviceBuffer(array, shape, device, in_turn)
