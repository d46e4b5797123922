"""A compound network as one graph: its parts, and the loop between them as ONNX's Loop.

The loop is written over arrays (`rnn.LoopPrimitives`). A `Tensor` is one of them: the name of a value with its shape
and dtype. What is done to it becomes a node of the graph that is being written, the innermost loop's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from math import prod
from typing import Any

import numpy as np

from rnnbench.backends.base import Request
from rnnbench.backends.shared.compound import requests_of_parts
from rnnbench.backends.shared.onnx_graphs.authored import AuthoredLayer, LoopOperator
from rnnbench.backends.shared.onnx_graphs.emitter import Array, Emitter
from rnnbench.rnn import run_graph, state_by_array, state_by_layer

Shape = tuple[int, ...]


class OnnxLoop:
    """What the loop of a compound network is written over (`rnn.LoopPrimitives`)."""

    def __init__(self, e: Emitter, request: Request, operator: LoopOperator) -> None:
        self.e = e
        """The graph that is being written."""
        self.arrays = OnnxArrays(self)
        self._operator = operator
        self._requests = requests_of_parts(request)

    def run(self, part: str, x: Tensor, state: Mapping[str, Tensor]) -> tuple[Tensor, dict[str, Tensor]]:
        steps, batch, size = x.shape
        request = self._requests[part]
        network, arrays = request.model, self.arrays
        rows = {name: self.e.row_parts(self._flat(array).name, array.shape[0]) for name, array in state.items()}
        before, finals = state_by_layer(network, rows), []

        def layer(index: int, read: str) -> str:
            y, final = AuthoredLayer(self.e, request, index, self._operator).emit(read, before[index])
            finals.append(final)
            return y

        y = run_graph(network, arrays.reshape(x, (steps * batch, size)).name, layer, self.e.concat)
        after = {name: self.e.stacked(values) for name, values in state_by_array(network, finals).items()}
        shapes = network.state_shapes(batch)
        return (
            arrays.reshape(Tensor(self, y, (steps * batch, network.width), x.dtype), (steps, batch, network.width)),
            {name: arrays.reshape(Tensor(self, after[name], (-1,), x.dtype), shapes[name]) for name in state},
        )

    def each(self, body: Callable[[Any, Any], tuple[Any, Any]], carried: Any, x: Tensor) -> tuple[Any, Any]:
        count = self.e.constant(np.array(x.shape[0]))

        def a_pass(number: Tensor, kept: Any) -> tuple[Any, list[Tensor]]:
            kept, result = body(kept, x.at(number.name))
            return kept, [result]

        kept, (results,) = self._loop(count, self.e.constant(np.array(True)), a_pass, carried, always)
        return kept, Tensor(self, results.name, (x.shape[0], *results.shape), results.dtype)

    def repeat(self, going: Callable[[Any], Any], body: Callable[[Any], Any], carried: Any) -> Any:
        return self._loop("", going(carried).name, lambda _, kept: (body(kept), []), carried, going)[0]

    def _loop(
        self,
        count: str,
        first: str,
        body: Callable[[Tensor, Any], tuple[Any, list[Tensor]]],
        carried: Any,
        going: Callable[[Any], Tensor | None],
    ) -> tuple[Any, list[Tensor]]:
        """A Loop: what is carried at its end, and what its passes gave, of which the shapes are those of one pass."""
        start = leaves(carried)
        with self._inner() as inner:
            number = Array(inner.fresh("number"), (), np.dtype(np.int64))
            proceed = Array(inner.fresh("proceed"), (), np.dtype(np.bool_))
            inputs = [Array(inner.fresh("carried"), leaf.shape, leaf.dtype) for leaf in start]
            before = rebuilt(carried, iter([self._tensor(array) for array in inputs]))
            after, results = body(self._tensor(number), before)
            more = going(after) or self._tensor(proceed)
            results_of_pass = [more, *leaves(after), *results]
            names = inner.distinct([leaf.name for leaf in results_of_pass], [number, proceed, *inputs])
            outputs = [Array(name, leaf.shape, leaf.dtype) for name, leaf in zip(names, results_of_pass, strict=True)]
            graph = inner.graph("pass", [number, proceed, *inputs], outputs)
        names = self.e.node(
            "Loop", [count, first, *(leaf.name for leaf in start)], len(results_of_pass) - 1, body=graph
        )
        ended = [
            Tensor(self, name, leaf.shape, leaf.dtype) for name, leaf in zip(names, results_of_pass[1:], strict=True)
        ]
        return rebuilt(carried, iter(ended[: len(start)])), ended[len(start) :]

    @contextmanager
    def _inner(self) -> Iterator[Emitter]:
        outer, self.e = self.e, self.e.inner()
        try:
            yield self.e
        finally:
            self.e = outer

    def _tensor(self, array: Array) -> Tensor:
        return Tensor(self, array.name, array.shape, array.dtype)

    def _flat(self, array: Tensor) -> Tensor:
        """A state's rows below each other."""
        return self.arrays.reshape(array, (prod(array.shape[:2]), array.shape[2]))


def always(_: Any) -> None:
    """The condition of a loop that its count alone ends: there is none."""


@dataclass(frozen=True, eq=False)
class Tensor:
    """A value of a graph. Operators and indices make nodes of the graph that `loop` writes."""

    loop: OnnxLoop
    name: str
    shape: Shape
    dtype: np.dtype[np.generic]

    def at(self, index: str) -> Tensor:
        """The item of that number, the name of a scalar."""
        return Tensor(self.loop, self.loop.e.one("Gather", self.name, index, axis=0), self.shape[1:], self.dtype)

    def __getitem__(self, index: Any) -> Tensor:
        """An item by its number, or a new axis: `[3]`, `[None]`, `[:, None]`."""
        if isinstance(index, int):
            return self.at(self.loop.e.constant(np.array(index)))
        axis = 0 if index is None else index.index(None)
        return self.loop.arrays.reshape(self, (*self.shape[:axis], 1, *self.shape[axis:]))

    def __add__(self, other: Any) -> Tensor:
        return self.loop.arrays.elementwise("Add", self, other)

    def __and__(self, other: Any) -> Tensor:
        return self.loop.arrays.elementwise("And", self, other)

    def __lt__(self, other: Any) -> Tensor:
        return self.loop.arrays.compared("Less", self, other)

    def __gt__(self, other: Any) -> Tensor:
        return self.loop.arrays.compared("Greater", self, other)

    def __eq__(self, other: Any) -> Any:
        return self.loop.arrays.compared("Equal", self, other)

    def __ne__(self, other: Any) -> Any:
        equal = self.loop.arrays.compared("Equal", self, other)
        return Tensor(self.loop, self.loop.e.one("Not", equal.name), equal.shape, equal.dtype)


class OnnxArrays:
    """The functions of NumPy that the loop of a compound network calls, over tensors."""

    int32 = np.dtype(np.int32)

    def __init__(self, loop: OnnxLoop) -> None:
        self._loop = loop

    def asarray(self, value: Any, dtype: Any = None) -> Tensor:
        if not isinstance(value, Tensor):
            array = np.asarray(value, dtype)
            return Tensor(self._loop, self._loop.e.constant(array), array.shape, array.dtype)
        if dtype is None or value.dtype == dtype:
            return value
        from onnx import helper

        to = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
        return self._new(self._loop.e.one("Cast", value.name, to=to), value.shape, dtype)

    def arange(self, stop: int) -> Tensor:
        return self.asarray(np.arange(stop))

    def full(self, shape: Shape, value: float, dtype: Any) -> Tensor:
        return self.asarray(np.full(shape, value, dtype))

    def zeros(self, shape: Shape, dtype: Any) -> Tensor:
        return self.full(shape, 0, dtype)

    def ones(self, shape: Shape, dtype: Any) -> Tensor:
        return self.full(shape, 1, dtype)

    def sum(self, x: Tensor) -> Tensor:
        return self._new(self._loop.e.one("ReduceSum", x.name, keepdims=0), (), x.dtype)

    def argmax(self, x: Tensor, axis: int) -> Tensor:
        shape = tuple(size for at, size in enumerate(x.shape) if at != axis)
        return self._new(self._loop.e.one("ArgMax", x.name, axis=axis, keepdims=0), shape, np.int64)

    def where(self, condition: Tensor, a: Any, b: Any) -> Tensor:
        kind = next(value.dtype for value in (a, b) if isinstance(value, Tensor))
        a, b = (self.asarray(value, kind) for value in (a, b))
        shape = np.broadcast_shapes(condition.shape, a.shape, b.shape)
        return self._new(self._loop.e.one("Where", condition.name, a.name, b.name), shape, kind)

    def concat(self, parts: Sequence[Tensor], axis: int) -> Tensor:
        first = parts[0]
        total = sum(part.shape[axis] for part in parts)
        name = self._loop.e.one("Concat", *(part.name for part in parts), axis=axis)
        return self._new(name, (*first.shape[:axis], total, *first.shape[axis + 1 :]), first.dtype)

    def reshape(self, x: Tensor, shape: Shape) -> Tensor:
        return self._new(self._loop.e.reshape(x.name, *shape), tuple(shape), x.dtype)

    def swapaxes(self, x: Tensor, one: int, other: int) -> Tensor:
        order = list(range(len(x.shape)))
        order[one], order[other] = other, one
        return self._new(
            self._loop.e.one("Transpose", x.name, perm=order), tuple(x.shape[axis] for axis in order), x.dtype
        )

    def elementwise(self, operator: str, a: Tensor, b: Any) -> Tensor:
        b = self.asarray(b, a.dtype)
        return self._new(self._loop.e.one(operator, a.name, b.name), np.broadcast_shapes(a.shape, b.shape), a.dtype)

    def compared(self, operator: str, a: Tensor, b: Any) -> Tensor:
        return replace(self.elementwise(operator, a, b), dtype=np.dtype(np.bool_))

    def _new(self, name: str, shape: Shape, dtype: Any) -> Tensor:
        return Tensor(self._loop, name, shape, np.dtype(dtype))


def leaves(tree: Any) -> list[Tensor]:
    """The tensors of nested tuples and mappings."""
    if isinstance(tree, Tensor):
        return [tree]
    return [leaf for part in (tree.values() if isinstance(tree, Mapping) else tree) for leaf in leaves(part)]


def rebuilt(tree: Any, tensors: Iterator[Tensor]) -> Any:
    """The same nesting, of other tensors."""
    if isinstance(tree, Tensor):
        return next(tensors)
    if isinstance(tree, Mapping):
        return {name: rebuilt(part, tensors) for name, part in tree.items()}
    return tuple(rebuilt(part, tensors) for part in tree)
