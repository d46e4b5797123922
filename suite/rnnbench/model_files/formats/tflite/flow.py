"""What flows where in a TFLite file: which outputs are made of an input by moving data alone."""

from __future__ import annotations

from collections import defaultdict

from rnnbench.model_files.flow import OUTERMOST, Flow, Value
from rnnbench.model_files.formats.tflite.graph import TfliteFile

_MOVES = frozenset(
    (
        *("RESHAPE", "SQUEEZE", "EXPAND_DIMS", "SPLIT", "SPLIT_V", "STRIDED_SLICE", "SLICE", "CONCATENATION", "PACK"),
        *("UNPACK", "GATHER", "GATHER_ND", "DYNAMIC_UPDATE_SLICE", "TRANSPOSE", "BROADCAST_TO", "TILE", "REVERSE_V2"),
        *("REVERSE_SEQUENCE", "PAD", "PADV2", "MIRROR_PAD", "SELECT", "SELECT_V2", "CAST", "QUANTIZE", "DEQUANTIZE"),
    )
)
"""Operators whose outputs are elements of their inputs. To quantise them is to move them, too."""
_INSIDE = OUTERMOST + 1
"""The number of the graph of all values that are neither inputs nor outputs."""


def flow_of(file: TfliteFile) -> Flow:
    """The flow between inputs and outputs. A loop or a branch computes what it gives."""
    flow, names = Flow(knows_moves=True), defaultdict[int, list[str]](list)
    for name, number in (*file.inputs.items(), *file.outputs.items()):
        names[number].append(name)

    def value(number: int) -> Value:
        return Value(OUTERMOST, names[number][0]) if number in names else Value(_INSIDE, str(number))

    for operator in file.graphs[file.main].operators:
        for source in operator.inputs if operator.name in _MOVES else ():
            for made in operator.outputs:
                flow.move(value(source), value(made))
    for number, (_, *others) in names.items():
        for other in others:
            flow.move(value(number), Value(OUTERMOST, other))
    return flow
