"""What became of the time steps: read off the graph that TensorFlow executes, by the names of the cell's copies.

Every copy of the cell is built in a name scope of its own, and the names outlive the optimiser, lowering and XLA. In an
executed graph a While is no operation any more: it is a frame, which `Enter` opens and `Exit` leaves.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

from rnnbench.backends.shared import describe_lowered
from rnnbench.rnn.spec import Cell

TAG = "cell_copy_"
_ACTIVATION = "Tanh|Relu"
_LAST = {"lstm": _ACTIVATION, "gru": _ACTIVATION, "rnn": _ACTIVATION, "counter": "add"}
"""What a copy of each cell cannot do without its state. Products with x are hoisted, and merged with other copies'."""
_NO_WORK = {"Const", "Identity"}
"""What may bear an operation's name and is not the operation."""


def tags(name: str, cell: Cell) -> set[str]:
    """The copies that a node's name, or the source name of an HLO instruction, speaks for."""
    return set(re.findall(rf"\b{TAG}(\d+)/(?:{_LAST[cell]})", name))


def operations(graph: Any) -> dict[str, int]:
    """How often each operation stands in an executed GraphDef, with its loops as `While`."""
    counts = Counter(node.op for node in graph.node if node.op not in ("_Arg", "_Retval"))
    counts["While"] = len(_frames(graph))
    return {op: n for op, n in sorted(counts.items()) if n}


def lowered(graph: Any, cell: Cell) -> str:
    """What an executed GraphDef turned out to be."""
    work = {node.name: tags(node.name, cell) for node in graph.node if node.op not in _NO_WORK}
    frames = _frames(graph)
    loops = [set().union(*(work.get(name, set()) for name in names)) for names in frames.values()]
    inside = set().union(*frames.values())
    straight = set().union(*(found for name, found in work.items() if name not in inside))
    return describe_lowered([len(copies) for copies in loops if copies], len(straight))


def _frames(graph: Any) -> dict[str, set[str]]:
    """The nodes of each frame: all that is reached from its `Enter`s before an `Exit`."""
    consumers: dict[str, list[Any]] = {}
    for node in graph.node:
        for name in node.input:
            consumers.setdefault(name.lstrip("^").partition(":")[0], []).append(node)
    frames: dict[str, set[str]] = {}
    for enter in (node for node in graph.node if node.op == "Enter"):
        found = frames.setdefault(enter.attr["frame_name"].s.decode(), set())
        waiting = [enter]
        while waiting:
            node = waiting.pop()
            if node.name not in found and node.op != "Exit":
                found.add(node.name)
                waiting.extend(consumers.get(node.name, ()))
    return frames
