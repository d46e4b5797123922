"""The primitives that a backend implements, and the cells of stacks, each written once over them.

A backend that authors programs implements `Primitives` for its values: an SSA name, a Relax expression, a NumPy array.
It gets every cell and variant from here, looped and unrolled, and decides how to loop, keep state and compile. The part
that does not depend on the state is a separate function (`project`), so that a program can hoist it out of its loop.

Equations: torch.nn.LSTM, torch.nn.GRU, torch.nn.RNN; the ONNX operators LSTM, GRU, RNN for `clip` and for the GRU
whose reset gate comes before the product; TFLite's UNIDIRECTIONAL_SEQUENCE_LSTM for `cell_clip`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, TypeVar, cast, runtime_checkable

import numpy as np

from rnnbench.rnn.quantised import Range
from rnnbench.rnn.spec import Model
from rnnbench.rnn.weights import Layer

V = TypeVar("V")


class Primitives(Protocol[V]):
    """The operations of a backend. Values are [rows, columns]; constants are [columns] or [rows, columns]."""

    def constant(self, array: np.ndarray) -> V: ...
    def matmul(self, x: V, weight: V) -> V:
        """x [rows, k] by weight [k, n], giving [rows, n]."""
        ...

    def add(self, a: V, b: V) -> V:
        """b has a's shape, or is a constant [columns] for every row. The same holds for `mul`."""
        ...

    def sub(self, a: V, b: V) -> V: ...
    def mul(self, a: V, b: V) -> V: ...
    def sigmoid(self, x: V) -> V: ...
    def tanh(self, x: V) -> V: ...
    def relu(self, x: V) -> V: ...
    def clip(self, x: V, bound: float) -> V: ...
    def split(self, x: V, parts: int) -> list[V]:
        """Equal parts along the columns."""
        ...


class QuantisingPrimitives(Primitives[V], Protocol[V]):
    """The additional primitive for products of static 8-bit operands (`int8_static`)."""

    def quantised(self, x: V, operand: Range) -> V:
        """The nearest values of the range's 8 bits. Beyond its ends x saturates."""
        ...


class MorePrimitives(Primitives[V], Protocol[V]):
    """Operations that stacks of cells do not need. An adapter names those that its route has (`Probe.authors`)."""

    def concat(self, parts: Sequence[V]) -> V:
        """Values with equally many rows, side by side along the columns."""
        ...

    def columns(self, x: V, start: int, stop: int) -> V:
        """The columns from `start` up to `stop`."""
        ...

    def div(self, a: V, b: V) -> V:
        """b has a's shape."""
        ...

    def sqrt(self, x: V) -> V: ...
    def mean(self, x: V) -> V:
        """The mean of each row, in all of its columns: x's shape."""
        ...

    # For many steps at once (`linear.py`). Values may have any rank; operands of `add` and `mul` have the same shape.

    def exp(self, x: V) -> V: ...
    def log_sigmoid(self, x: V) -> V:
        """log σ(x) = −log(1 + e⁻ˣ), finite for every finite x."""
        ...

    def cumsum(self, x: V) -> V:
        """Each row of the first axis added to all rows before it."""
        ...

    def rows(self, x: V, start: int, stop: int) -> V:
        """x[start:stop] along the first axis."""
        ...

    def stacked(self, parts: Sequence[V]) -> V:
        """Values one after the other along the first axis."""
        ...

    def reshape(self, x: V, *shape: int) -> V:
        """The same elements in the same order. One size may be −1, which stands for the rest."""
        ...

    def einsum(self, equation: str, a: V, b: V) -> V:
        """`numpy.einsum` of two values. A value has each letter once. A letter that the output lacks is in both values.
        `Contraction` has the parts of an equation."""
        ...

    # A library's operators, which compute all steps of a layer, for time `fused`.

    def linear_attention(
        self, terms: tuple[V, V, V, V], state: V, sizes: AttentionSizes, steps: int, batch: int
    ) -> tuple[V, V]:
        """S' = exp(g)·S + kᵀ·v and y = q·S' of each head, for q, k, v, g in `terms`: y and the state after the call.

        q, k [steps·batch, heads·keys]; v, y [steps·batch, heads·values]; g has the columns of k, or one a head. The
        state is [batch, heads·keys·values].
        """
        ...

    def causal_convolution(self, x: V, ring: V, kernel: CausalKernel, steps: int, batch: int) -> tuple[V, V]:
        """A convolution over time of each channel of x [steps·batch, channels]: y, as x, and the ring after the call.

        The ring is the steps before the call side by side, the oldest first: [batch, (taps − 1)·channels].
        """
        ...


@runtime_checkable
class ConvolvingPrimitives(Protocol[V]):
    """The additional primitive of a route whose runtime calls a kernel for each operation: one convolution instead of a
    product, and the slices that it reads, for each frequency."""

    def convolution(self, x: V, weight: np.ndarray, bias: np.ndarray, frequencies: int) -> V:
        """A `valid` convolution over taps and frequencies of x [rows, taps·frequencies·channels], over all of the taps.

        weight [filters, channels, taps, span], bias [filters]; y [rows, (frequencies − span + 1)·filters].
        """
        ...


class WindowSizes(NamedTuple):
    """The sizes of `WindowPrimitives.windows`: of x, and of the kernel of a convolution over it."""

    taps: int
    frequencies: int
    channels: int
    span: int

    @property
    def places(self) -> int:
        return self.frequencies - self.span + 1

    @property
    def seen(self) -> int:
        """Values of x that one y sees."""
        return self.taps * self.span * self.channels


@runtime_checkable
class WindowPrimitives(Protocol[V]):
    """The additional primitive of a route that computes such a convolution best as one product."""

    def windows(self, x: V, sizes: WindowSizes) -> V:
        """What the kernel sees at each place, one below the other: [rows·places, taps·span·channels].

        x [rows, taps·frequencies·channels].
        """
        ...


@runtime_checkable
class FramePrimitives(Protocol):
    """The primitives of a route that computes the frames of x best as one product of all of them."""

    joins_frames: bool


@runtime_checkable
class SummingPrimitives(Protocol[V]):
    """The additional primitive of a route whose runtime calls a kernel for each operation: one sum of many parts."""

    def sum_of_parts(self, x: V, parts: int) -> V:
        """The sum of equal parts along the columns: x [rows, parts·n], y [rows, n]."""
        ...


class AttentionSizes(NamedTuple):
    """The sizes of `MorePrimitives.linear_attention`."""

    heads: int
    keys: int
    values: int


@dataclass(frozen=True, eq=False)
class CausalKernel:
    """The kernel of `MorePrimitives.causal_convolution`."""

    weight: np.ndarray
    """[channels, taps], the current step last."""
    bias: np.ndarray
    """[channels]"""
    silu: bool
    """Whether SiLU is applied to the sum."""


class LayerBody(Protocol[V]):
    """One layer in one direction. Its constants are made in its constructor, outside any loop."""

    def project(self, x: V) -> V:
        """The part that does not depend on the state: x [rows, input] to [rows, projected]. Rows may be steps·batch."""
        ...

    def advance(self, projected: V, state: tuple[V, ...]) -> tuple[V, tuple[V, ...]]:
        """y and the next state from one step's projection [batch, projected]. Not called for a layer without state."""
        ...


def cell_body(ops: Primitives[V], model: Model, layer: Layer) -> LayerBody[V]:
    """The body of `model`'s cell with the weights of one layer and direction."""
    if model.cell == "lstm":
        return _Lstm(ops, model, layer)
    if model.cell == "gru":
        return _GruResetAfter(ops, model, layer) if model.reset_after else _GruResetBefore(ops, model, layer)
    if model.cell == "rnn":
        return _Rnn(ops, model, layer)
    return _Counter(ops)


class _Affine(LayerBody[V]):
    """The common parts of LSTM, GRU and RNN: a projection of x with its bias, and the clip before an activation."""

    def __init__(self, ops: Primitives[V], model: Model, layer: Layer, bias: np.ndarray | None) -> None:
        self.ops = ops
        self.model = model
        self.ranges = layer.ranges
        self.w_ih = ops.constant(layer.w_ih.T)
        self.bias = None if bias is None else ops.constant(bias)
        hard = model.recurrent_activation == "hard_sigmoid"
        self.slope = ops.constant(np.full(model.hidden, 0.2, layer.w_ih.dtype)) if hard else None
        self.middle = ops.constant(np.full(model.hidden, 0.5, layer.w_ih.dtype)) if hard else None

    def project(self, x: V) -> V:
        product = self.product(x, self.w_ih, "w_ih")
        return product if self.bias is None else self.ops.add(product, self.bias)

    def product(self, x: V, weight: V, name: str) -> V:
        """x times the matrix of this name. If its operand has a range, x is quantised to it first."""
        if operand := self.ranges.get(name):
            x = cast("QuantisingPrimitives[V]", self.ops).quantised(x, operand)
        return self.ops.matmul(x, weight)

    def clipped(self, x: V) -> V:
        return x if self.model.clip is None else self.ops.clip(x, self.model.clip)

    def gate(self, x: V) -> V:
        """The recurrent activation: the sigmoid, or ONNX's HardSigmoid, max(0, min(1, 0.2·x + 0.5))."""
        if self.slope is None or self.middle is None:
            return self.ops.sigmoid(x)
        return self.ops.add(self.ops.clip(self.ops.mul(x, self.slope), 0.5), self.middle)

    def activated(self, x: V) -> V:
        return self.ops.tanh(x) if self.model.activation == "tanh" else self.ops.relu(x)


def _summed(layer: Layer) -> np.ndarray | None:
    return None if layer.b_ih is None or layer.b_hh is None else layer.b_ih + layer.b_hh


class _Lstm(_Affine[V]):
    def __init__(self, ops: Primitives[V], model: Model, layer: Layer) -> None:
        super().__init__(ops, model, layer, _summed(layer))
        self.w_hh = ops.constant(layer.w_hh.T)
        self.w_hr = None if layer.w_hr is None else ops.constant(layer.w_hr.T)

    def advance(self, projected: V, state: tuple[V, ...]) -> tuple[V, tuple[V, ...]]:
        ops, (h, c) = self.ops, state
        i, f, g, o = ops.split(self.clipped(ops.add(self.product(h, self.w_hh, "w_hh"), projected)), 4)
        c = ops.add(ops.mul(self.gate(f), c), ops.mul(self.gate(i), self.activated(g)))
        if self.model.cell_clip is not None:
            c = ops.clip(c, self.model.cell_clip)
        h = ops.mul(self.gate(o), self.activated(c))
        h = h if self.w_hr is None else self.product(h, self.w_hr, "w_hr")
        return h, (h, c)


class _GruResetAfter(_Affine[V]):
    """The reset gate scales the recurrent product (torch; Keras' `reset_after`; ONNX `linear_before_reset=1`)."""

    def __init__(self, ops: Primitives[V], model: Model, layer: Layer) -> None:
        super().__init__(ops, model, layer, layer.b_ih)
        self.w_hh = ops.constant(layer.w_hh.T)
        self.b_hh = None if layer.b_hh is None else ops.constant(layer.b_hh)

    def advance(self, projected: V, state: tuple[V, ...]) -> tuple[V, tuple[V, ...]]:
        ops, (h,) = self.ops, state
        recurrent = self.product(h, self.w_hh, "w_hh")
        if self.b_hh is not None:
            recurrent = ops.add(recurrent, self.b_hh)
        x_r, x_z, x_n = ops.split(projected, 3)
        h_r, h_z, h_n = ops.split(recurrent, 3)
        r = self.gate(self.clipped(ops.add(x_r, h_r)))
        z = self.gate(self.clipped(ops.add(x_z, h_z)))
        n = self.activated(self.clipped(ops.add(x_n, ops.mul(r, h_n))))
        h = ops.add(n, ops.mul(z, ops.sub(h, n)))
        return h, (h,)


class _GruResetBefore(_Affine[V]):
    """The reset gate scales the state before the product (Cho et al., 2014; ONNX `linear_before_reset=0`)."""

    def __init__(self, ops: Primitives[V], model: Model, layer: Layer) -> None:
        super().__init__(ops, model, layer, _summed(layer))
        gates = 2 * model.hidden
        self.w_rz = ops.constant(layer.w_hh[:gates].T)
        self.w_n = ops.constant(layer.w_hh[gates:].T)

    def advance(self, projected: V, state: tuple[V, ...]) -> tuple[V, tuple[V, ...]]:
        ops, (h,) = self.ops, state
        x_r, x_z, x_n = ops.split(projected, 3)
        h_r, h_z = ops.split(self.product(h, self.w_rz, "w_hh"), 2)
        r = self.gate(self.clipped(ops.add(x_r, h_r)))
        z = self.gate(self.clipped(ops.add(x_z, h_z)))
        n = self.activated(self.clipped(ops.add(self.product(ops.mul(r, h), self.w_n, "w_hh"), x_n)))
        h = ops.add(n, ops.mul(z, ops.sub(h, n)))
        return h, (h,)


class _Rnn(_Affine[V]):
    def __init__(self, ops: Primitives[V], model: Model, layer: Layer) -> None:
        super().__init__(ops, model, layer, _summed(layer))
        self.w_hh = ops.constant(layer.w_hh.T)

    def advance(self, projected: V, state: tuple[V, ...]) -> tuple[V, tuple[V, ...]]:
        ops, (h,) = self.ops, state
        h = self.activated(self.clipped(ops.add(self.product(h, self.w_hh, "w_hh"), projected)))
        return h, (h,)


class _Counter(LayerBody[V]):
    def __init__(self, ops: Primitives[V]) -> None:
        self.ops = ops

    def project(self, x: V) -> V:
        return x

    def advance(self, projected: V, state: tuple[V, ...]) -> tuple[V, tuple[V, ...]]:
        h = self.ops.add(state[0], projected)
        return h, (h,)
