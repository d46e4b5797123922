"""IREE's runtime: loading a .vmfb, and streams through it.

A session is a VmContext with its own copy of the module's globals. The .vmfb is mapped into memory once and shared.
Calls go through `VmContext.invoke`, one level below `BoundModule`, whose packing of arguments takes longer than a small
step does.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import cache, partial
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np

from rnnbench.backends.base import (
    Allocated,
    Arrays,
    Artifact,
    Bound,
    BuildError,
    Program,
    ProgramFiles,
    Request,
    Session,
)
from rnnbench.backends.iree.cuda_context import around_calls
from rnnbench.backends.iree.hal_devices import HAL_DEVICES, hal_device
from rnnbench.backends.iree.transfers import StagedReads, read_mapped
from rnnbench.backends.shared import ChunkedProgram, ChunkedSession, SynchronousBound

VARIABLE = "IREE_PY_RUNTIME_FLAGS"
"""The variable with flags of the runtime's drivers. The runtime reads it when it is imported."""

ELEMENTS = {
    **{f"float{bits}": f"FLOAT_{bits}" for bits in (16, 32, 64)},
    **{f"{kind}{bits}": f"INT_{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)},
    "bool": "BOOL_8",
}
"""The runtime's names of the types of elements. Compiled functions take integers without a sign."""


def environment(request: Request) -> dict[str, str]:
    """The variables that a request's device and threads need. One thread is the caller's and needs none."""
    threads = {} if request.threads == 1 else {VARIABLE: f"--task_topology_group_count={request.threads}"}
    return {**threads, **hal_device(request).environment}


class IreeProgram(ChunkedProgram):
    """A loaded .vmfb."""

    def __init__(
        self, request: Request, artifact: Artifact, path: Path, cached: bool, build_tail: Callable[[], Program]
    ) -> None:
        import iree.runtime as rt

        super().__init__(request, artifact, cached, build_tail)
        self.files = ProgramFiles((path,))
        self.device = _device(request)
        self.around = around_calls(request.device)
        self.module = rt.VmModule.mmap(_instance(), str(path))

    def open(self) -> Session:
        return StitchedSession(self) if self.request.strategy.state == "stitched" else EnclosedSession(self)

    def close(self) -> None:
        super().close()
        del self.module


class _IreeSession(ChunkedSession):
    """A context, and arrays to and from its device."""

    def __init__(self, program: IreeProgram) -> None:
        import iree.runtime as rt

        super().__init__(program)
        self.rt = rt
        self._module = program.module
        around = program.around
        self._read: Callable[..., np.ndarray] = around(
            read_mapped if hal_device(program.request).is_mapped else StagedReads(program.device)
        )
        modules = [around(rt.create_hal_module)(_instance(), program.device), program.module]
        self._context = around(rt.VmContext)(_instance(), modules)
        self._invoke = around(self._context.invoke)
        self._function = program.module.lookup_function("step")
        self._copied = around(
            partial(
                program.device.allocator.allocate_buffer_copy,
                memory_type=rt.MemoryType.DEVICE_LOCAL,
                allowed_usage=int(rt.BufferUsage.DEFAULT),
                device=program.device,
            )
        )
        self._upload = partial(self._copied, element_type=getattr(rt.HalElementType, ELEMENTS[self._dtype.name]))

    def invoke(self, function: Any, arguments: Sequence[Any], results: int) -> Any:
        """The list of results of one call, device buffers in and out. Returns when the work is done."""
        outputs = self.rt.VmVariantList(results)
        self._invoke(function, self.packed(arguments), outputs)
        return outputs

    def packed(self, arguments: Sequence[Any]) -> Any:
        inputs = self.rt.VmVariantList(len(arguments))
        for argument in arguments:
            inputs.push_ref(argument)
        return inputs

    def to_device(self, array: np.ndarray) -> Any:
        """A copy of a C-contiguous array of x's type in a device buffer."""
        return self._upload(buffer=array)

    def state_to_device(self, array: np.ndarray) -> Any:
        """As `to_device`, of an array of any type."""
        return self._copied(buffer=array, element_type=getattr(self.rt.HalElementType, ELEMENTS[array.dtype.name]))

    def to_host(self, outputs: Any, index: int, dtype: str = "") -> np.ndarray:
        """A copy of one result, of x's type unless another one is said."""
        view = outputs.get_as_object(index, self.rt.HalBufferView)
        return self._read(view, np.dtype(dtype) if dtype else self._dtype)

    def _row_types(self) -> list[str]:
        """The type of each row of the state, as `_state_by_row` has them."""
        zeros = {spec.name: np.zeros(self._shape(spec), spec.dtype) for spec in self._states}
        return [row.dtype.name for row in self._state_by_row(zeros)]

    def close(self) -> None:
        super().close()
        for name in ("_invoke", "_context"):
            vars(self).pop(name, None)


class EnclosedSession(_IreeSession):
    """`step` takes x alone: the state is in the module's globals, or every call starts from zeros."""

    def reset(self) -> None:
        if self._streams:
            self._call("reset")

    def _advance(self, x: np.ndarray) -> np.ndarray:
        return self.to_host(self.invoke(self._function, [self.to_device(x)], 1), 0)

    def _read_state(self) -> dict[str, np.ndarray]:
        return self._state_of_flat(self.to_host(self._call("get_state"), 0))

    def _write_state(self, state: Arrays) -> None:
        self._call("set_state", self.to_device(self._flat_state(state)))

    def _call(self, name: str, *arguments: Any) -> Any:
        return self.invoke(self._module.lookup_function(name), arguments, 1)

    def _bind(self, ring: list[np.ndarray]) -> Bound:
        return EnclosedBound(self, self._invoke, self._function, [self.to_device(x) for x in ring])


class StitchedSession(_IreeSession):
    """`step` takes and returns the state. It stays in the buffer that the last call returned."""

    def __init__(self, program: IreeProgram) -> None:
        super().__init__(program)
        self.state: Any = None
        self.reset()

    def _advance(self, x: np.ndarray) -> np.ndarray:
        outputs = self.invoke(self._function, [self.to_device(x), self.state], 2)
        self.state = outputs.get_as_ref(1)
        return self.to_host(outputs, 0)

    def _read_state(self) -> dict[str, np.ndarray]:
        return self._state_of_flat(self.to_host(self.packed([self.state]), 0))

    def _write_state(self, state: Arrays) -> None:
        self.state = self.to_device(self._flat_state(state))

    def _bind(self, ring: list[np.ndarray]) -> Bound:
        return StitchedBound(self, self._invoke, self._function, [self.to_device(x) for x in ring])


class _IreeBound(SynchronousBound):
    """Calls on device buffers that were made beforehand, one for each chunk."""

    def __init__(self, session: _IreeSession, invoke: Callable[..., None], function: Any, ring: list[Any]) -> None:
        self._session = session
        self._invoke = invoke
        self._function = function
        self._ring = cycle(self._prepared(ring))
        self._list = session.rt.VmVariantList
        self._outputs = session.rt.VmVariantList(2)
        """The same for every call: the runtime empties it before it puts the results there."""

    def _prepared(self, ring: list[Any]) -> list[Any]:
        return ring

    def output(self) -> Arrays:
        return {"y": self._session.to_host(self._outputs, 0)}


class EnclosedBound(_IreeBound):
    """Calls that are one `invoke` with an argument list that was packed beforehand."""

    def _prepared(self, ring: list[Any]) -> list[Any]:
        return [self._session.packed([x]) for x in ring]

    def __call__(self) -> None:
        self._invoke(self._function, next(self._ring), self._outputs)


class StitchedBound(_IreeBound):
    """Calls that pack x and the state that the last call returned, and keep the state that they return."""

    _session: StitchedSession

    def __call__(self) -> None:
        session = self._session
        inputs = self._list(2)
        inputs.push_ref(next(self._ring))
        inputs.push_ref(session.state)
        self._invoke(self._function, inputs, self._outputs)
        session.state = self._outputs.get_as_ref(1)


@cache
def _instance() -> Any:
    import iree.runtime as rt

    return rt.VmInstance()


def allocated(device: str) -> Allocated | None:
    """What the device's allocator counts as the device's memory, less what it had before the first program: Mesa's
    Vulkan device has 64 MiB then. None on the processor, and in a build of the runtime without statistics."""
    driver = HAL_DEVICES[device].driver
    now, empty = (_counted(driver), _counted_when_empty(driver)) if driver else (None, None)
    return now.since(empty) if now is not None and empty is not None else None


@cache
def _counted_when_empty(driver: str) -> Allocated | None:
    """Called before a process's first program."""
    return _counted(driver)


def _counted(driver: str) -> Allocated | None:
    import iree.runtime as rt

    allocator = rt.get_device(driver).allocator
    if not allocator.has_statistics:
        return None
    count = allocator.statistics
    return Allocated(count["device_bytes_allocated"] - count["device_bytes_freed"], count["device_bytes_peak"])


def _device(request: Request) -> Any:
    """`local-sync` runs everything on the calling thread; `local-task` has as many workers as the environment says."""
    import iree.runtime as rt

    for name, value in environment(request).items():
        if value not in os.environ.get(name, "").split():
            raise BuildError(
                f"{request.device} with threads={request.threads} needs {name}={value} in the environment before the "
                f"runtime is imported"
            )
    if driver := hal_device(request).driver:
        _counted_when_empty(driver)
        return rt.get_device(driver)
    return rt.get_device("local-sync" if request.threads == 1 else "local-task")
