"""The kernel of a model: one PrimFunc that runs every layer over one chunk, generated from the spec.

It runs tile of time by tile of time, for each layer and direction. First comes the projection of x for all steps of the
tile, a matrix product that reads w_ih once. Then come the steps one after the other, each of which reads w_hh once.
States, projections and the outputs of a layer are in scratch memory, in rows padded to whole vectors.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tvm import tirx
from tvm.script.ir_builder import IRBuilder
from tvm.tirx.script import builder as T

from rnnbench.backends.tvm.activations import Expr
from rnnbench.backends.tvm.byte_sums import ByteRows
from rnnbench.backends.tvm.llvm_ir import MARK
from rnnbench.backends.tvm.packing import (
    FORMATS,
    MAX_VECTORS,
    ONE_ROW_VECTORS,
    Blocking,
    Matrix,
    PackedLayer,
    is_joint,
    layout,
    size,
)
from rnnbench.backends.tvm.product import Emitter
from rnnbench.backends.tvm.step import CellStep, StepRows
from rnnbench.backends.tvm.sums import Product, Rows, each
from rnnbench.cases import Strategy
from rnnbench.rnn import GATES, Model, Weights

TILE = 16
"""Steps whose projections are computed together: enough that w_ih is read rarely, few enough for the caches."""
MANY_REGISTERS = 32
"""Vector registers of AVX-512 and of ARM."""


def tile(strategy: Strategy) -> int:
    """Steps that are projected together: TILE, or as many as the copies of a loop's body make of it."""
    number = strategy.copies or strategy.chunk
    return min(strategy.chunk, max(TILE // number, 1) * number)


def blocking(strategy: Strategy, batch: int, registers: int, dtype: str) -> Blocking:
    """How the products of a kernel are cut for a number format, and a target with as many vector registers.

    One step a call reads both matrices once, so that their blocks alternate.
    """

    larger = registers < MANY_REGISTERS or FORMATS[dtype].of_bytes

    def vectors(rows: int) -> int:
        return ONE_ROW_VECTORS if rows == 1 and larger else MAX_VECTORS

    rows = tile(strategy) * batch
    return Blocking(vectors(rows), vectors(batch), joint=tile(strategy) == 1)


def kernel(
    model: Model,
    strategy: Strategy,
    batch: int,
    lanes: int,
    registers: int,
    threads: int,
    dtype: str,
    weights: Weights,
) -> Any:
    """The PrimFunc `main(params, x, state…, y)`, of flat float32 arrays. It reads only the ranges of `weights`.

    The state is h and then c, each [layers·directions, batch, size]: `state_in` and `state_out` where it is stitched,
    one `state` that changes in place where it is stateful. Its last element is 0 or 1: the direction in which the first
    step reads the blocks of weights. No result depends on it.
    """
    blocks = blocking(strategy, batch, registers, dtype)
    emit = Emitter(lanes, registers, threads, dtype)
    layers = layout(model, lanes, dtype, blocks, weights)
    return _Kernel(model, strategy, batch, emit, layers, is_joint(model, blocks)).build()


class _Kernel:
    def __init__(
        self,
        model: Model,
        strategy: Strategy,
        batch: int,
        emit: Emitter,
        layers: tuple[PackedLayer, ...],
        joint: bool,
    ) -> None:
        self.model = model
        self.strategy = strategy
        self.batch = batch
        self.chunk = strategy.chunk
        self.copies = strategy.copies or strategy.chunk
        self.tile = tile(strategy)
        self.emit = emit
        self.layers = layers
        self.joint = joint and bool(layers)
        self.states: dict[str, int] = {}
        end = 0
        for name, shape in model.state_shapes(batch).items():
            self.states[name] = end
            end += shape[0] * shape[1] * shape[2]
        self.turn = end

    def build(self) -> Any:
        model, batch = self.model, self.batch
        with IRBuilder() as builder, T.prim_func(s_tir=True):
            T.func_name("main")
            T.func_attr({"global_symbol": "main", "tirx.noalias": True})
            self.params = self._argument("params", max(1, size(self.layers)))
            self.x = self._argument("x", self.chunk * batch * model.input)
            self._arguments_of_state()
            self.y = self._argument("y", self.chunk * batch * model.width)
            self._allocate()
            turn = self._read_turn()
            with self.emit.sharing.region():
                for layer in range(model.layers):
                    for direction in range(model.directions):
                        self._layer(layer, direction, turn)
                self._write_y()
            if self.after is not None:
                following = tirx.Cast("float32", tirx.floormod(turn + self.chunk, 2))
                T.buffer_store(self.after, following, [self.turn])
        return builder.get()

    def _argument(self, name: str, elements: int) -> Expr:
        return T.arg(name, T.buffer((elements,), "float32"))

    def _arguments_of_state(self) -> None:
        state = self.strategy.state
        self.before = self.after = None
        if state == "stateful":
            self.before = self.after = self._argument("state", self.turn + 1)
        elif state == "stitched":
            self.before = self._argument("state_in", self.turn + 1)
            self.after = self._argument("state_out", self.turn + 1)

    def _read_turn(self) -> Expr:
        turn = T.alloc_buffer((1,), "int32")
        T.buffer_store(turn, 0 if self.before is None else tirx.Cast("int32", self.before[self.turn]), [0])
        return turn[0]

    def _allocate(self) -> None:
        """Scratch memory in one buffer: outputs of two layers, projections of a tile, a cell state, two vectors."""
        model, batch = self.model, self.batch
        gates = max(1, GATES[model.cell])
        shapes = [((self.chunk + 1) * batch, model.output)] * (min(model.layers, 2) * model.directions)
        shapes += [(self.tile * batch, gates * self.emit.padded(model.hidden))]
        shapes += [(batch, model.hidden)] * 3
        total = sum(count * self.emit.padded(width) for count, width in shapes)
        scratch, rows, start = T.alloc_buffer((total,), "float32"), [], 0
        for count, width in shapes:
            rows.append(Rows(scratch, start, self.emit.padded(width), width))
            start += count * self.emit.padded(width)
        *self.outputs, self.projected, self.cell, spare, another = rows
        self.spare = (spare, another)
        matrices = [part for layer in self.layers for part in layer.parts if isinstance(part, Matrix)]
        if any(matrix.format.of_bytes for matrix in matrices):
            self.emit.bytes = ByteRows(self.emit, self.tile * batch, max(matrix.k for matrix in matrices))

    def _output(self, layer: int, direction: int) -> Rows:
        """chunk + 1 rows of batch: going forward, row 0 is the initial state; going backward, the last one is."""
        return self.outputs[(layer % 2) * self.model.directions + direction]

    def _backward(self, direction: int) -> bool:
        return direction == 1 or self.model.direction == "reverse"

    def _layer(self, layer: int, direction: int, turn: Expr) -> None:
        index = layer * self.model.directions + direction
        reverse = self._backward(direction)
        output = self._output(layer, direction)
        first, last = (self.chunk, 0) if reverse else (0, self.chunk)
        # Without a joint product, nothing reads these rows before the threads have met behind the projection.
        initial = output.since(first * self.batch)
        self.emit.sharing.alone(lambda: self._read_states(index, initial), wait=self.joint)
        packed = self.layers[index] if self.layers else None
        step = CellStep(self.emit, self.params, self.model, packed, self.batch)
        sources = self._sources(layer)

        def run_tile(number: Expr) -> None:
            done = number * self.tile
            steps = self._steps_left(done)
            start = self.chunk - done - steps if reverse else done
            beside = self._projection(packed, [rows.since(start * self.batch) for rows in sources], steps)

            def advance(time: Expr) -> None:
                at = steps - 1 - time if reverse else time
                rows = self._step_rows(output, start, at, beside, reverse=reverse)
                T.evaluate(tirx.call_llvm_intrin("void", MARK))
                step(rows, tirx.floormod(turn + time, 2))

            self._over_time(steps, advance)

        self._over_tiles(run_tile)
        self.emit.sharing.alone(lambda: self._write_states(index, output.since(last * self.batch)))

    def _step_rows(
        self, output: Rows, start: Expr, at: Expr, beside: tuple[Product, ...], *, reverse: bool
    ) -> StepRows:
        """What step `at` of the tile that begins at step `start` of the chunk reads and writes."""
        before, after = (start + at + 1, start + at) if reverse else (start + at, start + at + 1)
        return StepRows(
            projected=self.projected.since(at * self.batch),
            before=output.since(before * self.batch),
            after=output.since(after * self.batch),
            cell=self.cell,
            spare=self.spare,
            beside=beside,
        )

    def _over_tiles(self, run_tile: Callable[[Expr], None]) -> None:
        """A loop over the tiles of the chunk; where every step is a copy, no loop."""
        tiles = -(-self.chunk // self.tile)
        if self.copies == self.chunk:
            for number in range(tiles):
                run_tile(number)
        else:
            each(tiles, run_tile)

    def _steps_left(self, done: Expr) -> Expr:
        """Steps of a tile that starts after `done` steps."""
        if isinstance(done, int):
            return min(self.tile, self.chunk - done)
        return self.tile if self.chunk % self.tile == 0 else T.Bind(T.min(self.tile, self.chunk - done))

    def _over_time(self, steps: Expr, advance: Callable[[Expr], None]) -> None:
        """A loop over copies of the body; where every step is a copy, no loop."""
        if self.copies == self.chunk:
            for time in range(steps):
                advance(time)
            return
        with T.serial(
            tirx.floordiv(steps, self.copies) if not isinstance(steps, int) else steps // self.copies
        ) as turn:
            IRBuilder.name("time", turn)
            for copy in range(self.copies):
                advance(turn * self.copies + copy)

    def _sources(self, layer: int) -> list[Rows]:
        """The rows that a layer reads, one for each step and sequence: x, or the outputs of the layer below."""
        model = self.model
        if layer == 0:
            return [Rows(self.x, 0, model.input, model.input)]
        below = [self._output(layer - 1, direction) for direction in range(model.directions)]
        return [rows if self._backward(direction) else rows.since(self.batch) for direction, rows in enumerate(below)]

    def _projection(self, packed: PackedLayer | None, sources: list[Rows], steps: Expr) -> tuple[Product, ...]:
        """w_ih·x and its bias, for all steps of a tile: computed here, or returned as what a step has to do."""
        count = steps * self.batch
        if packed is None:
            self.emit.copy(self.projected, sources[0], count)
            return ()
        emit, bias, padded = self.emit, packed.b_x, packed.w_ih.padded

        def initial(row: Expr, unit: Expr, gate: int) -> Expr:
            return emit.constant(0.0) if bias is None else emit.load(self.params, bias.offset + gate * padded + unit)

        def finish(row: Expr, unit: Expr, gates: Sequence[Expr]) -> None:
            for gate, value in enumerate(gates):
                emit.store(self.projected.buffer, self.projected.at(row) + gate * padded + unit, value)

        product = Product(packed.w_ih, sources, initial, finish)
        if self.joint:
            return (product,)
        emit.products(self.params, (product,), count, self.tile * self.batch)
        return ()

    def _state_rows(self, buffer: Expr, name: str, index: int) -> Rows:
        _, batch, width = self.model.state_shapes(self.batch)[name]
        return Rows(buffer, self.states[name] + index * batch * width, width, width)

    def _read_states(self, index: int, h: Rows) -> None:
        self._read_state("h", index, h)
        self._read_state("c", index, self.cell)

    def _write_states(self, index: int, h: Rows) -> None:
        self._write_state("h", index, h)
        self._write_state("c", index, self.cell)

    def _read_state(self, name: str, index: int, rows: Rows) -> None:
        if name not in self.states:
            return
        self.emit.clear(rows, self.batch)
        if self.before is not None:
            self.emit.copy(rows, self._state_rows(self.before, name, index), self.batch)

    def _write_state(self, name: str, index: int, rows: Rows) -> None:
        if name in self.states and self.after is not None:
            self.emit.copy(self._state_rows(self.after, name, index), rows, self.batch)

    def _write_y(self) -> None:
        model = self.model
        for direction in range(model.directions):
            source = self._output(model.layers - 1, direction)
            source = source if self._backward(direction) else source.since(self.batch)
            target = Rows(self.y, direction * model.output, model.width, model.output)
            self._write_rows(target, source)

    def _write_rows(self, target: Rows, source: Rows) -> None:
        def part(first: Expr, rows: Expr) -> None:
            self.emit.copy(target.since(first), source.since(first), rows)

        self.emit.sharing.shared(self.chunk * self.batch, part, wait=False)
