"""The parts of every kernel: copies of rows, and the product of rows by a packed matrix in registers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tvm import tirx
from tvm.tirx.script import builder as T

from rnnbench.backends.tvm.activations import Expr, VectorMath
from rnnbench.backends.tvm.packing import Matrix
from rnnbench.backends.tvm.sharing import Sharing

MAX_ACCUMULATORS = 24
"""Vectors of accumulators in one product: a register file of 32 keeps 8 for weights and inputs."""


@dataclass(frozen=True)
class Rows:
    """Rows of a buffer: row r starts at element `start + r·stride` and has `width` elements."""

    buffer: Expr
    start: Expr
    stride: int
    width: int

    def at(self, row: Expr) -> Expr:
        return self.start + row * self.stride

    def since(self, row: Expr) -> Rows:
        """The same rows, counted from `row`."""
        return Rows(self.buffer, self.at(row), self.stride, self.width)


class Emitter(VectorMath):
    """Emits loops, copies and products into the PrimFunc that is being built."""

    def __init__(self, lanes: int, threads: int, dtype: str) -> None:
        super().__init__(lanes)
        self.sharing = Sharing(threads)
        self.narrow = dtype == "bfloat16"

    def of_dtype(self, value: Expr) -> Expr:
        """A value of the state or the output, stored: in bfloat16 rounded to nearest, ties to even. A NaN stays one."""
        value = self.stored(value)
        if not self.narrow:
            return value
        lanes = self.lanes

        def whole(number: int) -> Expr:
            return tirx.Broadcast(tirx.IntImm("uint32", number), lanes)

        bits = tirx.reinterpret(f"uint32x{lanes}", value)
        upper = (bits + whole(0x7FFF) + ((bits >> whole(16)) & whole(1))) & whole(0xFFFF0000)
        # TVM takes `value == value` for true.
        is_nan = (bits & whole(0x7FFFFFFF)) > whole(0x7F800000)
        return self.stored(tirx.Select(is_nan, value, tirx.reinterpret(f"float32x{lanes}", upper)))

    def padded(self, width: int) -> int:
        """`width`, rounded up to whole vectors."""
        return -(-width // self.lanes) * self.lanes

    def each(self, count: Expr, body: Callable[[Expr], None]) -> None:
        """A serial loop, or none where there is one iteration."""
        if isinstance(count, int) and count == 1:
            body(0)
            return
        with T.serial(count) as index:
            body(index)

    def load(self, buffer: Expr, start: Expr) -> Expr:
        return buffer[tirx.Ramp(start, 1, self.lanes)]

    def store(self, buffer: Expr, start: Expr, value: Expr) -> None:
        T.buffer_store(buffer, value, [tirx.Ramp(start, 1, self.lanes)])

    def copy(self, target: Rows, source: Rows, rows: Expr) -> None:
        """Copies the elements of each row, without its padding."""
        vectors, lanes = source.width // self.lanes, self.lanes

        def row(index: Expr) -> None:
            to, start = target.at(index), source.at(index)
            if vectors:
                self.each(
                    vectors,
                    lambda v: self.store(target.buffer, to + v * lanes, self.load(source.buffer, start + v * lanes)),
                )
            for i in range(vectors * lanes, source.width):
                T.buffer_store(target.buffer, source.buffer[start + i], [to + i])

        self.each(rows, row)

    def clear(self, target: Rows, rows: int) -> None:
        """Writes zeros, also in the padding."""
        vectors = self.padded(target.width) // self.lanes

        def row(index: Expr) -> None:
            to = target.at(index)
            self.each(vectors, lambda v: self.store(target.buffer, to + v * self.lanes, self.constant(0.0)))

        self.each(rows, row)

    def product(
        self,
        params: Expr,
        matrix: Matrix,
        sources: Sequence[Rows],
        count: Expr,
        most: int,
        initial: Callable[[Expr, Expr, int], Expr],
        finish: Callable[[Expr, Expr, Sequence[Expr]], None],
        flipped: Expr = 0,
    ) -> None:
        """The product of `count` rows of `sources`, side by side, by a packed matrix. `count` may vary, up to `most`.

        An output starts from `initial(row, unit, gate)` and goes to `finish(row, unit, gates)`, where `unit` is the
        first of a vector of units. Threads share the blocks, and wait for each other at the end. The blocks of a thread
        run backwards where `flipped` is 1, else forwards.
        """

        def blocks(first: Expr, number: Expr) -> None:
            def block(turn: Expr) -> None:
                index = first + turn + flipped * (number - 1 - 2 * turn)

                def tile(rows: Sequence[Expr]) -> None:
                    self._tile(params, matrix, index, sources, rows, initial, finish)

                self._in_tiles(count, most, matrix.vectors, tile)

            self.each(number, block)

        self.sharing.shared(matrix.blocks, blocks)

    def _tile(
        self,
        params: Expr,
        matrix: Matrix,
        block: Expr,
        sources: Sequence[Rows],
        rows: Sequence[Expr],
        initial: Callable[[Expr, Expr, int], Expr],
        finish: Callable[[Expr, Expr, Sequence[Expr]], None],
    ) -> None:
        vectors, lanes, scaled = matrix.vectors, self.lanes, matrix.format.scaled
        sums = [T.alloc_buffer((vectors * lanes,), "float32") for _ in rows]
        units = [(block * matrix.columns + column) * lanes for column in range(matrix.columns)]
        for r, row in enumerate(rows):
            for v in range(vectors):
                gate, column = divmod(v, matrix.columns)
                start = self.constant(0.0) if scaled else initial(row, units[column], gate)
                self.store(sums[r], v * lanes, start)
        start = matrix.offset + block * matrix.block_size
        for source in sources:
            self._multiply(params, matrix, start, source, rows, sums)
            start = start + source.width // matrix.format.together * vectors * matrix.vector_size
        for total, row in zip(sums, rows, strict=True):
            for column, unit in enumerate(units):
                gates = [self.load(total, (gate * matrix.columns + column) * lanes) for gate in range(matrix.gates)]
                if scaled:
                    scale = self.load(params, matrix.scale_offset)
                    gates = [self.stored(initial(row, unit, g) + scale * gate) for g, gate in enumerate(gates)]
                finish(row, unit, gates)

    def _multiply(
        self, params: Expr, matrix: Matrix, start: Expr, source: Rows, rows: Sequence[Expr], sums: Sequence[Expr]
    ) -> None:
        """Adds to `sums` the products of a source's rows by the weights at `start`."""
        together = matrix.format.together

        def group(number: Expr, parts: int) -> None:
            inputs = [
                [self.broadcast(source.buffer[source.at(row) + number * together + part]) for part in range(parts)]
                for row in rows
            ]
            for v in range(matrix.vectors):
                weights = self._weights(params, start + (number * matrix.vectors + v) * matrix.vector_size, matrix)
                at = v * self.lanes
                for total, values in zip(sums, inputs, strict=True):
                    for weight, value in zip(weights, values, strict=False):
                        self.store(total, at, self.load(total, at) + weight * value)

        whole, rest = divmod(source.width, together)
        if whole:
            with T.serial(whole) as number:
                group(number, together)
        if rest:
            group(whole, rest)

    def _weights(self, params: Expr, at: Expr, matrix: Matrix) -> list[Expr]:
        """Vectors of weights in float32, for each step of k that is in a lane."""
        size, lanes = matrix.vector_size, self.lanes
        loaded = params[tirx.Ramp(at, 1, size)]
        if matrix.format.nbytes == 4:
            return [loaded]
        if matrix.format.nbytes == 1:
            return [tirx.Cast(f"float32x{lanes}", tirx.reinterpret(f"int8x{lanes}", loaded))]
        bits = tirx.reinterpret(f"uint32x{lanes}", loaded)
        upper = bits & tirx.Broadcast(tirx.IntImm("uint32", 0xFFFF0000), lanes)
        lower = bits << tirx.Broadcast(tirx.IntImm("uint32", 16), lanes)
        return [tirx.reinterpret(f"float32x{lanes}", half) for half in (lower, upper)]

    def _in_tiles(self, count: Expr, most: int, vectors: int, body: Callable[[Sequence[Expr]], None]) -> None:
        """`body` with a few rows at a time.

        Where `count` varies and the last tile is not full, it repeats the last row: `body` must allow that.
        """
        limit = min(most, max(1, MAX_ACCUMULATORS // vectors))
        size = next((s for s in range(limit, limit // 2, -1) if most % s == 0), limit)
        if isinstance(count, int):
            whole, rest = divmod(count, size)
            if whole:
                self.each(whole, lambda tile: body([tile * size + i for i in range(size)]))
            if rest:
                body([whole * size + i for i in range(rest)])
            return
        tiles = tirx.floordiv(count + size - 1, size)
        self.each(tiles, lambda tile: body([T.min(tile * size + i, count - 1) for i in range(size)]))
