"""Route `tir`: the kernel of a request, compiled to a shared library, and the program that its sessions share."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from rnnbench.backends.base import Artifact, OperationStage, Program, ProgramFiles, Request
from rnnbench.backends.shared import ChunkedProgram, Stored, int8_notes, int8_operations, load_or_build, of_one_step
from rnnbench.backends.tvm import llvm_ir, store
from rnnbench.backends.tvm.activations import MAX_ERROR
from rnnbench.backends.tvm.buffers import Buffer
from rnnbench.backends.tvm.byte_sums import PRODUCTS
from rnnbench.backends.tvm.framework import import_tvm, lanes, registers, target
from rnnbench.backends.tvm.kernel import TILE, blocking, kernel, tile
from rnnbench.backends.tvm.packing import PackedLayer, is_joint, layout, pack, size
from rnnbench.backends.tvm.tir_session import TirSession
from rnnbench.rnn import Model

CONFIG = {"tirx.disable_cse_tir": True}
"""TVM's elimination of common subexpressions takes most of a build's time, and LLVM does the same later."""

MULTIPLIES = ("llvm.fmuladd",)
"""What multiplies by a weight that is float32 by then, whatever it is stored as."""
NOTES = {
    "bfloat16": (
        "Weights are stored in bfloat16, and become float32 in registers. Sums and gates are float32. h and c are "
        "rounded to bfloat16 in each step.",
    )
}


class TirProgram(ChunkedProgram):
    """A loaded kernel, and its weights in the layout that it reads."""

    def __init__(self, request: Request, stored: Stored, params: Buffer, build_tail: Callable[[], Program]) -> None:
        super().__init__(request, stored.artifact, stored.cached, build_tail)
        self.library = stored.folder / store.LIBRARY
        self.files = ProgramFiles((self.library, stored.folder / store.PARAMS))
        self.module = import_tvm().runtime.load_module(str(self.library))
        self.params = params

    def open(self) -> TirSession:
        return TirSession(self, self.module["main"], self.params)


def build_tir(request: Request, cache: Path) -> TirProgram:
    """The program of a supported request. Raises BuildError."""
    stored = load_or_build(store.folder(request, cache), partial(_compile, request))
    params = Buffer.filled(np.fromfile(stored.folder / store.PARAMS, np.float32))
    return TirProgram(request, stored, params, lambda: build_tir(of_one_step(request), cache))


def layers_of(request: Request) -> tuple[PackedLayer, ...]:
    """The layout of the weights in `params`."""
    blocks = blocking(request.strategy, request.batch, registers(), dtype_of(request))
    return layout(request.stack, lanes(), dtype_of(request), blocks, request.weights)


def packed(request: Request) -> Buffer:
    """The weights in the layout that the kernel reads."""
    layers = layers_of(request)
    buffer = Buffer(max(1, size(layers)))
    pack(layers, request.stack, request.weights, buffer.array)
    return buffer


def dtype_of(request: Request) -> str:
    """The name that `workload.dtype` has for the precision of a supported request."""
    return request.precision.uniform or request.precision.int8 or ""


def _compile(request: Request, folder: Path) -> Artifact:
    function, executable = _compiled(request)
    ir = executable.mod.inspect_source("ll")
    store.export(executable, folder)
    packed(request).array.tofile(folder / store.PARAMS)
    counted = {OperationStage.INPUT: _statements(function), OperationStage.COMPILED: llvm_ir.operations(ir)}
    return Artifact(
        source_digest=hashlib.sha256(function.script().encode()).hexdigest(),
        operations=counted,
        int8_operations=int8_operations(
            request, counted, PRODUCTS.values() if request.precision.activations else MULTIPLIES
        ),
        lowered=llvm_ir.lowered(ir),
        origin="kernel",
        math="approximate" if _approximates(request.stack) else "exact",
        flags=(str(target()), *(f"{name}={value}" for name, value in CONFIG.items())),
        notes=(*_notes(request), *NOTES.get(dtype_of(request), ()), *int8_notes(request)),
        hoisted=tile(request.strategy),
    )


def compiled_kernel(request: Request) -> tuple[Any, str]:
    """The kernel of a request, and its LLVM IR."""
    function, executable = _compiled(request)
    return function, executable.mod.inspect_source("ll")


def _compiled(request: Request) -> tuple[Any, Any]:
    tvm = import_tvm()
    function = kernel(
        request.stack,
        request.strategy,
        request.batch,
        lanes(),
        registers(),
        request.threads,
        dtype_of(request),
        request.weights,
    )
    with tvm.transform.PassContext(config=CONFIG):
        return function, tvm.compile(tvm.IRModule({"main": function}), target=target())


def _statements(function: Any) -> dict[str, int]:
    """Statements of a PrimFunc by kind."""
    counts: Counter[str] = Counter()
    waiting = [function.body]
    while waiting:
        statement = waiting.pop()
        parts = getattr(statement, "seq", None)
        if parts is None:
            counts[f"tirx.{type(statement).__name__}"] += 1
            parts = [statement.body] if hasattr(statement, "body") else []
        waiting.extend(parts)
    return dict(sorted(counts.items()))


def _approximates(model: Model) -> bool:
    return model.cell in ("lstm", "gru") or (model.cell == "rnn" and model.activation == "tanh")


def _notes(request: Request) -> tuple[str, ...]:
    model = request.stack
    if model.cell == "counter":
        return ()
    projection = f"The projection of x is outside the loop, {TILE} steps at a time; a step reads the recurrent weights."
    if is_joint(model, blocking(request.strategy, request.batch, registers(), dtype_of(request))):
        projection = "The blocks of the input's and the recurrent weights alternate: a step reads all in one pass."
    notes = [
        f"The weights are packed in blocks of {lanes()} lanes; biases are added up where that is possible.",
        projection,
        "Every other step reads the blocks of weights backwards, and so begins with those that the last step left in "
        "the cache.",
    ]
    if _approximates(model):
        notes.append(f"tanh and sigmoid are rational functions, within {MAX_ERROR:g} of the exact ones.")
    return tuple(notes)
