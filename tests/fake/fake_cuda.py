"""A fake of NVIDIA's bindings. It keeps what it is asked. A kernel takes a microsecond for each turn of its loop."""

from __future__ import annotations

import ctypes
import time
from types import SimpleNamespace
from typing import Any

H100 = {
    "MULTIPROCESSOR_COUNT": 132,
    "L2_CACHE_SIZE": 50 << 20,
    "MAX_SHARED_MEMORY_PER_MULTIPROCESSOR": 228 << 10,
    "MAX_REGISTERS_PER_MULTIPROCESSOR": 65_536,
}
"""Properties of an H100, by NVIDIA's tables of compute capabilities."""
TURN_S = 1e-6
PREFIX = "CU_DEVICE_ATTRIBUTE_"


class FakeCuda(SimpleNamespace):
    """The functions of `cuda.bindings.driver` that the suite calls. Each returns a tuple that begins with 0."""

    def __init__(self, broken: str = "") -> None:
        super().__init__()
        self.broken = broken
        self.memory: dict[int, int] = {}
        self.filled: list[tuple[int, int]] = []
        self.launched: list[tuple[str, int, tuple[int, ...]]] = []
        self.contexts: list[str] = []
        self.device_ms = 0.0
        """What the GPU's own clock says."""
        self.events: list[float | None] = []
        """When each event was recorded, by that clock; None before."""
        self.recorded: list[tuple[int, int]] = []
        """Each event that was recorded, and in which stream."""
        self.waited_for: set[int] = set()
        self.streams: list[int] = []
        """The flags of each stream that was made."""
        self.CUdevice_attribute = SimpleNamespace(**{PREFIX + name: name for name in H100})

    def __getattr__(self, name: str) -> Any:
        if name.startswith("cu"):
            return lambda *arguments: (0, f"{name} of {arguments[-1] if arguments else 'nothing'}")
        raise AttributeError(name)

    def cuInit(self, _flags: int) -> tuple[int]:
        if self.broken:
            raise RuntimeError(self.broken)
        return (0,)

    def cuDeviceGetAttribute(self, name: str, _device: object) -> tuple[int, int]:
        return 0, H100[name]

    def cuCtxPushCurrent(self, context: str) -> tuple[int]:
        self.contexts.append(context)
        return (0,)

    def cuCtxPopCurrent(self) -> tuple[int, str]:
        return 0, self.contexts.pop()

    def cuMemAlloc(self, nbytes: int) -> tuple[int, int]:
        assert self.contexts, "memory needs a current context"
        address = 4096 * (len(self.memory) + 1)
        self.memory[address] = nbytes
        return 0, address

    def cuMemsetD8(self, address: int, _value: int, nbytes: int) -> tuple[int]:
        assert nbytes <= self.memory[address]
        self.filled.append((address, nbytes))
        return (0,)

    def CUstream(self, number: int) -> int:
        return number

    def cuStreamCreate(self, flags: int) -> tuple[int, int]:
        assert self.contexts, "a stream needs a current context"
        self.streams.append(flags)
        return 0, 100 + len(self.streams)

    def cuEventCreate(self, _flags: int) -> tuple[int, int]:
        assert self.contexts, "an event needs a current context"
        self.events.append(None)
        return 0, len(self.events) - 1

    def cuEventRecord(self, event: int, stream: int) -> tuple[int]:
        self.events[event] = self.device_ms
        self.recorded.append((event, stream))
        self.waited_for.discard(event)
        return (0,)

    def cuEventSynchronize(self, event: int) -> tuple[int]:
        self.waited_for.add(event)
        return (0,)

    def cuEventElapsedTime(self, before: int, after: int) -> tuple[int, float]:
        assert after in self.waited_for, "not known before the event has come"
        return 0, self.events[after] - self.events[before]

    def cuModuleGetFunction(self, _module: object, name: bytes) -> tuple[int, str]:
        return 0, name.decode()

    def cuLaunchKernel(self, kernel: str, blocks: int, *rest: Any) -> tuple[int]:
        threads, arguments = rest[2], rest[7]
        given = _numbers(arguments, {"read_vectors": 5, "multiply_add": 3}.get(kernel, 0))
        self.launched.append((kernel, blocks * threads, given))
        time.sleep(given[-1] * TURN_S if given else 0.0)
        return (0,)

    def cuStreamSynchronize(self, _stream: int) -> tuple[int]:
        return (0,)


def _numbers(addresses: int, count: int) -> tuple[int, ...]:
    """The first 32 bits of each of so many arguments of a kernel, as numbers."""
    pointers = ctypes.cast(addresses, ctypes.POINTER(ctypes.c_void_p))
    return tuple(int(ctypes.cast(pointers[index], ctypes.POINTER(ctypes.c_uint32))[0]) for index in range(count))
