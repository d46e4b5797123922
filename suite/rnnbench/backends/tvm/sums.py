"""Sums of one block of a packed matrix for a few rows: accumulators in registers, and the loop that adds to them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from tvm import tirx
from tvm.tirx.script import builder as T

from rnnbench.backends.tvm.activations import Expr, VectorMath
from rnnbench.backends.tvm.packing import Matrix

Finish = Callable[[Expr, Expr, Sequence[Expr]], None]
"""What happens with sums: called with a row, the first unit of a vector, and that vector of each gate."""


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


@dataclass(frozen=True)
class Product:
    """The product of rows by a packed matrix."""

    matrix: Matrix
    sources: Sequence[Rows]
    """What is multiplied, side by side."""
    initial: Callable[[Expr, Expr, int], Expr]
    """What a sum starts from, for a row, the first unit of a vector, and a gate."""
    finish: Finish
    scales: Rows | None = None
    """One row with the scale of each source, if the sources are bytes."""


@dataclass(frozen=True)
class Span:
    """Steps of k that are added up in one loop: `count` groups from `first` on of a source."""

    source: Rows
    start: Expr
    """Where the source's weights of this block begin."""
    first: Expr
    count: int
    parts: int
    """Steps of k in a group."""

    def part(self, first: Expr, count: int) -> Span:
        """`count` groups of it, from its group `first` on."""
        return replace(self, first=self.first + first, count=count)


def each(count: Expr, body: Callable[[Expr], None]) -> None:
    """A serial loop, or none where there is one iteration."""
    if isinstance(count, int) and count == 1:
        body(0)
        return
    with T.serial(count) as index:
        body(index)


class BlockSums:
    """Sums of one block of a product's matrix, for some rows. `places` has a row of accumulators for each of them."""

    dtype = "float32"
    """The type of the accumulators."""

    def __init__(
        self, math: VectorMath, params: Expr, product: Product, block: Expr, rows: Sequence[Expr], places: list[Rows]
    ) -> None:
        self._math = math
        self._params = params
        self._product = product
        self._matrix = product.matrix
        self._block = block
        self._rows = rows
        self._places = places

    def start(self) -> None:
        """Writes what the sums start from. A sum that is scaled later starts from zero."""
        math, matrix = self._math, self._matrix
        for row, sums in zip(self._rows, self._places, strict=True):
            for v in range(matrix.vectors):
                gate, column = divmod(v, matrix.columns)
                value = math.constant(0.0)
                if not matrix.format.scaled:
                    value = self._product.initial(row, self._unit(column), gate)
                math.store(sums.buffer, sums.start + v * math.lanes, value)

    def spans(self) -> list[Span]:
        """All steps of k, a loop for each source, and one group for a rest that does not fill a lane."""
        matrix, spans = self._matrix, []
        together, start = matrix.format.together, matrix.start(self._block)
        for source in self._product.sources:
            whole, rest = divmod(source.width, together)
            if whole:
                spans.append(Span(source, start, 0, whole, together))
            if rest:
                spans.append(Span(source, start, whole, 1, rest))
            start = start + whole * matrix.vectors * matrix.vector_size
        return spans

    def add(self, span: Span, beside: Callable[[Expr], None] | None = None) -> None:
        """Adds the products of a span. `beside` is done with the number of each of its groups."""
        with T.serial(span.count) as number:
            if beside is not None:
                beside(number)
            self._group(span, span.first + number)

    def finish(self) -> None:
        """Hands the sums over, a row and a vector of units at a time."""
        for row, sums in zip(self._rows, self._places, strict=True):
            for column in range(self._matrix.columns):
                self._finish(row, sums, column)

    def _finish(self, row: Expr, sums: Rows, column: int) -> None:
        math, matrix, unit, initial = self._math, self._matrix, self._unit(column), self._product.initial
        places = [sums.start + (gate * matrix.columns + column) * math.lanes for gate in range(matrix.gates)]
        gates = [math.load(sums.buffer, place) for place in places]
        if matrix.format.scaled:
            scale = self._scale(row)
            gates = [math.stored(initial(row, unit, g) + scale * self._number(gate)) for g, gate in enumerate(gates)]
        self._product.finish(row, unit, gates)

    def _scale(self, row: Expr) -> Expr:
        """What the sums of a row are multiplied by."""
        return self._math.load(self._params, self._matrix.start(self._block) + self._matrix.weights_size)

    def _number(self, total: Expr) -> Expr:
        """A sum in float32."""
        return total

    def _unit(self, column: int) -> Expr:
        """The first unit of a column of the block."""
        return (self._block * self._matrix.columns + column) * self._math.lanes

    def _group(self, span: Span, number: Expr) -> None:
        math, matrix, source = self._math, self._matrix, span.source
        together = matrix.format.together
        inputs = [
            [math.broadcast(source.buffer[source.at(row) + number * together + part]) for part in range(span.parts)]
            for row in self._rows
        ]
        for v in range(matrix.vectors):
            weights = self._weights(span.start + (number * matrix.vectors + v) * matrix.vector_size)
            for sums, values in zip(self._places, inputs, strict=True):
                at = sums.start + v * math.lanes
                for weight, value in zip(weights, values, strict=False):
                    math.store(sums.buffer, at, math.load(sums.buffer, at) + weight * value)

    def _weights(self, at: Expr) -> list[Expr]:
        """Vectors of weights in float32, for each step of k that is in a lane."""
        lanes, stored = self._math.lanes, self._matrix.format
        loaded = self._params[tirx.Ramp(at, 1, self._matrix.vector_size)]
        if stored.nbytes == 4:
            return [loaded]
        if stored.nbytes == 1:
            return [tirx.Cast(f"float32x{lanes}", tirx.reinterpret(f"int8x{lanes}", loaded))]
        bits = tirx.reinterpret(f"uint32x{lanes}", loaded)
        upper = bits & tirx.Broadcast(tirx.IntImm("uint32", 0xFFFF0000), lanes)
        lower = bits << tirx.Broadcast(tirx.IntImm("uint32", 16), lanes)
        return [tirx.reinterpret(f"float32x{lanes}", half) for half in (lower, upper)]
