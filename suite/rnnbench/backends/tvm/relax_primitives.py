"""The primitives of layers in Relax, and what a function has of each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np
from tvm import relax, te
from tvm.relax import BlockBuilder, op

from rnnbench.backends.tvm.relax_operations import FunctionCounts
from rnnbench.rnn import WindowSizes

Value = Any
"""A Relax variable that is bound to the result of an operator."""

ATANH_TERMS = 8
"""Terms of the series of atanh(s): what is left out is below 2⁻²⁵ of it for s up to 1/3."""


class RelaxPrimitives:
    """Emits each primitive into the function that `builder` is building, of the module that `module` is building."""

    def __init__(self, builder: BlockBuilder, module: BlockBuilder) -> None:
        self.builder = builder
        self._module = module
        self._copies = 0
        self._inside: Counter[str] = Counter()
        self._outside: Counter[str] = Counter()
        self._counts = self._outside
        self._lent: list[Value] = []

    @contextmanager
    def copy(self) -> Iterator[None]:
        """What is emitted inside this block is a copy of a layer's body."""
        self._copies += 1
        self._counts = self._inside
        yield
        self._counts = self._outside

    @property
    def written(self) -> FunctionCounts:
        """The copies of bodies so far, and what is in them and outside of them."""
        return FunctionCounts(self._copies, self._inside, self._outside)

    def lent(self, value: Value) -> Value:
        """A value in memory of the caller, who will write there."""
        self._lent.append(value)
        return value

    def owned(self, value: Value) -> Value:
        """The value, or a copy of it where it is in memory of the caller: a program may return its argument."""
        if not any(value.same_as(other) for other in self._lent):
            return value
        # An operator that only copies is taken for a reshape, which makes a view.
        empty = self.builder.emit(op.builtin.alloc_tensor(value.ty.shape, "float32", 0))
        return self.written_over(empty, value)

    def written_over(self, target: Value, value: Value) -> Value:
        """`target`, its memory overwritten with `value`."""
        shape = list(value.ty.shape.values)
        new = te.placeholder(shape, "float32", name="new")
        copy = te.create_prim_func([new, te.compute(shape, lambda *at: new(*at), name="kept")])
        function = self._module.add_func(copy.without_attr("global_symbol"), "keep")
        return self.builder.emit(op.call_tir_inplace(function, [value, target], [1], [target.ty]))

    def constant(self, array: np.ndarray) -> Value:
        return relax.const(np.ascontiguousarray(array))

    def matmul(self, x: Value, weight: Value) -> Value:
        return self._counted("matmul", op.matmul(x, weight))

    def add(self, a: Value, b: Value) -> Value:
        return self._counted("add", op.add(a, b))

    def sub(self, a: Value, b: Value) -> Value:
        return self.builder.emit(op.subtract(a, b))

    def mul(self, a: Value, b: Value) -> Value:
        return self.builder.emit(op.multiply(a, b))

    def sigmoid(self, x: Value) -> Value:
        return self._counted("sigmoid", op.sigmoid(x))

    def tanh(self, x: Value) -> Value:
        return self._counted("tanh", op.tanh(x))

    def relu(self, x: Value) -> Value:
        return self._counted("relu", op.nn.relu(x))

    def clip(self, x: Value, bound: float) -> Value:
        return self.builder.emit(op.clip(x, relax.prim_value(-bound), relax.prim_value(bound)))

    def split(self, x: Value, parts: int) -> list[Value]:
        return self.parts(x, parts, axis=1)

    def concat(self, parts: Sequence[Value]) -> Value:
        return self.joined(list(parts), axis=1)

    def columns(self, x: Value, start: int, stop: int) -> Value:
        return self.builder.emit(op.strided_slice(x, axes=[1], begin=[start], end=[stop]))

    def div(self, a: Value, b: Value) -> Value:
        return self.builder.emit(op.divide(a, b))

    def sqrt(self, x: Value) -> Value:
        return self.builder.emit(op.sqrt(x))

    def mean(self, x: Value) -> Value:
        mean = self.builder.emit(op.mean(x, axis=[1], keepdims=True))
        return self.builder.emit(op.broadcast_to(mean, x.ty.shape))

    def exp(self, x: Value) -> Value:
        return self.builder.emit(op.exp(x))

    def log_sigmoid(self, x: Value) -> Value:
        """min(x, 0) − log(1 + u) with u = e^−|x|. Relax has no log1p, and the logarithm of 1 + u loses a small u.

        log(1 + u) is 2·atanh(s) with s = u/(2 + u), at most 1/3: 2·s·Σ s²ᵏ/(2k + 1).

        TVM stores it if it has several rows, as in `stacked`: a block of `chunked:k` uses each value k + 1 times, and
        would compute it as often.
        """
        emit, number = self.builder.emit, partial(relax.const, dtype="float32")
        u = emit(op.exp(emit(op.negative(emit(op.abs(x))))))
        s = self.div(u, self.add(u, number(2.0)))
        square = self.mul(s, s)
        series = self.mul(square, number(2 / (2 * ATANH_TERMS - 1)))
        for term in reversed(range(1, ATANH_TERMS - 1)):
            series = self.mul(square, self.add(series, number(2 / (2 * term + 1))))
        log1p = self.mul(s, self.add(series, number(2.0)))
        store = emit if int(x.ty.shape.values[0]) == 1 else self.builder.emit_output
        return store(op.subtract(emit(op.minimum(x, number(0.0))), log1p))

    def cumsum(self, x: Value) -> Value:
        """A product with a triangle of ones: TVM's own sum is a loop over scalars, which no schedule can change."""
        steps = int(x.ty.shape.values[0])
        flat = self.reshape(x, steps, -1)
        total = self.matmul(self.constant(np.tri(steps, dtype=np.float32)), flat)
        return self.reshape(total, *(int(size) for size in x.ty.shape.values))

    def rows(self, x: Value, start: int, stop: int) -> Value:
        return self.builder.emit(op.strided_slice(x, axes=[0], begin=[start], end=[stop]))

    def stacked(self, parts: Sequence[Value]) -> Value:
        """An output of its dataflow block, which TVM stores. It would fuse all levels of a scan into one kernel, which
        computes every level anew for each element."""
        return self.builder.emit_output(op.concat(list(parts), axis=0))

    def reshape(self, x: Value, *shape: int) -> Value:
        return self.reshaped(x, *shape)

    def einsum(self, equation: str, a: Value, b: Value) -> Value:
        return self.builder.emit(op.einsum((a, b), equation))

    def windows(self, x: Value, sizes: WindowSizes) -> Value:
        """A kernel of its own, since TVM fuses nothing into the operands of a product."""
        places, run = sizes.places, sizes.span * sizes.channels

        def at(row: Any, k: Any) -> Any:
            tap, place = k // run, row % places
            return given[row // places, (tap * sizes.frequencies + place) * sizes.channels + k % run]

        shape = [int(x.ty.shape.values[0]) * places, sizes.seen]
        given = te.placeholder(list(x.ty.shape.values), "float32", name="given")
        function = te.create_prim_func([given, te.compute(shape, at, name="seen")]).without_attr("global_symbol")
        type_ = relax.TensorType(shape, "float32")
        return self.builder.emit(op.call_tir(self._module.add_func(function, "windows"), [x], type_))

    def parts(self, x: Value, parts: int, axis: int) -> list[Value]:
        """Equal parts along an axis."""
        if parts == 1:
            return [x]
        pieces = self.builder.emit(op.split(x, parts, axis))
        return [self.builder.emit(pieces[index]) for index in range(parts)]

    def joined(self, values: list[Value], axis: int) -> Value:
        return values[0] if len(values) == 1 else self.builder.emit(op.concat(values, axis))

    def reshaped(self, x: Value, *shape: int) -> Value:
        """The same memory in another shape."""
        shaped = self.builder.emit(op.reshape(x, shape))
        return self.lent(shaped) if any(x.same_as(other) for other in self._lent) else shaped

    def _counted(self, name: str, call: Any) -> Value:
        self._counts[name] += 1
        return self.builder.emit(call)
