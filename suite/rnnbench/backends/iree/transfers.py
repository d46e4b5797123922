"""Reading results back from a device: from where they are, or through a buffer that the host can read."""

from __future__ import annotations

from typing import Any

import numpy as np


def read_mapped(view: Any, dtype: np.dtype[Any]) -> np.ndarray:
    """A copy of memory that the host can read. The mapping ends with its buffer, so it is copied before."""
    mapped = view.map()
    return np.array(mapped.asarray(view.shape, dtype))


class StagedReads:
    """Copies through a staging buffer. Memory of a device cannot be mapped: IREE refuses (PERMISSION_DENIED).

    `DeviceArray.to_host` would import NumPy's memory, which drivers refuse where it is not aligned to pages (3.13).
    """

    def __init__(self, device: Any) -> None:
        import iree.runtime as rt

        self._rt = rt
        self._device = device
        self._done = device.create_semaphore(0)
        self._copies = 0
        self._buffers: dict[int, Any] = {}
        """By size in bytes. They are kept: the driver takes longer to allocate one than to copy a small result."""

    def __call__(self, view: Any, dtype: np.dtype[Any]) -> np.ndarray:
        """Returns once the copy is done; what it reads was complete when the call that made it returned."""
        staging = self._staging(view.byte_length)
        self._copies += 1
        self._device.queue_copy(
            view.get_buffer(), staging, wait_semaphores=[], signal_semaphores=[(self._done, self._copies)]
        )
        self._done.wait(self._copies)
        return np.array(staging.map().asarray(view.shape, dtype))

    def _staging(self, nbytes: int) -> Any:
        if nbytes not in self._buffers:
            rt = self._rt
            self._buffers[nbytes] = self._device.allocator.allocate_buffer(
                rt.MemoryType.HOST_LOCAL | rt.MemoryType.DEVICE_VISIBLE,
                int(rt.BufferUsage.TRANSFER) | int(rt.BufferUsage.MAPPING),
                nbytes,
            )
        return self._buffers[nbytes]
