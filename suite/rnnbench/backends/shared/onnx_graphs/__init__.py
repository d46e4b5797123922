"""ONNX graphs of every network and strategy, for all runtimes and importers that read them. It is not a backend.

- `unsupported` says what no graph can express, without importing anything.
- `build_graph` makes a graph. It needs `onnx`, and imports it when it is called. `Emitter` writes its nodes, and
  `ConvolvingEmitter` does so for readers whose Conv is better than slices and products, and `SummingEmitter` for one
  that calls a kernel for each sum, too.
- `operations`, `lowered`, `copies_named`: what a graph, or what an optimiser made of it, has in it.
- `graph_text`: a graph as text.
- `INT8_OPERATORS`: operators that multiply by int8 weights. `FUSED_OPERATORS`: those that have all steps of a layer.
- `NEXT`, `row_names`, `copy_name`: how its state outputs, the rows of a state, and the nodes of each copy of a layer's
  body are named.
"""

from rnnbench.backends.shared.onnx_graphs.authored import LoopOperator
from rnnbench.backends.shared.onnx_graphs.counting import FUSED_OPERATORS, copies_named, lowered, operations
from rnnbench.backends.shared.onnx_graphs.emitter import ConvolvingEmitter, Emitter, SummingEmitter
from rnnbench.backends.shared.onnx_graphs.graph import build_graph
from rnnbench.backends.shared.onnx_graphs.support import (
    COPY,
    INT8_OPERATORS,
    NEXT,
    copies,
    copy_name,
    lowered_or_given,
    origin,
    row_names,
    unsupported,
)
from rnnbench.backends.shared.onnx_graphs.text import graph_text
