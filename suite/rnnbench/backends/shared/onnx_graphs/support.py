"""What an ONNX graph can express, answered before a graph is built. Imports no framework."""

from __future__ import annotations

from rnnbench.backends.base import Origin, Request
from rnnbench.cases import Strategy
from rnnbench.rnn import FUSED, Model

NEXT = "next_"
"""The prefix of a graph's state outputs: for state inputs `h` and `c` they are `next_h` and `next_c`."""

COPY = "copy"

QUANTISED_LSTM = "DynamicQuantizeLSTM"
"""ONNX Runtime's LSTM with int8 weights. It quantises x and h in each call."""
QUANTISED_MATMUL = "DynamicQuantizeMatMul"
"""ONNX Runtime's product with int8 weights. It quantises its other operand."""
FIXED_MATMUL = "MatMulIntegerToFloat"
"""ONNX Runtime's product of two 8-bit operands with their scales and zero points. It is the form that its optimiser
makes of a product between DequantizeLinear nodes; where a sum follows, it makes Gemm in float32 instead."""
INT8_OPERATORS = (QUANTISED_LSTM, QUANTISED_MATMUL, FIXED_MATMUL)
"""Operators that multiply by int8 weights."""

MAX_BYTES = 2**31 - 2**20
"""Bytes of weights. A protocol buffer holds 2 GiB, of which a little is left for the nodes."""
LARGEST_ELEMENT = 8
"""Bytes of a weight in float64."""


def unsupported(request: Request) -> str:
    """Why no graph can be built, or the empty string."""
    if request.file is not None:
        return ""
    if request.strategy.time == FUSED and isinstance(request.model, Model) and (reason := _no_operator(request.model)):
        return reason
    if LARGEST_ELEMENT * request.model.weight_count > MAX_BYTES:
        return "The weights are larger than the 2 GiB that one protocol buffer holds."
    return ""


def origin(request: Request) -> Origin:
    """Who wrote a graph's program."""
    if request.file is not None:
        return "imported"
    return "library" if request.strategy.time == FUSED else "authored"


def lowered_or_given(request: Request, lowered: str) -> str:
    """A lowered form; `given` for a user's file in which neither an operator nor a loop of it is found."""
    return "given" if request.file is not None and lowered in ("", "unrolled 0") else lowered


def row_names(name: str, rows: int) -> list[str]:
    """The inputs of a graph for a state array whose rows are inputs of their own."""
    return [name] if rows == 1 else [f"{name}.row{row}" for row in range(rows)]


def copies(strategy: Strategy) -> int:
    """Copies of a layer's body in one pass of the loop; all steps of the chunk where there is no loop."""
    return strategy.copies or strategy.chunk


def copy_name(number: int) -> str:
    """The prefix of the names of all nodes of a copy of a layer's body. Optimisers keep names, so it is found again."""
    return f"{COPY}{number}/"


def _no_operator(model: Model) -> str:
    if model.cell == "counter":
        return "ONNX has no operator for a counter; looped and unrolled graphs can express one."
    if model.projection:
        return "ONNX's LSTM operator has no projection; looped and unrolled graphs can express one."
    if model.cell_clip is not None:
        return "ONNX's LSTM operator clips the inputs of its gates and never its cell state (cell_clip)."
    return ""
