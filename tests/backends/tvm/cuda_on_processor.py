"""Test code: the persistent kernel's source, built by the host's C++ compiler and run on a GPU that the processor plays.

`cuda_on_processor.h` says how, and what that does not show.
"""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from rnnbench.backends.tvm.persistent.layout import THREADS, Plan
from rnnbench.backends.tvm.persistent.source import ENTRY, arguments

HEADER = Path(__file__).with_name("cuda_on_processor.h")
WAITS_FOR_EVER, WROTE_BEYOND = 1, 2


class StuckError(RuntimeError):
    """Threads wait for each other for ever."""


class KernelOnProcessor:
    """A built kernel. Calling it runs a grid on flat float32 arrays, in the kernel's order.

    `order` 0 lets the first block run ahead of the others, 1 the last one. `barriers` counts those of all calls.
    """

    def __init__(self, library: Path, plan: Plan, order: int = 0) -> None:
        self._run = ctypes.CDLL(str(library)).run_grid
        self._plan = plan
        self.order = order
        self.barriers = 0

    def __call__(self, *arrays: np.ndarray) -> None:
        assert len(arrays) == len(arguments(self._plan.state))
        assert all(array.dtype == np.float32 and array.flags.c_contiguous for array in arrays)
        addresses = (ctypes.c_void_p * len(arrays))(*(array.ctypes.data for array in arrays))
        arrivals = ctypes.c_long()
        sizes = (self._plan.blocks, THREADS, self._plan.shared)
        result = self._run(addresses, *sizes, self.order, ctypes.byref(arrivals))
        if result == WAITS_FOR_EVER:
            raise StuckError
        assert result != WROTE_BEYOND, "something wrote beyond the shared memory"
        whole, rest = divmod(arrivals.value, self._plan.blocks)
        assert rest == 0, "a barrier that some blocks left out"
        self.barriers += whole


def build(text: str, plan: Plan, folder: Path) -> KernelOnProcessor:
    """The kernel of a plan whose source is `text`."""
    compiler = _compiler()
    names = arguments(plan.state)
    given = ", ".join([*(f"arrays[{index}]" for index in range(len(names))), "shared"])
    call = f"void processor::call(float** arrays, float* shared) {{ {ENTRY}({given}); }}\n"
    (folder / "kernel.cpp").write_text(f'#include "{HEADER}"\n{text}\n{call}')
    library = folder / "kernel.so"
    command = [compiler, "-std=c++17", "-O1", "-w", "-U_FORTIFY_SOURCE", "-fPIC", "-shared"]
    done = subprocess.run(
        [*command, "-o", str(library), str(folder / "kernel.cpp")], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return KernelOnProcessor(library, plan)


@cache
def _compiler() -> str:
    found = next((path for name in ("g++", "c++", "clang++") if (path := shutil.which(name))), None)
    if found is None:
        pytest.skip("no C++ compiler (g++, c++, clang++)")
    return found


def flat(arrays: Sequence[np.ndarray]) -> np.ndarray:
    return np.concatenate([array.ravel() for array in arrays]).astype(np.float32)
