"""Programs of other frameworks, through TVM's importers into Relax: the routes, and what each of them supports."""

from __future__ import annotations

from rnnbench.backends.base import Request
from rnnbench.backends.shared import onnx_graphs
from rnnbench.backends.torch import export as torch_export

PACKAGES = {"torch": ("torch",), "onnx": ("onnx",)}
"""By route, the packages that it needs besides TVM itself."""

NO_OPERATORS = "apache/tvm#20124"
"""The upstream issue of the recurrent operators and control flow that the ONNX importer lacks."""


NOT_IMPORTED = ("LSTM", "GRU", "RNN", "Loop", "Scan", "com.microsoft.DynamicQuantizeLSTM")
"""Operators that the importer of TVM 0.27 has no converter for."""
PRODUCTS = frozenset(
    (
        *("linear", "matmul", "mm", "addmm", "convolution", "conv1d", "conv2d", "conv_transpose1d", "conv_transpose2d"),
        *("lstm", "lstm_cell", "gru", "gru_cell", "rnn_tanh", "rnn_tanh_cell", "rnn_relu", "rnn_relu_cell"),
    )
)
"""ATen's operators that are products, or made of them: its torch importer asks Relax for float32 there."""


def unsupported(request: Request) -> tuple[str, str]:
    """Why the importer of a route makes no program of a request, and the upstream issue; empty where it does."""
    if request.route == "torch":
        return torch_export.unsupported(request) or _not_float32(request), ""
    if request.file is not None:
        missing = [name for name in request.file.operators if name in NOT_IMPORTED]
        return (f"{_STOPS} {missing[0]}.", NO_OPERATORS) if missing else ("", "")
    if reason := onnx_graphs.unsupported(request):
        return reason, ""
    if request.strategy.time == "fused":
        return f"{_STOPS} {request.stack.cell.upper()}.", NO_OPERATORS
    if request.strategy.time != "unrolled":
        return f"{_STOPS} Scan or Loop.", NO_OPERATORS
    return "", ""


def _not_float32(request: Request) -> str:
    """Which product of a file in another type of floats the torch importer would change; empty where it has none."""
    if request.file is None or not request.file.types & {"float16", "bfloat16", "float64"}:
        return ""
    products = [name for name in request.file.operators if name in PRODUCTS]
    return (
        f"TVM's torch importer (0.27) gives products in float32, whatever they are of: {products[0]}."
        if products
        else ""
    )


_STOPS = "The build stops at the import, before anything is compiled: TVM's ONNX importer has no"


def stand_ins(request: Request) -> str:
    """What stands in for what the importers do not have; empty where nothing has to."""
    sentences = []
    if request.strategy.time == "fused":
        sentences.append("TVM has no RNN operator: torch.export makes a copy of the cell for each step of it.")
    if request.strategy.state == "stateful":
        sentences.append("Imported functions are pure: the session holds the state's tensors.")
    return " ".join(sentences)
