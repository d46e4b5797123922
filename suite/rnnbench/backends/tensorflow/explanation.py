"""What TensorFlow shows of a program: the traced functions, and the graph that its executor runs or the HLO of XLA."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from rnnbench.backends.base import OperationStage, Program, Request
from rnnbench.backends.explanation import Explanation, IrStage, Unreadable, counted
from rnnbench.backends.tensorflow import canonical, lowered, saved
from rnnbench.backends.tensorflow.ml_program import source_of
from rnnbench.backends.tensorflow.runtime import TensorflowProgram
from rnnbench.backends.tensorflow.support import is_compiled


def explain(program: Program, request: Request, folder: Path) -> Explanation:
    assert isinstance(program, TensorflowProgram)
    state = ""
    if request.strategy.state == "stateful":
        state = "In variables of the model, of which each session has its own; a reset assigns zeros to them."
    elif request.strategy.state == "stitched":
        state = "In the tensors that the last call returned; a reset puts zeros in their place."
    return Explanation((f"step: {program.function.function_type}",), state, _stages(program, request))


def _stages(program: TensorflowProgram, request: Request) -> Iterator[IrStage | Unreadable]:
    library = canonical.library(program.function, program.function.variables)
    yield IrStage(
        "traced",
        "The functions that were traced, before any optimisation: a While calls two of them.",
        "\n".join(_function(definition) for definition in library.functions),
        canonical.operations(library.functions),
        sources=_sources(node for definition in library.functions for node in definition.node_def),
    )
    if is_compiled(request.route):
        counts = program.artifact.operations[OperationStage.COMPILED]
        text = "".join(f"{name} {count}\n" for name, count in counts.items())
        yield IrStage("compiled-hlo", "Instructions of the HLO that XLA compiled, by opcode.", text, counts)
        yield Unreadable("hlo", "XLA's cache keeps the optimised HLO as a message and not as text.")
        return
    executed = saved.executed_graph(program.files)
    if executed is not None:
        yield IrStage(
            "executed",
            "The graph that the executor runs: optimised by Grappler, loops lowered to Enter, NextIteration and Exit.",
            _nodes(node for node in executed.node if node.op not in ("_Arg", "_Retval")),
            lowered.operations(executed),
            sources=_sources(node for node in executed.node if node.op not in ("_Arg", "_Retval")),
        )
    yield Unreadable("kernels", "TensorFlow's kernels and oneDNN are compiled libraries.")


def _sources(nodes: Iterable[Any]) -> dict[str, int]:
    return counted(source_of(node.name, node.op) for node in nodes)


def _function(function: Any) -> str:
    arguments = ", ".join(argument.name for argument in function.signature.input_arg)
    returned = ", ".join(f"{name}={value}" for name, value in sorted(function.ret.items()))
    return f"{function.signature.name}({arguments})\n{_nodes(function.node_def)}  return {returned}\n"


def _nodes(nodes: Any) -> str:
    return "".join(f"  {node.name} = {node.op}({', '.join(node.input)})\n" for node in nodes)
