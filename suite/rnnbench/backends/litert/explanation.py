"""A .tflite file's operators, and which of them XNNPACK takes over when the file is loaded."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rnnbench.backends.base import Program, Request
from rnnbench.backends.explanation import Explanation, IrStage, Unreadable, counted
from rnnbench.backends.litert.flatbuffer import Flatbuffer
from rnnbench.backends.litert.runtime import LitertProgram


def explain(program: Program, request: Request, folder: Path) -> Explanation:
    from ai_edge_litert.interpreter import Interpreter

    (path, *_) = program.files.program
    interpreter = Interpreter(model_path=str(path), num_threads=request.threads)
    functions = tuple(_function(name, interpreter) for name in interpreter.get_signature_list())
    state = ""
    shares_weights = isinstance(program, LitertProgram) and program.shares_weights
    if request.strategy.state == "stitched" and shares_weights:
        state = "In two sets of buffers: a call reads one and writes the other one; a reset fills them with zeros."
    elif request.strategy.state == "stitched":
        state = "In the arrays that the last call returned; a reset puts zeros in their place."
    elif request.strategy.state == "stateful" and "set_state" in interpreter.get_signature_list():
        state = "In variables of the model, of which each session has its own; a reset calls `set_state` with zeros."
    elif request.strategy.state == "stateful":
        state = "In variable tensors of the operators, or in arrays of the session; a reset sets them to zeros."
    return Explanation(functions, state, _stages(path, interpreter))


def _function(name: str, interpreter: Any) -> str:
    runner = interpreter.get_signature_runner(name)
    inputs, outputs = (
        ", ".join(f"{key} {tensor['dtype'].__name__} {tensor['shape'].tolist()}" for key, tensor in details.items())
        for details in (runner.get_input_details(), runner.get_output_details())
    )
    return f"{name}({inputs}) -> {outputs}"


def _stages(path: Path, interpreter: Any) -> Iterator[IrStage | Unreadable]:
    model = Flatbuffer(path.read_bytes())
    yield Unreadable("given", "TensorFlow's converter takes a SavedModel and gives a file; its MLIR stays inside it.")
    yield IrStage(
        "tflite",
        "The operators of the file, with what each reads and gives. A WHILE names the subgraphs of its body.",
        "".join(f"{line}\n" for line in model.listing()),
        model.operations(),
    )
    interpreter.allocate_tensors()
    planned = [str(details["op_name"]) for details in interpreter._get_ops_details()]
    yield IrStage(
        "planned",
        "The first subgraph as the interpreter loads it: what XNNPACK takes over is one node, DELEGATE.",
        "".join(f"{name}\n" for name in planned),
        counted(planned),
    )
    yield Unreadable("kernels", "XNNPACK's microkernels and LiteRT's own kernels are compiled libraries.")
