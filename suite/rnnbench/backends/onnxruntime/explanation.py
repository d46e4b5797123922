"""The graph that ONNX Runtime is given, and the one that it made of it, as ONNX's own text."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import onnx

from rnnbench.backends.base import Program, Request
from rnnbench.backends.explanation import Explanation, IrStage, Unreadable
from rnnbench.backends.onnxruntime.backend import ROUTES
from rnnbench.backends.onnxruntime.optimise import source_graph
from rnnbench.backends.onnxruntime.runtime import OnnxRuntimeProgram
from rnnbench.backends.shared.onnx_graphs import graph_text, operations


def explain(program: Program, request: Request, folder: Path) -> Explanation:
    assert isinstance(program, OnnxRuntimeProgram)
    ends = (program.runtime.get_inputs(), program.runtime.get_outputs())
    inputs, outputs = (", ".join(f"{array.name} {array.type} {array.shape}" for array in arrays) for arrays in ends)
    carried = "In two sets of buffers of the session: a call reads one and writes the other. A reset writes zeros."
    return Explanation(
        (f"run({inputs}) -> {outputs}",),
        "" if request.strategy.state == "none" else carried,
        _stages(program, request),
    )


def _stages(program: OnnxRuntimeProgram, request: Request) -> Iterator[IrStage | Unreadable]:
    source = source_graph(request, ROUTES[request.route])
    yield _graph("given", "The ONNX graph that the runtime is given.", source)
    optimised = onnx.load(program.files.program[0])
    yield _graph("optimised", "What its graph optimisations made of it: the file that is loaded.", optimised)
    yield Unreadable("kernels", "ONNX Runtime's kernels are compiled functions of its library, one for each node.")


def _graph(name: str, meaning: str, model: onnx.ModelProto) -> IrStage:
    return IrStage(name, meaning, graph_text(model), operations(model), "onnx.txt")
