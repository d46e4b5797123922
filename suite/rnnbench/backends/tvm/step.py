"""One time step of each cell on vectors of units: the recurrent products and the gates."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rnnbench.backends.tvm.activations import Expr, Quotient
from rnnbench.backends.tvm.packing import Matrix, PackedLayer
from rnnbench.backends.tvm.product import Emitter
from rnnbench.backends.tvm.sums import Finish, Product, Rows, each
from rnnbench.rnn import Model


@dataclass(frozen=True)
class StepRows:
    """The rows that a step reads and writes, one for each sequence of the batch."""

    projected: Rows
    """The projection of x, [gates, padded] a row."""
    before: Rows
    """h of the step before."""
    after: Rows
    """h of this step."""
    cell: Rows
    """c of an LSTM, updated in place."""
    spare: tuple[Rows, Rows]
    """Room for two vectors of `hidden` units."""
    beside: tuple[Product, ...]
    """The product that gives `projected`, where its blocks alternate with those of the recurrent product."""


class CellStep:
    """Emits one step of one layer. Blocks run backwards where `flipped` is 1, else forwards."""

    def __init__(self, emit: Emitter, params: Expr, model: Model, layer: PackedLayer | None, batch: int) -> None:
        self.emit = emit
        self.params = params
        self.model = model
        self.layer = layer
        self.batch = batch

    def __call__(self, at: StepRows, flipped: Expr) -> None:
        if self.layer is None:
            self._counter(at)
        elif self.model.cell == "lstm":
            self._lstm(self.layer, at, flipped)
        elif self.model.cell == "rnn":
            self._rnn(self.layer, at, flipped)
        elif self.layer.w_n is None:
            self._gru_reset_after(self.layer, at, flipped)
        else:
            self._gru_reset_before(self.layer, self.layer.w_n, at, flipped)

    def _lstm(self, layer: PackedLayer, at: StepRows, flipped: Expr) -> None:
        emit, w_hr = self.emit, layer.w_hr
        out = at.after if w_hr is None else at.spare[0]

        def finish(row: Expr, unit: Expr, gates: Sequence[Expr]) -> None:
            i, f, g, o = (self._clipped(gate) for gate in gates)
            where = at.cell.at(row) + unit
            remembered = self._gate(f).value() * emit.load(at.cell.buffer, where)
            c = remembered + (self._gate(i) * self._activated(g)).value()
            c = emit.of_dtype(c if self.model.cell_clip is None else emit.clamp(c, self.model.cell_clip))
            emit.store(at.cell.buffer, where, c)
            h = (self._gate(o) * self._activated(c)).value()
            emit.store(out.buffer, out.at(row) + unit, h if w_hr is not None else emit.of_dtype(h))

        self._blocks(layer.w_hh, at.before, self._projected(at), finish, flipped, at.beside)
        if w_hr is not None:

            def store(row: Expr, unit: Expr, gates: Sequence[Expr]) -> None:
                emit.store(at.after.buffer, at.after.at(row) + unit, emit.of_dtype(gates[0]))

            self._blocks(w_hr, out, lambda row, unit, gate: emit.constant(0.0), store, 0)

    def _rnn(self, layer: PackedLayer, at: StepRows, flipped: Expr) -> None:
        def finish(row: Expr, unit: Expr, gates: Sequence[Expr]) -> None:
            h = self._activated(self._clipped(gates[0])).value()
            self.emit.store(at.after.buffer, at.after.at(row) + unit, self.emit.of_dtype(h))

        self._blocks(layer.w_hh, at.before, self._projected(at), finish, flipped, at.beside)

    def _gru_reset_after(self, layer: PackedLayer, at: StepRows, flipped: Expr) -> None:
        emit, b_n = self.emit, layer.b_n
        projected = self._projected(at)

        def initial(row: Expr, unit: Expr, gate: int) -> Expr:
            if gate < 2:
                return projected(row, unit, gate)
            return emit.constant(0.0) if b_n is None else emit.load(self.params, b_n.offset + unit)

        def finish(row: Expr, unit: Expr, gates: Sequence[Expr]) -> None:
            r, z = (self._gate(self._clipped(gate)).value() for gate in gates[:2])
            n = emit.stored(self._activated(self._clipped(projected(row, unit, 2) + r * gates[2])).value())
            self._blend(at, row, unit, z, n)

        self._blocks(layer.w_hh, at.before, initial, finish, flipped, at.beside)

    def _gru_reset_before(self, layer: PackedLayer, w_n: Matrix, at: StepRows, flipped: Expr) -> None:
        emit, (reset, update) = self.emit, at.spare
        projected = self._projected(at)

        def gated(row: Expr, unit: Expr, gates: Sequence[Expr]) -> None:
            r, z = (self._gate(self._clipped(gate)).value() for gate in gates)
            emit.store(reset.buffer, reset.at(row) + unit, r * emit.load(at.before.buffer, at.before.at(row) + unit))
            emit.store(update.buffer, update.at(row) + unit, z)

        def finish(row: Expr, unit: Expr, gates: Sequence[Expr]) -> None:
            n = emit.stored(self._activated(self._clipped(gates[0])).value())
            self._blend(at, row, unit, emit.load(update.buffer, update.at(row) + unit), n)

        self._blocks(layer.w_hh, at.before, projected, gated, flipped)
        self._blocks(w_n, reset, lambda row, unit, gate: projected(row, unit, 2), finish, flipped)

    def _counter(self, at: StepRows) -> None:
        emit = self.emit

        def add(row: Expr, unit: Expr) -> None:
            total = emit.load(at.before.buffer, at.before.at(row) + unit)
            total = total + emit.load(at.projected.buffer, at.projected.at(row) + unit)
            emit.store(at.after.buffer, at.after.at(row) + unit, emit.of_dtype(total))

        vectors = -(-self.model.hidden // emit.lanes)
        each(self.batch, lambda row: each(vectors, lambda v: add(row, v * emit.lanes)))

    def _blend(self, at: StepRows, row: Expr, unit: Expr, z: Expr, n: Expr) -> None:
        """h' = n + z·(h − n)."""
        before = self.emit.load(at.before.buffer, at.before.at(row) + unit)
        self.emit.store(at.after.buffer, at.after.at(row) + unit, self.emit.of_dtype(n + z * (before - n)))

    def _gate(self, x: Expr) -> Quotient:
        return self.emit.sigmoid(x) if self.model.recurrent_activation == "sigmoid" else self.emit.hard_sigmoid(x)

    def _activated(self, x: Expr) -> Quotient:
        return self.emit.tanh(x) if self.model.activation == "tanh" else self.emit.relu(x)

    def _clipped(self, x: Expr) -> Expr:
        return x if self.model.clip is None else self.emit.clamp(x, self.model.clip)

    def _projected(self, at: StepRows) -> Callable[[Expr, Expr, int], Expr]:
        padded = self.emit.padded(self.model.hidden)
        return lambda row, unit, gate: self.emit.load(at.projected.buffer, at.projected.at(row) + gate * padded + unit)

    def _blocks(
        self,
        matrix: Matrix,
        source: Rows,
        initial: Callable[[Expr, Expr, int], Expr],
        finish: Finish,
        flipped: Expr,
        beside: tuple[Product, ...] = (),
    ) -> None:
        products = (*beside, Product(matrix, [source], initial, finish))
        self.emit.products(self.params, products, self.batch, self.batch, flipped)
