"""Test code: the source of the persistent kernel, built by the host's C++ compiler, on a GPU that the processor plays.

`cuda_on_processor.h` says how, and what that does not show.
"""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from waiting import PATIENCE_S

from rnnbench.backends.base import Artifact, Program, Request
from rnnbench.backends.shared import ChunkedProgram, of_one_step
from rnnbench.backends.tvm.buffers import memory_on
from rnnbench.backends.tvm.persistent.layout import BARRIER, THREADS, Gpu, Plan
from rnnbench.backends.tvm.persistent.session import PersistentSession
from rnnbench.backends.tvm.persistent.source import ENTRY, arguments, source

HEADER = Path(__file__).with_name("cuda_on_processor.h")
WAITS_FOR_EVER, WROTE_BEYOND = 1, 2
UNTOUCHED = np.float32("nan")

Edit = Callable[[str], str]


class StuckError(RuntimeError):
    """Threads wait for each other for ever."""


class KernelOnProcessor:
    """A built kernel. Calling it runs a grid on flat float32 arrays, in the order of `arguments`.

    With `order` 0 the first block and its first thread run ahead of the others, with 1 the last ones. `barriers` counts
    those of all calls.
    """

    def __init__(self, library: Path, plan: Plan) -> None:
        self._run = ctypes.CDLL(str(library)).run_grid
        self._plan = plan
        self.order = 0
        self.barriers = 0

    def __call__(self, *arrays: np.ndarray) -> None:
        assert len(arrays) == len(arguments(self._plan.state))
        *_, y, scratch = arrays
        y[:] = scratch[BARRIER:] = UNTOUCHED  # Nothing but the barrier's counter is kept from call to call.
        addresses = (ctypes.c_void_p * len(arrays))(*(array.ctypes.data for array in arrays))
        arrivals = ctypes.c_long()
        result = self._run(addresses, self._plan.blocks, THREADS, self._plan.shared, self.order, ctypes.byref(arrivals))
        if result == WAITS_FOR_EVER:
            raise StuckError
        assert result != WROTE_BEYOND, "something wrote beyond the shared memory"
        whole, rest = divmod(arrivals.value, self._plan.blocks)
        assert rest == 0, "some blocks left out a barrier"
        self.barriers += whole


class ProgramOnProcessor(ChunkedProgram):
    """The adapter's own session over such a kernel. `edit` changes the source, to plant a fault."""

    def __init__(self, request: Request, gpu: Gpu, folder: Path, edit: Edit = str) -> None:
        artifact = Artifact(source_digest="", operations={}, lowered="looped 1", origin="kernel", math="exact")
        super().__init__(request, artifact, False, partial(self._of_one_step, gpu, folder, edit))
        strategy = request.strategy
        self.plan = Plan(request.stack, strategy.state, strategy.chunk, request.batch, gpu)
        self.kernel = build(edit(source(self.plan)), self.plan, folder)
        packed = self.plan.pack(request.weights)
        assert packed.size == self.plan.params
        self._memory = memory_on("cpu")
        self._params = self._memory.new(packed.shape)
        self._params.write(packed)

    def open(self) -> PersistentSession:
        return PersistentSession(self, self.plan, self._call, self._memory)

    def _call(self, *tensors: Any) -> None:
        self.kernel(*(np.from_dlpack(tensor) for tensor in (self._params.tensor, *tensors)))

    def _of_one_step(self, gpu: Gpu, folder: Path, edit: Edit) -> Program:
        (folder / "tail").mkdir()
        return ProgramOnProcessor(of_one_step(self.request), gpu, folder / "tail", edit)


def build(text: str, plan: Plan, folder: Path) -> KernelOnProcessor:
    """The kernel of a plan whose source is `text`."""
    given = ", ".join([*(f"arrays[{index}]" for index, _ in enumerate(arguments(plan.state))), "shared"])
    call = f"void processor::call(float** arrays, float* shared) {{ {ENTRY}({given}); }}\n"
    (folder / "kernel.cpp").write_text(f'#include "{HEADER}"\n{text}\n{call}')
    flags = ("-std=c++17", "-O1", "-w", "-U_FORTIFY_SOURCE", "-fPIC", "-shared")
    command = [_compiler(), *flags, "-o", str(folder / "kernel.so"), str(folder / "kernel.cpp")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert done.returncode == 0, done.stderr
    return KernelOnProcessor(folder / "kernel.so", plan)


@cache
def _compiler() -> str:
    found = next((path for name in ("g++", "c++", "clang++") if (path := shutil.which(name))), None)
    if found is None:
        pytest.skip("no C++ compiler (g++, c++, clang++)")
    return found
