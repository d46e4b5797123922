"""Test code: the persistent kernel's source, built by the host's C++ compiler, on a GPU that the processor emulates.

`cuda_on_processor.h` says how, and what that does not show.
"""

from __future__ import annotations

import atexit
import ctypes
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from waiting import PATIENCE_S

from rnnbench.backends.base import Artifact, InStream, Program, Request
from rnnbench.backends.shared import ChunkedProgram, of_one_step
from rnnbench.backends.tvm.buffers import memory_on
from rnnbench.backends.tvm.persistent.layout import BARRIER, THREADS, Gpu, Plan
from rnnbench.backends.tvm.persistent.session import PersistentSession
from rnnbench.backends.tvm.persistent.source import ENTRY, arguments, source
from rnnbench.cases.trial import Precision, State, Strategy
from rnnbench.rnn.reference import Trajectory, run_reference
from rnnbench.rnn.spec import Model
from rnnbench.rnn.weights import draw_inputs, draw_state, draw_weights

HEADER, REST = (Path(__file__).with_name(f"cuda_on_processor.{suffix}") for suffix in ("h", "cpp"))
WAITS_FOR_EVER, WROTE_BEYOND = 1, 2
UNTOUCHED = np.float32("nan")
SMALL = Gpu(processors=3, shared_bytes=48 * 1024)
TOLERANCE = 1e-6

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


def asked(model: Model, state: State = "stitched", chunk: int = 7, batch: int = 1) -> Request:
    strategy = Strategy("looped", state, chunk)
    return Request("tir", model, draw_weights(model, 1), strategy, batch, Precision.of("float32"), "cuda")


def reference(request: Request, x: np.ndarray, state: dict[str, np.ndarray] | None = None) -> Trajectory:
    return run_reference(request.model, request.weights, x, state)


def computes_the_network(program: ProgramOnProcessor, calls: int = 2) -> None:
    """Several calls from a state, the state after them, and bound calls, which go on from there."""
    request, chunk = program.request, program.request.strategy.chunk
    x = draw_inputs(request.model, calls * chunk, request.batch, seed=1)
    session = program.open()
    if request.strategy.state == "none":
        for part in np.split(x, calls):
            np.testing.assert_allclose(session.step({"x": part})["y"], reference(request, part).y, atol=TOLERANCE)
        return
    state = draw_state(request.model, request.batch, seed=3)
    session.set_state(state)
    expected = reference(request, x, state)
    np.testing.assert_allclose(session.step({"x": x})["y"], expected.y, atol=TOLERANCE)
    for name, array in session.get_state().items():
        np.testing.assert_allclose(array, expected.final[name], atol=TOLERANCE)
    bound = session.bind([{"x": x[:chunk]}, {"x": x[chunk : 2 * chunk]}])
    assert isinstance(bound, InStream)
    bound(), bound()
    expected = reference(request, x[: 2 * chunk], expected.final)
    np.testing.assert_allclose(bound.output()["y"], expected.y[chunk:], atol=TOLERANCE)


def replaced(honest: str, planted: str) -> Edit:
    """A fault to plant. The honest text is there once."""

    def edit(text: str) -> str:
        assert text.count(honest) == 1, f"{text.count(honest)} times: {honest}"
        return text.replace(honest, planted)

    return edit


def build(text: str, plan: Plan, folder: Path) -> KernelOnProcessor:
    """The kernel of a plan whose source is `text`."""
    given = ", ".join([*(f"arrays[{index}]" for index, _ in enumerate(arguments(plan.state))), "shared"])
    call = f"void processor::call(float** arrays, float* shared) {{ {ENTRY}({given}); }}\n"
    header, rest = _compiled_once()
    (folder / "kernel.cpp").write_text(f'#include "{header}"\n{text}\n{call}')
    _compile("-shared", "-o", str(folder / "kernel.so"), str(folder / "kernel.cpp"), str(rest))
    return KernelOnProcessor(folder / "kernel.so", plan)


@cache
def _compiled_once() -> tuple[Path, Path]:
    """A copy of the header, precompiled for g++ (others include the copy), and the object file of the rest.

    Together they are two thirds of a build.
    """
    folder = Path(tempfile.mkdtemp(prefix="rnnbench-test-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    header, rest = Path(shutil.copy(HEADER, folder)), folder / "rest.o"
    _compile("-x", "c++-header", "-o", f"{header}.gch", str(header))
    _compile("-c", "-o", str(rest), str(REST))
    return header, rest


def _compile(*arguments: str) -> None:
    command = [_compiler(), *("-std=c++17", "-O1", "-w", "-U_FORTIFY_SOURCE", "-fPIC"), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert done.returncode == 0, done.stderr


@cache
def _compiler() -> str:
    found = next((path for name in ("g++", "c++", "clang++") if (path := shutil.which(name))), None)
    if found is None:
        pytest.skip("no C++ compiler (g++, c++, clang++)")
    return found
