"""Route `tir` on CUDA: the persistent kernel of a request for this machine's GPU, and its program."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from rnnbench.backends.base import Artifact, OperationStage, Program, ProgramFiles, Request
from rnnbench.backends.shared import (
    CUDA,
    ChunkedProgram,
    Stored,
    describe_lowered,
    gpu_to_compile_for,
    load_or_build,
    of_one_step,
)
from rnnbench.backends.tvm import nvrtc, store
from rnnbench.backends.tvm.buffers import Memory, memory_on
from rnnbench.backends.tvm.framework import import_tvm, target_of
from rnnbench.backends.tvm.persistent.kernel import compiled, kernel
from rnnbench.backends.tvm.persistent.layout import FLOAT, THREADS, WARPS, Gpu, Plan
from rnnbench.backends.tvm.persistent.session import PersistentSession
from rnnbench.backends.tvm.persistent.source import LAYER, source


class PersistentProgram(ChunkedProgram):
    """A loaded kernel and its weights on the GPU."""

    def __init__(self, request: Request, stored: Stored, plan: Plan, build_tail: Callable[[], Program]) -> None:
        super().__init__(request, stored.artifact, stored.cached, build_tail)
        library = stored.folder / store.LIBRARY
        self.plan = plan
        self.files = ProgramFiles((library, stored.folder / nvrtc.KERNELS, stored.folder / store.PARAMS))
        nvrtc.use_kernels(stored.folder, gpu_to_compile_for().capability)
        self._module = import_tvm().runtime.load_module(str(library))
        self._memory: Memory = memory_on(CUDA)
        params = np.fromfile(stored.folder / store.PARAMS, np.float32)
        self._params = self._memory.new(params.shape)
        self._params.write(params)

    def open(self) -> PersistentSession:
        return PersistentSession(self, self.plan, partial(self._module["main"], self._params.tensor), self._memory)


def build_persistent(request: Request, cache: Path) -> PersistentProgram:
    """The program of a supported request. Raises BuildError."""
    plan = plan_of(request)
    folder = store.folder(request, cache, multiprocessors=str(plan.gpu.processors))
    stored = load_or_build(folder, partial(_compile, request, plan))
    return PersistentProgram(request, stored, plan, lambda: build_persistent(of_one_step(request), cache))


def plan_of(request: Request) -> Plan:
    """How the kernel is spread over this machine's GPU. Raises BuildError where there is none."""
    strategy, capability = request.strategy, gpu_to_compile_for().capability
    return Plan(request.stack, strategy.state, strategy.chunk, request.batch, Gpu.of(capability, _multiprocessors()))


def compiled_for_gpu(request: Request) -> tuple[Any, Any]:
    """The kernel of a request as TIR, and its executable. Raises BuildError."""
    target = target_of(CUDA)
    nvrtc.use_nvrtc(str(target.attrs["arch"]))
    function = kernel(plan_of(request))
    return function, compiled(function, target)


def _multiprocessors() -> int:
    return int(import_tvm().device(CUDA, 0).multi_processor_count)


def _compile(request: Request, plan: Plan, folder: Path) -> Artifact:
    target, text = target_of(CUDA), source(plan)
    _, executable = compiled_for_gpu(request)
    store.export(executable, folder)
    nvrtc.keep_kernels(executable, folder, str(target.attrs["arch"]))
    plan.pack(request.weights).tofile(folder / store.PARAMS)
    layers = text.count(f"    {LAYER}")
    return Artifact(
        source_digest=hashlib.sha256(text.encode()).hexdigest(),
        operations={OperationStage.INPUT: {"layer": layers}, OperationStage.COMPILED: {"kernel": 1}},
        lowered=describe_lowered([1] * layers, 0),
        origin="kernel",
        math="exact",
        flags=(str(target), *nvrtc.FLAGS),
        notes=_notes(plan),
        hoisted=request.strategy.chunk,
    )


def _notes(plan: Plan) -> tuple[str, ...]:
    held, rows = plan.held(*plan.recurrent), sum(matrix.rows for matrix in plan.recurrent)
    registers, shared = WARPS * sum(part.registers for part in held), WARPS * sum(part.shared for part in held)
    through_l2 = f"the other {plan.read_bytes} bytes of a layer's recurrent weights are read through L2 in each step"
    barriers = "A barrier of all blocks ends each step."
    if plan.exchanged:
        barriers = "Each step has two barriers of all blocks: between its two products, and at its end."
    return (
        "One kernel runs the whole call. This suite wrote it in CUDA; TVM makes its launch, NVRTC its machine code.",
        f"It has {plan.blocks} blocks of {THREADS} threads, one to a multiprocessor, for {plan.units} units each.",
        f"Of its {rows} rows of recurrent weights, a block holds up to {registers} in registers and "
        f"{shared} in shared memory; {through_l2 if plan.read_bytes else 'none is read again'}.",
        f"A block has {FLOAT * plan.shared} bytes of shared memory. {barriers}",
        "The projection of x is computed for all steps before the first.",
    )
