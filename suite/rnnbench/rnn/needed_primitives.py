"""Which primitives a network needs. Its layers run once, over shapes alone, and what they call is noted."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from math import prod

import numpy as np

from rnnbench.rnn.compound import CompoundNetwork
from rnnbench.rnn.einsum import contraction
from rnnbench.rnn.graph import run_graph, state_by_layer
from rnnbench.rnn.linear import together
from rnnbench.rnn.network import Network
from rnnbench.rnn.primitives import AttentionSizes, CausalKernel, MorePrimitives
from rnnbench.rnn.times import FUSED, runs_together

Shape = tuple[int, ...]


class _Shapes(MorePrimitives[Shape]):
    """Primitives over shapes. `called` has the names of those that were called and that stacks of cells do not need."""

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

    def exp(self, x: Shape) -> Shape:
        self.called.add("exp")
        return x

    def log_sigmoid(self, x: Shape) -> Shape:
        self.called.add("log_sigmoid")
        return x

    def cumsum(self, x: Shape) -> Shape:
        self.called.add("cumsum")
        return x

    def rows(self, x: Shape, start: int, stop: int) -> Shape:
        self.called.add("rows")
        if not 0 <= start < stop <= x[0]:
            raise ValueError(f"rows {start} to {stop} of {list(x)}")
        return stop - start, *x[1:]

    def stacked(self, parts: Sequence[Shape]) -> Shape:
        self.called.add("stacked")
        if len({part[1:] for part in parts}) != 1:
            raise ValueError(f"values of {parts} one after the other")
        return sum(part[0] for part in parts), *parts[0][1:]

    def reshape(self, x: Shape, *shape: int) -> Shape:
        self.called.add("reshape")
        shape = tuple(prod(x) // -prod(shape) if size == -1 else size for size in shape)
        if prod(x) != prod(shape):
            raise ValueError(f"a reshape of {list(x)} to {list(shape)}")
        return shape

    def einsum(self, equation: str, a: Shape, b: Shape) -> Shape:
        self.called.add("einsum")
        parts = contraction(equation)
        sizes = dict(zip(parts.a, a, strict=True))
        if any(sizes.setdefault(letter, size) != size for letter, size in zip(parts.b, b, strict=True)):
            raise ValueError(f"einsum {equation} of {list(a)} and {list(b)}")
        return tuple(sizes[letter] for letter in parts.out)

    def linear_attention(
        self,
        terms: tuple[Shape, Shape, Shape, Shape],
        state: Shape,
        sizes: AttentionSizes,
        steps: int,
        batch: int,
    ) -> tuple[Shape, Shape]:
        self.called.add("linear_attention")
        heads, keys, values = sizes
        rows, (q, k, v, gates) = steps * batch, terms
        whole = [(rows, heads * keys)] * 2, (rows, heads * values), (batch, heads * keys * values)
        if ([q, k], v, state) != whole or gates not in (k, (rows, heads)):
            raise ValueError(f"linear attention of {[*terms]} from {state}")
        return v, state

    def causal_convolution(
        self, x: Shape, ring: Shape, kernel: CausalKernel, steps: int, batch: int
    ) -> tuple[Shape, Shape]:
        self.called.add("causal_convolution")
        channels, taps = kernel.weight.shape
        if (x, ring) != ((steps * batch, channels), (batch, (taps - 1) * channels)):
            raise ValueError(f"a convolution of {x} and {ring} with {channels} channels and {taps} taps")
        return x, ring


STEPS = 5
"""Steps at once, if steps run together. A scan then has pairs, pairs of pairs, and a step without a pair."""


@cache
def primitives_of(network: Network, time: str = "looped") -> frozenset[str]:
    """The names of the primitives of `MorePrimitives` that a network's layers call.

    A time that runs many steps at once may call more. Raises ValueError if shapes do not fit.
    """
    if isinstance(network, CompoundNetwork):
        of_loop = {"while"} if network.in_program else set[str]()
        return frozenset(of_loop).union(*(primitives_of(part.network, time) for part in network.parts))
    shapes = _Shapes()
    nothing = np.zeros(())
    weights = network.as_weights({name: np.broadcast_to(nothing, shape) for name, shape, _ in network.weight_specs()})
    steps = STEPS if runs_together(time) or time == FUSED else 1
    start: Shape = (steps, network.input)
    rows: dict[str, list[Shape]] = {
        name: [(1, size)] * count for name, (count, _, size) in network.state_shapes(1).items()
    }
    states = state_by_layer(network, rows)

    def run(index: int, x: Shape) -> Shape:
        layer, body = network.graph[index], network.body(shapes, weights, index)
        y, after = body.project(x), states[index]
        if y[1] != layer.projected:
            raise ValueError(f"layer {index} projects to {y[1]} columns, and its spec says {layer.projected}")
        if after and steps > 1:
            y, after = together(body, time, y, after, steps, 1)
        elif after:
            y, after = body.advance(y, after)
        if y[1] != layer.width or after != states[index]:
            raise ValueError(f"layer {index} gives {y} and the state {after}, which its spec contradicts")
        return y

    run_graph(network, start, run, _joined)
    return frozenset(shapes.called)


def _joined(parts: Sequence[Shape]) -> Shape:
    return parts[0][0], sum(part[1] for part in parts)
