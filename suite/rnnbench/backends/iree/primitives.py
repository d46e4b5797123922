"""The primitives of layers as operations of linalg, arith and math."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from rnnbench.backends.iree.emitter import Emitter
from rnnbench.backends.iree.values import Value, tensor
from rnnbench.rnn import contraction

LARGEST_SLICE = 8 << 10
"""Bytes of a slice that a product may read as it is. With data tiling IREE does not tile the packing of one, and
refuses vectors of 16 KiB."""
SUMS = 4
"""Sums at once in the product of one row. IREE's kernel has one, where each addition waits for the one before."""


class Primitives(Emitter):
    """The primitives of `rnn.primitives` in IREE's dialects."""

    joins_frames = True

    def constant(self, array: np.ndarray) -> Value:
        name = self.resources.add(array)
        value = self.value(array.shape, f"arith.constant dense_resource<{name}> : {tensor(array.shape)}")
        return replace(value, array=array)

    def matmul(self, x: Value, weight: Value) -> Value:
        self.compute(x, weight)
        if x.shape[0] == 1 and self.lanes and weight.array is not None:
            inner, outer = weight.shape
            if inner % SUMS == 0 and outer % self.lanes == 0:
                return self._row_product(x, weight.array)
        if x.is_slice and 4 * math.prod(x.shape) > LARGEST_SLICE:
            x = self.value(x.shape, f"util.optimization_barrier {x.name} : {x.type}")
        shape = (x.shape[0], weight.shape[1])
        start = self.zeros(shape)
        return self.value(
            shape,
            f"linalg.matmul ins({x.name}, {weight.name} : {x.type}, {weight.type})"
            f" outs({start.name} : {start.type}) -> {start.type}",
        )

    def _row_product(self, x: Value, weight: np.ndarray) -> Value:
        """x [1, k] times a weight [k, n] of the processor's, as `SUMS` sums, each of as many columns of x.

        The weight is stored in the order in which it is read: [n/lanes, SUMS, k/SUMS, lanes]. The sum of the sums is an
        elementwise expression, so it is computed where it is read.
        """
        k, n = weight.shape
        blocks = n // self.lanes
        columns = self.reshape(x, SUMS, k // SUMS)
        shape = (blocks, SUMS, k // SUMS, self.lanes)
        parts = weight.reshape(SUMS, k // SUMS, blocks, self.lanes)
        name = self.resources.packed(weight, lambda: parts.transpose(2, 0, 1, 3))
        packed = self.value(shape, f"arith.constant dense_resource<{name}> : {tensor(shape)}")
        sums = self.reshape(self.einsum("sk,bskl->sbl", columns, packed), SUMS, n)
        first, second, third, fourth = (self.rows(sums, i, i + 1) for i in range(SUMS))
        return self.add(self.add(first, second), self.add(third, fourth))

    def add(self, a: Value, b: Value) -> Value:
        return _pointwise((a, b), "{r} = arith.addf {0}, {1} : f32")

    def sub(self, a: Value, b: Value) -> Value:
        return _pointwise((a, b), "{r} = arith.subf {0}, {1} : f32")

    def mul(self, a: Value, b: Value) -> Value:
        return _pointwise((a, b), "{r} = arith.mulf {0}, {1} : f32")

    def sigmoid(self, x: Value) -> Value:
        return _pointwise(
            (x,),
            "{r}_1 = arith.constant 1.0 : f32",
            "{r}_n = arith.negf {0} : f32",
            "{r}_e = math.exp {r}_n : f32",
            "{r}_d = arith.addf {r}_e, {r}_1 : f32",
            "{r} = arith.divf {r}_1, {r}_d : f32",
        )

    def tanh(self, x: Value) -> Value:
        return _pointwise((x,), "{r} = math.tanh {0} : f32")

    def relu(self, x: Value) -> Value:
        return _pointwise((x,), "{r}_0 = arith.constant 0.0 : f32", "{r} = arith.maximumf {0}, {r}_0 : f32")

    def clip(self, x: Value, bound: float) -> Value:
        high = f"{np.float32(bound):.9e}"
        return _pointwise(
            (x,),
            f"{{r}}_h = arith.constant {high} : f32",
            f"{{r}}_l = arith.constant -{high} : f32",
            "{r}_m = arith.minimumf {0}, {r}_h : f32",
            "{r} = arith.maximumf {r}_m, {r}_l : f32",
        )

    def split(self, x: Value, parts: int) -> list[Value]:
        """Slices. Those of an elementwise expression are taken from its operands, before it is computed."""
        rows, size = x.shape[0], x.shape[-1] // parts
        if not x.name:
            operands = [self.split(operand, parts) for operand in x.operands]
            return [Value((rows, size), body=x.body, operands=group) for group in zip(*operands, strict=True)]
        if len(x.shape) == 1:
            slices = [f"[{i * size}] [{size}] [1] : {x.type} to {tensor((size,))}" for i in range(parts)]
            return [self.value((size,), f"tensor.extract_slice {x.name}{text}") for text in slices]
        kind = tensor((rows, size))
        slices = [f"[0, {i * size}] [{rows}, {size}] [1, 1] : {x.type} to {kind}" for i in range(parts)]
        return [self.value((rows, size), f"tensor.extract_slice {x.name}{text}") for text in slices]

    def concat(self, parts: Sequence[Value]) -> Value:
        # A kernel for each part: IREE cannot tile one that reads a product and a slice (docs/backends/iree.md).
        for part in parts:
            self.compute(part)
        return self.concatenated(parts, (parts[0].shape[0], sum(part.shape[1] for part in parts)), 1)

    def columns(self, x: Value, start: int, stop: int) -> Value:
        self.compute(x)
        rows = x.shape[0]
        kind = tensor((rows, stop - start))
        part = f"[0, {start}] [{rows}, {stop - start}] [1, 1]"
        value = self.value((rows, stop - start), f"tensor.extract_slice {x.name}{part} : {x.type} to {kind}")
        return replace(value, is_slice=True)

    def div(self, a: Value, b: Value) -> Value:
        return _pointwise((a, b), "{r} = arith.divf {0}, {1} : f32")

    def sqrt(self, x: Value) -> Value:
        return _pointwise((x,), "{r} = math.sqrt {0} : f32")

    def mean(self, x: Value) -> Value:
        self.compute(x)
        start, every = self.zeros(x.shape[:1]), self.empty(x.shape)
        ends = f"ins({x.name} : {x.type}) outs({start.name} : {start.type}) dimensions = [1]"
        total = self.value(start.shape, f"linalg.reduce {{ arith.addf }} {ends}")
        ends = f"ins({total.name} : {total.type}) outs({every.name} : {every.type}) dimensions = [1]"
        scale = f"{{r}}_s = arith.constant {1 / x.shape[1]:.9e} : f32"
        return _pointwise(
            (self.value(x.shape, f"linalg.broadcast {ends}"),), scale, "{r} = arith.mulf {0}, {r}_s : f32"
        )

    def exp(self, x: Value) -> Value:
        return _pointwise((x,), "{r} = math.exp {0} : f32")

    def log_sigmoid(self, x: Value) -> Value:
        """min(x, 0) − log(1 + e^−|x|)."""
        return _pointwise(
            (x,),
            "{r}_0 = arith.constant 0.0 : f32",
            "{r}_m = arith.minimumf {0}, {r}_0 : f32",
            "{r}_a = math.absf {0} : f32",
            "{r}_n = arith.negf {r}_a : f32",
            "{r}_e = math.exp {r}_n : f32",
            "{r}_l = math.log1p {r}_e : f32",
            "{r} = arith.subf {r}_m, {r}_l : f32",
        )

    def cumsum(self, x: Value) -> Value:
        """A product with a triangle of ones: no input dialect has a sum that runs."""
        steps = x.shape[0]
        flat = self.reshape(x, steps, -1)
        return self.reshape(self.matmul(self.constant(np.tri(steps, dtype=np.float32)), flat), *x.shape)

    def rows(self, x: Value, start: int, stop: int) -> Value:
        self.compute(x)
        shape = (stop - start, *x.shape[1:])
        offsets = ", ".join(map(str, (start, *[0] * (len(shape) - 1))))
        part = f"[{offsets}] [{', '.join(map(str, shape))}] [{', '.join(['1'] * len(shape))}]"
        return self.value(shape, f"tensor.extract_slice {x.name}{part} : {x.type} to {tensor(shape)}")

    def stacked(self, parts: Sequence[Value]) -> Value:
        self.compute(*parts)
        return self.concatenated(parts, (sum(part.shape[0] for part in parts), *parts[0].shape[1:]), 0)

    def einsum(self, equation: str, a: Value, b: Value) -> Value:
        self.compute(a, b)
        parts = contraction(equation)
        sizes = dict(zip(parts.a + parts.b, a.shape + b.shape, strict=True))
        shape = tuple(sizes[letter] for letter in parts.out)
        start = self.zeros(shape) if parts.summed else self.empty(shape)
        every = ", ".join(parts.every)
        maps = ", ".join(
            f"affine_map<({every}) -> ({', '.join(letters)})>" for letters in (parts.a, parts.b, parts.out)
        )
        kinds = ", ".join(['"parallel"'] * len(shape) + ['"reduction"'] * len(parts.summed))
        number = self.number()
        self.line(
            f"%{number} = linalg.generic {{indexing_maps = [{maps}], iterator_types = [{kinds}]}}"
            f" ins({a.name}, {b.name} : {a.type}, {b.type}) outs({start.name} : {start.type}) {{"
        )
        self.line("^bb0(%a: f32, %b: f32, %o: f32):")
        self.line("  %p = arith.mulf %a, %b : f32")
        if parts.summed:
            self.line("  %s = arith.addf %o, %p : f32")
        self.line(f"  linalg.yield {'%s' if parts.summed else '%p'} : f32")
        self.line(f"}} -> {start.type}{self.location}")
        return Value(shape, f"%{number}")


def _pointwise(operands: tuple[Value, ...], *body: str) -> Value:
    return Value(operands[0].shape, body=body, operands=operands)
