"""Which primitives a network needs: its layers run once over shapes alone."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np

from rnnbench.rnn.cells import MorePrimitives
from rnnbench.rnn.compound import CompoundNetwork
from rnnbench.rnn.network import Network, run_graph, state_by_layer

Shape = tuple[int, ...]


class _Shapes(MorePrimitives[Shape]):
    """Primitives over shapes. They note which of them are called that stacks of cells do not need."""

    def __init__(self) -> None:
        self.called: set[str] = set()

    def constant(self, array: np.ndarray) -> Shape:
        return array.shape

    def matmul(self, x: Shape, weight: Shape) -> Shape:
        if x[1] != weight[0]:
            raise ValueError(f"a product of {list(x)} and {list(weight)}")
        return x[0], weight[1]

    def add(self, a: Shape, b: Shape) -> Shape:
        if b not in (a, a[1:]):
            raise ValueError(f"an operation on {list(a)} and {list(b)}")
        return a

    mul = add

    def sub(self, a: Shape, b: Shape) -> Shape:
        if a != b:
            raise ValueError(f"a difference or quotient of {list(a)} and {list(b)}")
        return a

    def sigmoid(self, x: Shape) -> Shape:
        return x

    tanh = relu = sigmoid

    def clip(self, x: Shape, bound: float) -> Shape:
        return x

    def split(self, x: Shape, parts: int) -> list[Shape]:
        return [(x[0], x[1] // parts)] * parts

    def concat(self, parts: Sequence[Shape]) -> Shape:
        self.called.add("concat")
        return _joined(parts)

    def columns(self, x: Shape, start: int, stop: int) -> Shape:
        self.called.add("columns")
        if not 0 <= start < stop <= x[1]:
            raise ValueError(f"columns {start} to {stop} of {list(x)}")
        return x[0], stop - start

    def div(self, a: Shape, b: Shape) -> Shape:
        self.called.add("div")
        return self.sub(a, b)

    def sqrt(self, x: Shape) -> Shape:
        self.called.add("sqrt")
        return x

    def mean(self, x: Shape) -> Shape:
        self.called.add("mean")
        return x


@cache
def primitives_of(network: Network) -> frozenset[str]:
    """The names of the primitives of `MorePrimitives` that a network's layers call.

    Raises ValueError where shapes do not fit.
    """
    if isinstance(network, CompoundNetwork):
        of_loop = {"while"} if network.in_program else set[str]()
        return frozenset(of_loop).union(*(primitives_of(part.network) for part in network.parts))
    shapes = _Shapes()
    nothing = np.zeros(())
    weights = network.as_weights({name: np.broadcast_to(nothing, shape) for name, shape, _ in network.weight_specs()})
    start: Shape = (1, network.input)
    rows: dict[str, list[Shape]] = {
        name: [(1, size)] * count for name, (count, _, size) in network.state_shapes(1).items()
    }
    states = state_by_layer(network, rows)

    def run(index: int, x: Shape) -> Shape:
        layer, body = network.graph[index], network.body(shapes, weights, index)
        y, after = body.project(x), states[index]
        if y[1] != layer.projected:
            raise ValueError(f"layer {index} projects to {y[1]} columns, and its spec says {layer.projected}")
        if after:
            y, after = body.advance(y, states[index])
        if y[1] != layer.width or after != states[index]:
            raise ValueError(f"layer {index} gives {y} and the state {after}, which its spec contradicts")
        return y

    run_graph(network, start, run, _joined)
    return frozenset(shapes.called)


def _joined(parts: Sequence[Shape]) -> Shape:
    return parts[0][0], sum(part[1] for part in parts)
