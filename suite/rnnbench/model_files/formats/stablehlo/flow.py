"""What flows where in a module of StableHLO: which results are made of an argument by moving data alone."""

from __future__ import annotations

from rnnbench.model_files.flow import OUTERMOST, Flow, OperatorState, Value
from rnnbench.model_files.formats.stablehlo.graph import StablehloFile

_MOVES = frozenset(
    f"stablehlo.{name}"
    for name in (
        *("reshape", "transpose", "reverse", "concatenate", "broadcast_in_dim", "slice", "dynamic_slice", "pad"),
        *("dynamic_update_slice", "gather", "scatter", "select", "convert", "optimization_barrier"),
    )
)
"""Operations whose results are elements of their operands."""
_INSIDE = OUTERMOST + 1
"""The number of the graph of all values that are neither arguments nor results."""


def flow_of(file: StablehloFile) -> Flow:
    """The flow between arguments and results. A loop or a function that is called computes what it gives."""
    entry = file.functions[file.entry]
    loops = sum(node.kind == "stablehlo.while" for function in file.functions.values() for node in function.all_nodes())
    flow = Flow(states=[OperatorState("while", "", None, None)] * loops, knows_moves=True)
    before, after = [pair[0] for pair in file.states], [pair[1] for pair in file.states]
    names = zip((*file.inputs, *before), entry.arguments, strict=True)
    values = {number: Value(OUTERMOST, array.name) for array, number in names}

    def value(number: int) -> Value:
        return values.get(number, Value(_INSIDE, str(number)))

    for node in entry.nodes:
        for source in node.inputs if node.kind in _MOVES else ():
            for made in node.outputs:
                flow.move(value(source), value(made))
    for array, number in zip((*file.outputs, *after), entry.results, strict=True):
        flow.move(value(number), Value(OUTERMOST, array.name))
    return flow
