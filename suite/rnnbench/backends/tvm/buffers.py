"""Arrays that TVM's programs are called with. On the processor they are flat arrays aligned to cache lines that NumPy
and TVM share, and on a GPU tensors that are copied to and from.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

ALIGNMENT = 64
"""Bytes. TVM's kernels assume this alignment of every argument, and NumPy's arrays do not have it."""

DEFAULT_STREAM = 0
"""TVM queues its work in CUDA's default stream, unless it is told another one."""


class Buffer:
    """`array`, flat, and `tensor`, the same memory as TVM's argument. The tensor keeps the array alive."""

    def __init__(self, size: int, shape: tuple[int, ...] | None = None, dtype: str = "float32") -> None:
        import tvm_ffi

        nbytes = size * np.dtype(dtype).itemsize
        raw = np.zeros(nbytes + ALIGNMENT, np.uint8)
        start = -raw.ctypes.data % ALIGNMENT
        self.array: np.ndarray = raw[start : start + nbytes].view(dtype)
        self.tensor: Any = tvm_ffi.from_dlpack(self.array if shape is None else self.array.reshape(shape))

    def write(self, values: np.ndarray) -> None:
        self.array[:] = values.ravel()

    @classmethod
    def filled(cls, values: np.ndarray) -> Buffer:
        buffer = cls(values.size)
        buffer.write(values)
        return buffer


class DeviceBuffer:
    """`tensor`, in a GPU's own memory."""

    def __init__(self, device: Any, shape: tuple[int, ...]) -> None:
        from rnnbench.backends.tvm.framework import import_tvm

        self.tensor: Any = import_tvm().runtime.tensor(np.zeros(shape, np.float32), device)

    def write(self, values: np.ndarray) -> None:
        """A copy from the host, complete when this returns."""
        self.tensor.copyfrom(np.ascontiguousarray(values).reshape(tuple(self.tensor.shape)))


@dataclass(frozen=True)
class Memory:
    """Where the arrays of a program are: in the processor's memory, or in a GPU's."""

    device: Any
    """TVM's device."""
    new: Callable[[tuple[int, ...]], Buffer | DeviceBuffer]
    """An array of zeros of a shape."""
    read: Callable[[Any], np.ndarray]
    """From a tensor to a copy that the caller owns. On a GPU it waits for what was queued."""


@cache
def memory_on(device: str) -> Memory:
    """The memory of the first device of a kind."""
    from rnnbench.backends.tvm.framework import import_tvm

    tvm = import_tvm()
    if device == "cpu":
        return Memory(tvm.cpu(), lambda shape: Buffer(int(np.prod(shape)), shape), as_numpy)
    gpu = tvm.device(device, 0)
    return Memory(gpu, lambda shape: DeviceBuffer(gpu, shape), lambda tensor: np.array(tensor.numpy()))


def as_numpy(tensor: Any) -> np.ndarray:
    """A copy, that the caller owns, of a tensor in the processor's memory."""
    return np.array(np.from_dlpack(tensor))


class StateBuffer(Buffer):
    """The arrays of a state one after the other, each also by name. The last element is the kernel's (its turn)."""

    def __init__(self, shapes: Mapping[str, tuple[int, ...]]) -> None:
        sizes = {name: int(np.prod(shape)) for name, shape in shapes.items()}
        super().__init__(sum(sizes.values()) + 1)
        self.parts: dict[str, np.ndarray] = {}
        end = 0
        for name, shape in shapes.items():
            self.parts[name] = self.array[end : end + sizes[name]].reshape(shape)
            end += sizes[name]
