"""ONNX graphs of every model and strategy: built in this one place, for all runtimes and importers that read them."""

from rnnbench.backends.onnx_graphs.authored import LoopOperator
from rnnbench.backends.onnx_graphs.counting import copies_named, described, lowered, operations
from rnnbench.backends.onnx_graphs.graph import build_graph
from rnnbench.backends.onnx_graphs.support import NEXT, copies, copy_name, unsupported

__all__ = [
    "NEXT",
    "LoopOperator",
    "build_graph",
    "copies",
    "copies_named",
    "copy_name",
    "described",
    "lowered",
    "operations",
    "unsupported",
]
