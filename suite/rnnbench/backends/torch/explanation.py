"""What each route of torch keeps of a program as text: calls of kernels, a graph, or the C++ that Inductor wrote."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import torch

from rnnbench.backends.base import OperationStage, Program, Request
from rnnbench.backends.explanation import Explanation, IrStage, Unreadable, counted, loops_in
from rnnbench.backends.torch.counting import dispatched
from rnnbench.backends.torch.device import CPU
from rnnbench.backends.torch.inductor import network, tracing_settings
from rnnbench.backends.torch.network import example_inputs, module_to_trace, zero_input
from rnnbench.backends.torch.stream import TorchProgram

_PROGRAM_TEXT = {
    "eager": ("calls", "The calls into torch that Python makes: those before a loop, and those of one pass.", "txt"),
    "script": ("executed", "The graph that TorchScript's executor runs, after its optimisations.", "txt"),
    "compile": ("c++", "What Inductor wrote for the C++ compiler, and the calls of its kernels.", "cpp"),
    "aoti": ("c++", "What AOTInductor wrote for the C++ compiler, and the calls of its kernels.", "cpp"),
}
_PROGRAM_TEXT_ON_GPUS = {
    **_PROGRAM_TEXT,
    "compile": ("python", "What Inductor wrote: kernels for Triton, and the Python that calls them.", "py"),
}
_KERNELS = Unreadable("kernels", "torch's own kernels, oneDNN, MKL, cuBLAS and cuDNN are compiled libraries.")


def explain(program: Program, request: Request, folder: Path) -> Explanation:
    assert isinstance(program, TorchProgram)
    carried = "In tensors of the session"
    if request.strategy.state == "stateful":
        carried += ", which the program overwrites; a reset fills them with zeros."
    else:
        carried += ": those that the last call returned; a reset puts zeros in their place."
    ends = ", ".join(f"{spec.name} {spec.dtype} {list(spec.shape)}" for spec in program.signature.arrays)
    return Explanation(
        (f"route {request.route}, over torch tensors: {ends}",),
        "" if request.strategy.state == "none" else carried,
        _stages(program, request),
    )


def _stages(program: TorchProgram, request: Request) -> Iterator[IrStage | Unreadable]:
    if request.route == "eager" and request.strategy.time == "fused":
        yield _dispatched(program, request)
    elif request.file is not None and request.route == "eager":
        yield Unreadable("calls", "Python calls the operators of a .pt2 file one by one: the file is the program.")
    else:
        if request.route in ("compile", "aoti"):
            yield _exported(request)
        name, meaning, suffix = (_PROGRAM_TEXT if request.device == CPU.type else _PROGRAM_TEXT_ON_GPUS)[request.route]
        (kept,) = program.files.identity
        text = kept.read_text().partition("\n")[2]
        operations = program.artifact.operations[OperationStage.COMPILED]
        loops = 0 if operations.get("prim::Loop") else loops_in(program.artifact.lowered)  # In Python or C++.
        yield IrStage(name, meaning, text, operations, suffix, other_loops=loops)
    yield _KERNELS


def _dispatched(program: TorchProgram, request: Request) -> IrStage:
    x = zero_input(request)
    lengths = torch.full((request.batch,), request.strategy.chunk, dtype=torch.int64) if request.ragged else None
    kernels = dispatched(partial(program.stream().step, x, lengths))
    return IrStage(
        "calls",
        "The kernels that torch runs in one call of the program, in turn, with the shapes of their tensors.",
        "".join(f"{kernel.name} {[list(shape) for shape in kernel.shapes]}\n" for kernel in kernels),
        counted(kernel.name for kernel in kernels),
        other_loops=loops_in(program.artifact.lowered),
    )


def _exported(request: Request) -> IrStage:
    """The graph that torch.export traces, which is also what torch.compile does."""
    with tracing_settings(request):
        module = module_to_trace(request, network(request))
        exported = torch.export.export(module, example_inputs(request), strict=request.strategy.copies is not None)
    graph = exported.graph_module
    names = counted(str(node.target) for node in graph.graph.nodes if node.op == "call_function")
    text = graph.print_readable(print_output=False)
    return IrStage("exported", "The graph of ATen operators that torch.export traces.", text, names, "py")
