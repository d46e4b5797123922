"""The order of an ONNX graph's nodes: each behind those whose results it takes, as the standard asks.

Tools that add nodes write them at the end, such as the casts of `convert_float_to_float16(keep_io_types=True)`. ONNX
Runtime puts such a graph in order when it loads it; ONNX's checker and other runtimes refuse it.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from typing import Any

from rnnbench.model_files.formats.onnx.tensors import graphs, names_inside


def put_in_order(model: Any) -> None:
    """Sort the nodes of each graph that is out of order. A graph with a cycle stays: ONNX's checker refuses it."""
    for graph in graphs(model):
        order = _order(graph.node)
        if len(order) == len(graph.node) and order != [*range(len(order))]:
            nodes = [graph.node[place] for place in order]
            for node in nodes:  # Copies: `extend` of a field by its own elements would keep what is deleted.
                graph.node.add().CopyFrom(node)
            del graph.node[: len(nodes)]


def _order(nodes: Any) -> list[int]:
    """Places of the nodes in the first order that is right; fewer where some wait for each other."""
    makers = {name: place for place, node in enumerate(nodes) for name in node.output if name}
    waits, followers = [0] * len(nodes), [list[int]() for _ in nodes]
    for place, node in enumerate(nodes):
        needed = {makers[name] for name in (*node.input, *names_inside(node)) if name in makers} - {place}
        waits[place] = len(needed)
        for maker in needed:
            followers[maker].append(place)
    ready = [place for place, count in enumerate(waits) if not count]
    heapify(ready)
    order = []
    while ready:
        order.append(place := heappop(ready))
        for follower in followers[place]:
            waits[follower] -= 1
            if not waits[follower]:
                heappush(ready, follower)
    return order
