"""The primitives of the shared cell in Relax."""

from __future__ import annotations

from typing import Any

import numpy as np
from tvm import relax
from tvm.relax import BlockBuilder, op

Value = Any
"""A Relax variable that is bound to the result of an operator."""


class RelaxPrimitives:
    """Emits each primitive into the function that `builder` is building."""

    def __init__(self, builder: BlockBuilder) -> None:
        self.builder = builder

    def constant(self, array: np.ndarray) -> Value:
        return relax.const(np.ascontiguousarray(array))

    def matmul(self, x: Value, weight: Value) -> Value:
        return self.builder.emit(op.matmul(x, weight))

    def add(self, a: Value, b: Value) -> Value:
        return self.builder.emit(op.add(a, b))

    def sub(self, a: Value, b: Value) -> Value:
        return self.builder.emit(op.subtract(a, b))

    def mul(self, a: Value, b: Value) -> Value:
        return self.builder.emit(op.multiply(a, b))

    def sigmoid(self, x: Value) -> Value:
        return self.builder.emit(op.sigmoid(x))

    def tanh(self, x: Value) -> Value:
        return self.builder.emit(op.tanh(x))

    def relu(self, x: Value) -> Value:
        return self.builder.emit(op.nn.relu(x))

    def clip(self, x: Value, bound: float) -> Value:
        return self.builder.emit(op.clip(x, relax.prim_value(-bound), relax.prim_value(bound)))

    def split(self, x: Value, parts: int) -> list[Value]:
        return self.parts(x, parts, axis=1)

    def parts(self, x: Value, parts: int, axis: int) -> list[Value]:
        """Equal parts along an axis."""
        if parts == 1:
            return [x]
        pieces = self.builder.emit(op.split(x, parts, axis))
        return [self.builder.emit(pieces[index]) for index in range(parts)]

    def joined(self, values: list[Value], axis: int) -> Value:
        return values[0] if len(values) == 1 else self.builder.emit(op.concat(values, axis))

    def reshaped(self, x: Value, *shape: int) -> Value:
        return self.builder.emit(op.reshape(x, shape))
