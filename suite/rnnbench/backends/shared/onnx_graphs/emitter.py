"""The primitives of layers as ONNX nodes. A value is the name of a node's output.

A constant becomes an initializer of each graph that uses it, so a loop's weights are initializers of its body. ONNX
Runtime packs those. It does not pack weights that a body takes from the graph around it. A step then takes an eighth
longer at hidden 128 and 256, and no longer at 512.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from rnnbench.backends.shared.int8 import without_overflow
from rnnbench.backends.shared.onnx_graphs.support import FIXED_MATMUL, QUANTISED_MATMUL, copy_name
from rnnbench.rnn import Activations, AttentionSizes, CausalKernel, Range, aligned, contraction, in_int8, permutation

CONTRIB = "com.microsoft"
"""The domain of ONNX Runtime's own operators. It has those of ONNX 27 too, for models of any version."""


@dataclass(frozen=True)
class Array:
    """An input or output of a graph."""

    name: str
    shape: tuple[int, ...]
    dtype: np.dtype[np.generic]


class _Numbers:
    """Numbers and constants that all graphs of one model share."""

    def __init__(self) -> None:
        self.value = itertools.count()
        self.copy = itertools.count()
        self.constants: dict[str, np.ndarray] = {}
        self.small: dict[tuple[str, tuple[int, ...], bytes], str] = {}
        self.in_int8: dict[str, tuple[str, ...]] = {}


class Emitter:
    """Nodes of one graph; `inner` gives an emitter for the body of a loop in it. Values are names."""

    def __init__(self, dtype: np.dtype[np.generic], numbers: _Numbers | None = None, *, int8: Activations = "") -> None:
        """With `int8`, products are of int8 weights. Their other operand is quantised by ONNX Runtime's product in each
        call (`dynamic`), or before it by constants (`static`, `quantised`)."""
        self.dtype = dtype
        self._int8 = int8
        self._nodes: list[Any] = []
        self._initializers: dict[str, np.ndarray] = {}
        self._numbers = numbers or _Numbers()
        self._scope = next(self._numbers.value)
        self._prefix = ""
        self._quantised: dict[str, tuple[str, str]] = {}
        """Scale and zero point of values in 8 bits."""

    def inner(self) -> Emitter:
        return type(self)(self.dtype, self._numbers, int8=self._int8)

    @contextmanager
    def copy(self) -> Iterator[None]:
        """The nodes that are emitted inside this block are one copy of a layer's body."""
        self._prefix = copy_name(next(self._numbers.copy))
        yield
        self._prefix = ""

    @property
    def domains(self) -> list[str]:
        """The domains of the nodes that are not ONNX's own."""
        return sorted({node.domain for node in self._nodes if node.domain})

    def node(self, operator: str, inputs: Sequence[str], outputs: int = 1, **attributes: Any) -> list[str]:
        """The names of the outputs of a new node. An input with an empty name is an optional one that is left out."""
        from onnx import helper

        names = [self.fresh(self._prefix + operator) for _ in range(outputs)]
        placed = [self._placed(name) for name in inputs]
        self._nodes.append(helper.make_node(operator, placed, names, name=names[0], **attributes))
        return names

    def one(self, operator: str, *inputs: str, **attributes: Any) -> str:
        return self.node(operator, inputs, **attributes)[0]

    def array(self, name: str, *shape: int, exact: bool = False) -> Array:
        """An input to declare, of this emitter's dtype; its name is made unique unless it is to be `exact`."""
        return Array(name if exact else self.fresh(name), shape, self.dtype)

    def named(self, value: str, name: str, shape: tuple[int, ...]) -> Array:
        """An output to declare: renames a value that no node reads in an inner graph."""
        for node in self._nodes:
            for names in (node.input, node.output):
                names[:] = [name if given == value else given for given in names]
        return Array(name, shape, self.dtype)

    def distinct(self, values: Sequence[str], inputs: Sequence[Array]) -> list[str]:
        """The values as outputs of a graph, where each has to be the output of a node, and none is there twice."""
        taken = {array.name for array in inputs}
        outputs = []
        for value in values:
            outputs.append(self.one("Identity", value) if value in taken else value)
            taken.add(value)
        return outputs

    def graph(self, name: str, inputs: list[Array], outputs: list[Array]) -> Any:
        """An `onnx.GraphProto` of all nodes so far."""
        from onnx import helper, numpy_helper

        def declared(arrays: list[Array]) -> list[Any]:
            return [
                helper.make_tensor_value_info(a.name, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape) for a in arrays
            ]

        constants = [numpy_helper.from_array(array, name) for name, array in self._initializers.items()]
        return helper.make_graph(self._nodes, name, declared(inputs), declared(outputs), constants)

    def fresh(self, stem: str) -> str:
        return f"{stem}_{next(self._numbers.value)}"

    def constant(self, array: np.ndarray) -> str:
        """A constant of any shape. Small ones of equal value are one."""
        if array.size > 8:
            return self._declared(array)
        key = array.dtype.str, array.shape, array.tobytes()
        if key not in self._numbers.small:
            self._numbers.small[key] = self._declared(array)
        return self._numbers.small[key]

    def integers(self, *values: int) -> str:
        return self.constant(np.array(values, np.int64))

    def scalar(self, value: float) -> str:
        return self.constant(np.array(value, self.dtype))

    def reshape(self, x: str, *shape: int) -> str:
        return self.one("Reshape", x, self.integers(*shape))

    def row_parts(self, x: str, parts: int) -> list[str]:
        """Equal parts along the first dimension."""
        return [x] if parts == 1 else self.node("Split", [x], parts, axis=0)

    def stacked(self, values: Sequence[str]) -> str:
        """Joined along the first dimension."""
        return values[0] if len(values) == 1 else self.one("Concat", *values, axis=0)

    def matmul(self, x: str, weight: str) -> str:
        if self._int8 == "dynamic":
            return self.one(QUANTISED_MATMUL, x, *self._int8_of(weight), domain=CONTRIB)
        if x in self._quantised:
            (q, scale, *zero), (x_scale, x_zero) = self._int8_of(weight), self._quantised[x]
            return self.one(FIXED_MATMUL, x, q, x_scale, scale, x_zero, *zero, domain=CONTRIB)
        return self.one("MatMul", x, weight)

    def quantised(self, x: str, operand: Range) -> str:
        """The bytes of x. The product that reads them gets their scale and zero point."""
        scale, zero = (
            self.constant(np.array(operand.scale, np.float32)),
            self.constant(np.array(operand.zero, np.uint8)),
        )
        q = self.one("QuantizeLinear", x, scale, zero)
        self._quantised[q] = scale, zero
        return q

    def add(self, a: str, b: str) -> str:
        return self.one("Add", a, b)

    def sub(self, a: str, b: str) -> str:
        return self.one("Sub", a, b)

    def mul(self, a: str, b: str) -> str:
        return self.one("Mul", a, b)

    def sigmoid(self, x: str) -> str:
        return self.one("Sigmoid", x)

    def tanh(self, x: str) -> str:
        return self.one("Tanh", x)

    def relu(self, x: str) -> str:
        return self.one("Relu", x)

    def clip(self, x: str, bound: float) -> str:
        return self.one("Clip", x, self.scalar(-bound), self.scalar(bound))

    def split(self, x: str, parts: int) -> list[str]:
        return self.node("Split", [x], parts, axis=1)

    def concat(self, parts: Sequence[str]) -> str:
        return self.one("Concat", *parts, axis=1)

    def columns(self, x: str, start: int, stop: int) -> str:
        return self.one("Slice", x, self.integers(start), self.integers(stop), self.integers(1))

    def div(self, a: str, b: str) -> str:
        return self.one("Div", a, b)

    def sqrt(self, x: str) -> str:
        return self.one("Sqrt", x)

    def mean(self, x: str) -> str:
        return self.one("Expand", self.one("ReduceMean", x, axes=[1], keepdims=1), self.one("Shape", x))

    def exp(self, x: str) -> str:
        return self.one("Exp", x)

    def log_sigmoid(self, x: str) -> str:
        return self.one("Neg", self.one("Softplus", self.one("Neg", x)))

    def cumsum(self, x: str) -> str:
        return self.one("CumSum", x, self.constant(np.array(0)))

    def rows(self, x: str, start: int, stop: int) -> str:
        return self.one("Slice", x, self.integers(start), self.integers(stop), self.integers(0))

    def einsum(self, equation: str, a: str, b: str) -> str:
        """A product of matrices, or one of elements and a sum, which every reader has. Einsum is in few of them."""
        parts = contraction(equation)
        if parts.is_product:
            left, right, both = parts.product_letters
            product = self.matmul(self._transposed(a, parts.a, left), self._transposed(b, parts.b, right))
            return self._transposed(product, both, parts.out)
        if parts.row_axes:
            row = self.one("Unsqueeze", a, self.integers(*parts.row_axes))
            return self.one("Squeeze", self.matmul(row, b), self.integers(-2))
        product = self.mul(self._aligned(a, parts.a, parts.every), self._aligned(b, parts.b, parts.every))
        if not parts.summed:
            return product
        axes = self.integers(*range(len(parts.out), len(parts.every)))
        return self.one("ReduceSum", product, axes, keepdims=0)

    def linear_attention(
        self, terms: tuple[str, str, str, str], state: str, sizes: AttentionSizes, steps: int, batch: int
    ) -> tuple[str, str]:
        """LinearAttention has the rows of the batch outside the steps, and a scale that is 1 only where it is given."""
        q, k, v, log_gates = (self.one("Transpose", self.reshape(x, steps, batch, -1), perm=[1, 0, 2]) for x in terms)
        heads = {"q_num_heads": sizes.heads, "kv_num_heads": sizes.heads}
        inputs = [q, k, v, self.reshape(state, batch, *sizes), log_gates]
        attributes = {"update_rule": "gated", "scale": 1.0, "domain": CONTRIB, **heads}
        y, after = self.node("LinearAttention", inputs, 2, **attributes)
        y = self.reshape(self.one("Transpose", y, perm=[1, 0, 2]), steps * batch, -1)
        return y, self.reshape(after, batch, -1)

    def causal_convolution(self, x: str, ring: str, kernel: CausalKernel, steps: int, batch: int) -> tuple[str, str]:
        """CausalConvWithState has the steps innermost."""
        channels, taps = kernel.weight.shape
        inputs = [
            self.one("Transpose", self.reshape(x, steps, batch, channels), perm=[1, 2, 0]),
            self.constant(kernel.weight[:, None]),
            self.constant(kernel.bias),
            self.one("Transpose", self.reshape(ring, batch, taps - 1, channels), perm=[0, 2, 1]),
        ]
        activation = "silu" if kernel.silu else "none"
        y, after = self.node("CausalConvWithState", inputs, 2, activation=activation, domain=CONTRIB)
        y = self.reshape(self.one("Transpose", y, perm=[2, 0, 1]), steps * batch, channels)
        return y, self.reshape(self.one("Transpose", after, perm=[0, 2, 1]), batch, -1)

    def _transposed(self, x: str, letters: str, order: str) -> str:
        return x if letters == order else self.one("Transpose", x, perm=permutation(letters, order))

    def _aligned(self, x: str, letters: str, every: str) -> str:
        """x with an axis for each letter of `every`."""
        order, new = aligned(letters, every)
        x = self._transposed(x, letters, "".join(letters[axis] for axis in order))
        return self.one("Unsqueeze", x, self.integers(*new)) if new else x

    def _int8_of(self, weight: str) -> tuple[str, ...]:
        """A constant's 8-bit values and their scale, as constants; and their zero point where it is not 0."""
        if weight not in self._numbers.in_int8:
            signed, scale = in_int8(self._numbers.constants[weight])
            q, zero = without_overflow(signed)
            values = (q, np.array(scale, np.float32), *([np.array(zero)] if zero else []))
            self._numbers.in_int8[weight] = tuple(map(self._declared, values))
        return self._numbers.in_int8[weight]

    def _declared(self, array: np.ndarray) -> str:
        name = self.fresh("constant")
        self._numbers.constants[name] = array
        return name

    def _placed(self, name: str) -> str:
        """A constant's name in this graph, where it becomes an initializer; any other name as it is."""
        if name not in self._numbers.constants:
            return name
        local = f"{name}_in_{self._scope}"
        self._initializers.setdefault(local, self._numbers.constants[name])
        return local


class ConvolvingEmitter(Emitter):
    """For a reader that calls a kernel for each node, and has one for ONNX's Conv in float32."""

    joins_frames = True

    def convolution(self, x: str, weight: np.ndarray, bias: np.ndarray, frequencies: int) -> str:
        """Conv has the channels before the taps and the frequencies."""
        filters, channels, taps, _ = weight.shape
        planes = self.one("Transpose", self.reshape(x, -1, taps, frequencies, channels), perm=[0, 3, 1, 2])
        y = self.one("Conv", planes, self.constant(weight), self.constant(bias))
        width = (frequencies - weight.shape[3] + 1) * filters
        return self.reshape(self.one("Transpose", y, perm=[0, 2, 3, 1]), -1, width)


class SummingEmitter(ConvolvingEmitter):
    """For a reader that does not make one kernel of several sums."""

    def sum_of_parts(self, x: str, parts: int) -> str:
        return self.one("ReduceSum", self.reshape(x, 0, parts, -1), self.integers(1), keepdims=0)
