"""The cells of stacks, each written once over the primitives.

The part that does not depend on the state is a separate function (`project`), so that a program can hoist it out of its
loop.

Equations: torch.nn.LSTM, torch.nn.GRU, torch.nn.RNN; the ONNX operators LSTM, GRU, RNN for `clip` and for the GRU
whose reset gate comes before the product; TFLite's UNIDIRECTIONAL_SEQUENCE_LSTM for `cell_clip`.
"""

from __future__ import annotations

from typing import cast

import numpy as np

from rnnbench.rnn.primitives import LayerBody, Primitives, QuantisingPrimitives, V
from rnnbench.rnn.spec import Model
from rnnbench.rnn.weights import Layer


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
