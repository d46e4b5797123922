"""What is in an ONNX model: operators by name, and what became of the time steps."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from rnnbench.backends.shared.lowered_form import describe_lowered
from rnnbench.backends.shared.onnx_graphs.support import COPY, QUANTISED_LSTM

FUSED_OPERATORS = ("LSTM", "GRU", "RNN", QUANTISED_LSTM, "LinearAttention", "CausalConvWithState")
"""Operators that have all steps of a layer."""
LOOPS = ("Scan", "Loop")
_COPY = re.compile(rf"\b{COPY}\d+(?=/)")


def operations(model: Any) -> dict[str, int]:
    """Nodes by operator, with those of inner graphs."""
    return dict(sorted(Counter(node.op_type for node in _nodes(model.graph)).items()))


def lowered(model: Any, time: str = "") -> str:
    """What became of the time steps of a time, as `Artifact.lowered` has it; `unrolled 0` where all were folded.

    A copy of a layer's body is where its nodes are: an optimiser keeps their names, or makes new names from them.
    """
    loops, straight, fused = list[int](), set[str](), False
    for node in model.graph.node:
        inside = set().union(*(copies_named(n.name for n in _nodes(graph)) for graph in _inner(node)))
        if node.op_type in LOOPS and inside:
            loops.append(len(inside))
        straight |= copies_named([node.name])
        fused |= node.op_type in FUSED_OPERATORS
    return describe_lowered(loops, len(straight), fused=fused, time=time) or "unrolled 0"


def copies_named(names: Iterable[str]) -> set[str]:
    """The copies of a layer's body that are in the names of nodes."""
    return {copy for name in names for copy in _COPY.findall(name)}


def _nodes(graph: Any) -> Iterator[Any]:
    for node in graph.node:
        yield node
        for inner in _inner(node):
            yield from _nodes(inner)


def _inner(node: Any) -> list[Any]:
    return [attribute.g for attribute in node.attribute if attribute.HasField("g")]
