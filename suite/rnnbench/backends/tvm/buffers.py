"""Memory that NumPy and TVM share: flat float32 arrays aligned to cache lines, and the tensors over them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

ALIGNMENT = 64
"""Bytes. TVM's kernels assume this alignment of every argument, and NumPy's arrays do not have it."""


class Buffer:
    """`array`, flat, and `tensor`, the same memory as TVM's argument. The tensor keeps the array alive."""

    def __init__(self, size: int, shape: tuple[int, ...] | None = None) -> None:
        import tvm_ffi

        raw = np.zeros(size * 4 + ALIGNMENT, np.uint8)
        start = -raw.ctypes.data % ALIGNMENT
        self.array = raw[start : start + size * 4].view(np.float32)
        self.tensor: Any = tvm_ffi.from_dlpack(self.array if shape is None else self.array.reshape(shape))

    @classmethod
    def filled(cls, values: np.ndarray) -> Buffer:
        buffer = cls(values.size)
        buffer.array[:] = values.ravel()
        return buffer


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
