"""The primitives of layers as nodes of OpenVINO's opset, named by number: equal requests give equal models."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import openvino.opset13 as opset

from rnnbench.backends.shared.onnx_graphs import copy_name
from rnnbench.rnn import Range, contraction, in_int8

Value = Any
"""An output of a node."""
LEVELS = 256
"""Values of 8 bits."""


class Nodes:
    """Makes the nodes of one model and of the bodies of its loops."""

    joins_frames = True

    def __init__(self, *, int8: bool = False) -> None:
        """With `int8`, the constants that values are multiplied by are held in int8."""
        self._numbers = itertools.count()
        self._copies = itertools.count()
        self._prefix = ""
        self._int8 = int8
        self._compressed: dict[str, Value] = {}

    @contextmanager
    def copy(self) -> Iterator[None]:
        """Nodes that are made inside belong to one copy of a layer's body."""
        self._prefix = copy_name(next(self._copies))
        yield
        self._prefix = ""

    def named(self, node: Any, name: str = "") -> Any:
        """The node, with the given name or else its number as name."""
        node.set_friendly_name(name or f"{self._prefix}{node.get_type_name()}_{next(self._numbers)}")
        return node

    def constant(self, array: np.ndarray) -> Value:
        return self.named(opset.constant(np.ascontiguousarray(array))).output(0)

    def parameter(self, shape: Sequence[int], name: str = "", dtype: type[np.generic] = np.float32) -> Any:
        return self.named(opset.parameter(list(shape), dtype), name)

    def reshape(self, x: Value, *shape: int) -> Value:
        return self._output_of(opset.reshape(x, self._integers(shape), False))

    def transpose(self, x: Value, *order: int) -> Value:
        return self._output_of(opset.transpose(x, self._integers(order)))

    def row_parts(self, x: Value, parts: int) -> list[Value]:
        """Equal parts along the first dimension."""
        return [x] if parts == 1 else self._parts(x, parts, 0)

    def joined(self, values: Sequence[Value], axis: int = 0) -> Value:
        return values[0] if len(values) == 1 else self._output_of(opset.concat(list(values), axis))

    def distinct(self, values: Sequence[Value], given: Sequence[Value]) -> list[Value]:
        """The values as results. A result renames its value, so that none can be there twice or be a given one."""
        taken, results = list(given), list[Value]()
        for value in values:
            results.append(self.reshape(value, *value.get_shape()) if value in taken else value)
            taken.append(value)
        return results

    def matmul(self, x: Value, weight: Value) -> Value:
        if self._int8:
            return self._output_of(opset.matmul(x, self._in_int8(weight.get_node()), False, True))
        return self._output_of(opset.matmul(x, weight, False, False))

    def quantised(self, x: Value, operand: Range) -> Value:
        low, high = (self.constant(np.array(edge, np.float32)) for edge in (operand.low, operand.high))
        return self._output_of(opset.fake_quantize(x, low, high, low, high, LEVELS))

    def add(self, a: Value, b: Value) -> Value:
        return self._output_of(opset.add(a, b))

    def sub(self, a: Value, b: Value) -> Value:
        return self._output_of(opset.subtract(a, b))

    def mul(self, a: Value, b: Value) -> Value:
        return self._output_of(opset.multiply(a, b))

    def sigmoid(self, x: Value) -> Value:
        return self._output_of(opset.sigmoid(x))

    def tanh(self, x: Value) -> Value:
        return self._output_of(opset.tanh(x))

    def relu(self, x: Value) -> Value:
        return self._output_of(opset.relu(x))

    def clip(self, x: Value, bound: float) -> Value:
        return self._output_of(opset.clamp(x, -bound, bound))

    def split(self, x: Value, parts: int) -> list[Value]:
        return self._parts(x, parts, 1)

    def concat(self, parts: Sequence[Value]) -> Value:
        return self.joined(parts, axis=1)

    def columns(self, x: Value, start: int, stop: int) -> Value:
        return self._sliced(x, start, stop, 1)

    def div(self, a: Value, b: Value) -> Value:
        return self._output_of(opset.divide(a, b))

    def sqrt(self, x: Value) -> Value:
        return self._output_of(opset.sqrt(x))

    def mean(self, x: Value) -> Value:
        shape = self._integers(list(x.get_shape()))
        return self._output_of(
            opset.broadcast(self._output_of(opset.reduce_mean(x, self._integers([1]), keep_dims=True)), shape)
        )

    def exp(self, x: Value) -> Value:
        return self._output_of(opset.exp(x))

    def log_sigmoid(self, x: Value) -> Value:
        return self._output_of(opset.negative(self._output_of(opset.softplus(self._output_of(opset.negative(x))))))

    def cumsum(self, x: Value) -> Value:
        return self._output_of(opset.cum_sum(x, self.named(opset.constant(0))))

    def rows(self, x: Value, start: int, stop: int) -> Value:
        return self._sliced(x, start, stop, 0)

    def stacked(self, parts: Sequence[Value]) -> Value:
        return self.joined(parts)

    def einsum(self, equation: str, a: Value, b: Value) -> Value:
        if axes := contraction(equation).row_axes:
            row = self._output_of(opset.unsqueeze(a, self._integers(axes)))
            return self._output_of(opset.squeeze(self.matmul(row, b), self._integers([-2])))
        return self._output_of(opset.einsum([a, b], equation))

    def convolution(self, x: Value, weight: np.ndarray, bias: np.ndarray, frequencies: int) -> Value:
        """The channels are before the taps and the frequencies."""
        _, channels, taps, _ = weight.shape
        planes = self.transpose(self.reshape(x, -1, taps, frequencies, channels), 0, 3, 1, 2)
        ones, none = [1, 1], [0, 0]
        y = self._output_of(opset.convolution(planes, self.constant(weight), ones, none, none, ones))
        rows = x.get_shape()[0]
        return self.reshape(self.add(self.transpose(y, 0, 2, 3, 1), self.constant(bias)), rows, -1)

    def _sliced(self, x: Value, start: int, stop: int, axis: int) -> Value:
        bounds = (self._integers([number]) for number in (start, stop, 1, axis))
        return self._output_of(opset.slice(x, *bounds))

    def _in_int8(self, constant: Any) -> Value:
        """A constant [k, n] as int8 [n, k], the layout of the device's kernels, and what makes float32 of it."""
        name = constant.get_friendly_name()
        if name not in self._compressed:
            q, scale = in_int8(constant.data)
            converted = self._output_of(opset.convert(self.constant(q.T), np.float32))
            self._compressed[name] = self.mul(converted, self.constant(np.array(scale, np.float32)))
        return self._compressed[name]

    def _parts(self, x: Value, parts: int, axis: int) -> list[Value]:
        return list(self.named(opset.split(x, self.named(opset.constant(axis)), parts)).outputs())

    def _integers(self, values: Sequence[int]) -> Any:
        return self.named(opset.constant(np.array(values, np.int64)))

    def _output_of(self, node: Any) -> Value:
        return self.named(node).output(0)
