"""CUDA's driver, through NVIDIA's own bindings (package cuda-bindings, extra `cuda`): memory and launches on one GPU.

Source: CUDA Driver API, docs.nvidia.com/cuda/cuda-driver-api.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from rnnbench.devices.device import UnmeasuredError

Value = ctypes.c_uint64 | ctypes.c_uint32 | ctypes.c_float
"""An argument of a kernel."""
NON_BLOCKING = 1
"""CU_STREAM_NON_BLOCKING of CUstream_flags."""


class CudaDriver:
    """The first GPU, in its primary context, which frameworks share. Raises UnmeasuredError if there is none.

    A process that has made one must not fork.
    """

    def __init__(self) -> None:
        try:
            self._api: Any = import_module("cuda.bindings.driver")
        except ModuleNotFoundError as error:
            raise UnmeasuredError("cuda-bindings is not installed; pip install 'rnnbench[cuda]'.") from error
        try:
            self._call("cuInit", 0)
        except RuntimeError as error:  # The bindings raise it if there is no driver.
            raise UnmeasuredError(f"CUDA's driver does not start: {error}") from error
        self._device = self._driver_call("cuDeviceGet", 0)
        self._context = self._driver_call("cuDevicePrimaryCtxRetain", self._device)

    def attribute(self, name: str) -> int:
        """A property of the GPU, by the last words of its name (CUdevice_attribute)."""
        attribute = getattr(self._api.CUdevice_attribute, f"CU_DEVICE_ATTRIBUTE_{name}")
        return int(self._driver_call("cuDeviceGetAttribute", attribute, self._device))

    def allocate(self, nbytes: int) -> int:
        """Allocate `nbytes` zeros. Returns their address."""
        with self._current():
            address = int(self._driver_call("cuMemAlloc", nbytes))
            self._driver_call("cuMemsetD8", address, 0, nbytes)
            return address

    def fill(self, address: int, nbytes: int) -> None:
        """Write to all of these bytes, and wait until it is done."""
        with self._current():
            self._driver_call("cuMemsetD8", address, 0, nbytes)
            self._driver_call("cuCtxSynchronize")

    def kernels(self, ptx: str, names: Sequence[str]) -> list[Any]:
        """The kernels of a module, which the driver compiles for the GPU."""
        with self._current():
            module = self._driver_call("cuModuleLoadData", ptx.encode() + b"\0")
            return [self._driver_call("cuModuleGetFunction", module, name.encode()) for name in names]

    def launcher(self, kernel: Any, blocks: int, threads: int, arguments: Sequence[Value]) -> Callable[[], None]:
        """A function that runs the kernel and waits for its end. It reads the arguments' values at each call.

        The context stays the current one of this thread.
        """
        kept = tuple(arguments)
        addresses = (ctypes.c_void_p * max(1, len(kept)))(*map(ctypes.addressof, kept))
        self._driver_call("cuCtxSetCurrent", self._context)
        launch, synchronise, stream = self._api.cuLaunchKernel, self._api.cuStreamSynchronize, self._api.CUstream(0)

        def run(_alive: tuple[Value, ...] = kept) -> None:
            (started,) = launch(kernel, blocks, 1, 1, threads, 1, 1, 0, stream, ctypes.addressof(addresses), 0)
            (done,) = synchronise(stream)
            if started or done:
                raise UnmeasuredError(f"A program that measures the GPU failed: {started or done}.")

        return run

    def stream(self) -> int:
        """The handle of a new stream, whose work does not wait for that of the default stream."""
        with self._current():
            return int(self._driver_call("cuStreamCreate", NON_BLOCKING))

    def clock(self, stream: int) -> Callable[[Callable[[], object]], float]:
        """A function that times the work which a call queues in a stream, in seconds, by the GPU's events.

        An idle GPU begins at once, so gaps in which it waits for the host count too. Source: CUDA Driver API, "Event
        Management"; the resolution is around half a microsecond.
        """
        queue = self._api.CUstream(stream)
        with self._current():
            before, after = (self._driver_call("cuEventCreate", 0) for _ in range(2))

        def seconds(call: Callable[[], object]) -> float:
            with self._current():
                self._driver_call("cuEventRecord", before, queue)
            call()
            with self._current():
                self._driver_call("cuEventRecord", after, queue)
                self._driver_call("cuEventSynchronize", after)
                return float(self._driver_call("cuEventElapsedTime", before, after)) / 1000

        seconds(lambda: None)  # What a driver or a stream lacks for this is then known before any call is timed.
        return seconds

    def close(self) -> None:
        """Release the context. Its memory is freed unless a framework uses it too."""
        self._driver_call("cuDevicePrimaryCtxRelease", self._device)

    @contextmanager
    def _current(self) -> Iterator[None]:
        """Make the context the thread's current one, and restore the earlier one afterwards."""
        self._driver_call("cuCtxPushCurrent", self._context)
        try:
            yield
        finally:
            self._driver_call("cuCtxPopCurrent")

    def _driver_call(self, name: str, *arguments: Any) -> Any:
        try:
            return self._call(name, *arguments)
        except UnmeasuredError:
            raise
        except RuntimeError as error:  # As the bindings say that the driver is too old to have a function.
            raise UnmeasuredError(
                f"CUDA's driver cannot be asked for {name}: {error}. It may be older than the installed cuda-bindings."
            ) from error

    def _call(self, name: str, *arguments: Any) -> Any:
        error, *results = getattr(self._api, name)(*arguments)
        if error:
            raise UnmeasuredError(f"CUDA's {name} failed: {getattr(error, 'name', error)}.")
        return results[0] if results else None
