"""How the time steps were lowered: read from the graph that TensorFlow executes, by the names of a body's copies.

Every copy of a layer's body, or of a cell of Keras, is built in a name scope of its own. The optimiser, the lowering
and XLA preserve these names. In an executed graph, a While is not an operation: it is a frame, which starts at `Enter`
nodes and ends at `Exit` nodes.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

from rnnbench.backends.shared import describe_lowered

TAG = "cell_copy_"
KERAS = "Tanh|Relu"
"""Operations that show that a copy of a cell is there. Products with x do not: they are hoisted and merged."""
AUTHORED = f"{KERAS}|Sigmoid|MatMul|add"
"""The same of a layer's body, which has no product with x alone."""
OPERATORS = ("CudnnRNN", "BlockLSTM")
"""How the names of TensorFlow's recurrent operators begin: cuDNN's, and the LSTM for the processor."""
ARITHMETIC = rf"MatMul|Sigmoid|{KERAS}|{'|'.join(OPERATORS)}"
"""Parts of the names of operators that compute a network, fused ones and oneDNN's too (`_MklFusedMatMul`)."""
_NO_WORK = {"Const", "Identity"}
"""Nodes that may have an operation's name without being that operation."""


def tags(name: str, marks: str) -> set[str]:
    """The copies that are in the name of a node, or in the source name of an HLO instruction.

    `marks` is KERAS or AUTHORED.
    """
    return set(re.findall(rf"\b{TAG}(\d+)/(?:{marks})", name))


def operations(graph: Any) -> dict[str, int]:
    """The number of each operation in an executed GraphDef. Its loops are counted as `While`."""
    counts = Counter(node.op for node in graph.node if node.op not in ("_Arg", "_Retval"))
    counts["While"] = len(_frames(graph))
    return {op: n for op, n in sorted(counts.items()) if n}


def on_the_processor(graph: Any) -> list[str]:
    """The operators that compute a network and are placed on the processor, in an executed GraphDef."""
    placed = {node.op for node in graph.node if "device:CPU" in node.device and re.search(ARITHMETIC, node.op)}
    return sorted(placed)


def lowered(graph: Any, marks: str, time: str) -> str:
    """How the time steps of an executed GraphDef were lowered. `time` is the strategy's."""
    work = {node.name: tags(node.name, marks) for node in graph.node if node.op not in _NO_WORK}
    frames = _frames(graph)
    loops = [set().union(*(work.get(name, set()) for name in names)) for names in frames.values()]
    inside = set().union(*frames.values())
    straight = set().union(*(copies for name, copies in work.items() if name not in inside))
    fused = any(node.op.startswith(OPERATORS) for node in graph.node)
    return describe_lowered([len(copies) for copies in loops if copies], len(straight), fused=fused, time=time)


def _frames(graph: Any) -> dict[str, set[str]]:
    """The nodes of each frame: all that are reached from its `Enter` nodes before an `Exit` node."""
    consumers: dict[str, list[Any]] = {}
    for node in graph.node:
        for name in node.input:
            consumers.setdefault(name.lstrip("^").partition(":")[0], []).append(node)
    frames: dict[str, set[str]] = {}
    for enter in (node for node in graph.node if node.op == "Enter"):
        reached = frames.setdefault(enter.attr["frame_name"].s.decode(), set())
        waiting = [enter]
        while waiting:
            node = waiting.pop()
            if node.name not in reached and node.op != "Exit":
                reached.add(node.name)
                waiting.extend(consumers.get(node.name, ()))
    return frames
