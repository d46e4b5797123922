"""TVM's module before and after its pipeline, Relax's bytecode, and LLVM IR. The module is compiled once more."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rnnbench.backends.base import OperationStage, Program, Request
from rnnbench.backends.explanation import Explanation, IrStage, Unreadable, loops_in
from rnnbench.backends.shared import CUDA
from rnnbench.backends.tvm import llvm_ir
from rnnbench.backends.tvm.imported_module import imported_module
from rnnbench.backends.tvm.nvrtc import source_of
from rnnbench.backends.tvm.persistent.program import PersistentProgram, compiled_for_gpu
from rnnbench.backends.tvm.relax_module import relax_module
from rnnbench.backends.tvm.relax_operations import operations
from rnnbench.backends.tvm.tir_program import TirProgram, compiled_kernel
from rnnbench.backends.tvm.vm_program import compiled_module

AFTER = {
    "cpu": "After TVM's pipeline and this suite's schedule",
    CUDA: "After TVM's pipeline, with its default schedules",
}
_KERNEL = re.compile(r"__global__ [^;{]*\{")
_DEFINED = re.compile(r"^ *def (main\(.*\)(?: -> .*)?):$", re.MULTILINE)


def explain(program: Program, request: Request, folder: Path) -> Explanation:
    state = ""
    if request.strategy.state == "stateful" and not isinstance(program, (TirProgram, PersistentProgram)):
        state = "In arrays of the session, which the program overwrites or returns anew; a reset writes zeros."
    elif request.strategy.state != "none":
        state = "In buffers of the session; a reset fills them with zeros."
    if isinstance(program, TirProgram):
        function, ir = compiled_kernel(request)
        text = function.script()
        return Explanation(tuple(_DEFINED.findall(text)), state, _of_kernel(program, text, ir))
    if isinstance(program, PersistentProgram):
        function, executable = compiled_for_gpu(request)
        return Explanation(tuple(_DEFINED.findall(function.script())), state, _of_persistent(program, executable))
    module, _ = relax_module(request) if request.route == "relax" else imported_module(request)
    text = module.script()
    return Explanation(tuple(_DEFINED.findall(text)), state, _of_module(program, module, text, request.device))


def _of_kernel(program: TirProgram, text: str, ir: str) -> Iterator[IrStage]:
    operations = program.artifact.operations[OperationStage.INPUT]
    loops = loops_in(program.artifact.lowered)
    yield IrStage("tir", "The kernel that this suite writes: loops over buffers.", text, operations, "py", "def main")
    yield _llvm(ir, loops)


def _of_persistent(program: Program, executable: Any) -> Iterator[IrStage]:
    operations = program.artifact.operations[OperationStage.INPUT]
    loops = loops_in(program.artifact.lowered)
    meaning = "The kernel that this suite writes, as NVRTC gets it: all steps of a call in one launch."
    yield IrStage("cuda", meaning, source_of(executable), operations, "cu", "__global__", other_loops=loops)


def _of_module(program: Program, module: Any, text: str, device: str) -> Iterator[IrStage | Unreadable]:
    loops = loops_in(program.artifact.lowered)
    meaning = "The module that TVM is given: calls of operators. A loop is a function that calls itself."
    yield IrStage("relax", meaning, text, operations(module), "py", "def main", other_loops=loops)
    executable, final = compiled_module(module, device)
    yield IrStage(
        "compiled",
        f"{AFTER[device]}: calls of kernels, and each kernel as loops (TIR).",
        final.script(),
        operations(final),
        "py",
        "def main",
        other_loops=loops,
    )
    bytecode = executable.as_text()
    names = re.findall(r"^\s*(call|ret|goto|if)\b", bytecode, re.MULTILINE)
    counts = {name: names.count(name) for name in dict.fromkeys(names)}
    yield IrStage("bytecode", "What Relax's virtual machine runs.", bytecode, counts, other_loops=loops)
    if device == CUDA:
        source = source_of(executable)
        meaning = "The kernels as CUDA, which NVRTC compiles to machine code. Memory and launches are the bytecode's."
        yield IrStage("cuda", meaning, source, {"kernel": len(_KERNEL.findall(source))}, "cu", "__global__")
    else:
        yield Unreadable("llvm", "The kernels are one object file; route tir shows LLVM IR.")


def _llvm(ir: str, loops: int) -> IrStage:
    return IrStage(
        "llvm", "The kernel as LLVM IR, optimised.", ir, llvm_ir.operations(ir), "ll", "define ", other_loops=loops
    )
