"""Programs of other frameworks, through TVM's importers into Relax: which routes there are, and what each can say."""

from __future__ import annotations

from rnnbench.backends.base import Request
from rnnbench.backends.shared import onnx_graphs
from rnnbench.backends.torch import export as torch_export

PACKAGES = {"torch": ("torch",), "onnx": ("onnx",)}
"""By route, the packages that it needs besides TVM itself."""
SOURCES = {"torch": torch_export.SOURCES, "onnx": onnx_graphs.SOURCES}
"""By route, the folder of the modules that make what is imported."""

NO_OPERATORS = "apache/tvm#20124"
"""Upstream, on the recurrent operators and control flow that the ONNX importer lacks."""


def refusal(request: Request) -> tuple[str, str]:
    """Why no importer makes a program of a request, and the upstream issue, if there is one; empty where one does."""
    if request.route == "torch":
        return torch_export.unsupported(request), ""
    if reason := onnx_graphs.unsupported(request):
        return reason, ""
    if request.strategy.time == "fused":
        return f"{_STOPS} {request.model.cell.upper()}", NO_OPERATORS
    if request.strategy.time != "unrolled":
        return f"{_STOPS} Scan or Loop", NO_OPERATORS
    return "", ""


_STOPS = "the build stops at the import, before anything is compiled: TVM's ONNX importer has no"


def stand_ins(request: Request) -> str:
    """What stands in for what the importers have no notion of; empty where nothing does."""
    found = []
    if request.strategy.time == "fused":
        found.append("TVM has no RNN operator: torch.export makes a copy of the cell for each step of it")
    if request.strategy.state == "stateful":
        found.append("imported functions are pure: the session holds the state's tensors")
    return "; ".join(found)
