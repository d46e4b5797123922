"""The parts of every kernel: copies of rows, and the product of rows by a packed matrix in registers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from tvm import tirx
from tvm.tirx.script import builder as T

from rnnbench.backends.tvm.activations import Expr, VectorMath
from rnnbench.backends.tvm.byte_sums import ByteRows, ByteSums
from rnnbench.backends.tvm.packing import Matrix
from rnnbench.backends.tvm.sharing import Sharing
from rnnbench.backends.tvm.sums import BlockSums, Product, Rows, Span, each

INNERMOST_BYTES = 32 << 10
"""Weights of a block that stay in the innermost data cache while the rows of a batch pass: processors have 32 KiB."""
LENGTH = INNERMOST_BYTES // 2 // 4
"""Elements of weights that all rows pass at once, where a block has more. The other half is for rows and sums."""
READ_INTO_INNERMOST = (0, 3, 1)
"""The arguments of `llvm.prefetch` for data that will soon be read."""
ENOUGH_SUMS = 12
"""Sums at once that keep the units of multiply-adds busy: eight for two units with a latency of four, and some more."""


@dataclass(frozen=True)
class Tiles:
    """`number` tiles of `size` rows each, from row `first` on."""

    number: int
    size: int
    first: int


class Emitter(VectorMath):
    """Emits loops, copies and products into the PrimFunc that is being built."""

    def __init__(self, lanes: int, registers: int, threads: int, dtype: str) -> None:
        super().__init__(lanes)
        self.registers = registers
        self.sharing = Sharing(threads)
        self.narrow = dtype == "bfloat16"
        self.bytes: ByteRows | None = None
        """Room for quantised rows, where products are of bytes."""

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

    def copy(self, target: Rows, source: Rows, rows: Expr) -> None:
        """Copies the elements of each row, without its padding."""
        vectors, lanes = source.width // self.lanes, self.lanes

        def row(index: Expr) -> None:
            to, start = target.at(index), source.at(index)
            if vectors:
                each(
                    vectors,
                    lambda v: self.store(target.buffer, to + v * lanes, self.load(source.buffer, start + v * lanes)),
                )
            for i in range(vectors * lanes, source.width):
                T.buffer_store(target.buffer, source.buffer[start + i], [to + i])

        each(rows, row)

    def clear(self, target: Rows, rows: int) -> None:
        """Writes zeros, also in the padding."""
        vectors = self.padded(target.width) // self.lanes

        def row(index: Expr) -> None:
            to = target.at(index)
            each(vectors, lambda v: self.store(target.buffer, to + v * self.lanes, self.constant(0.0)))

        each(rows, row)

    def products(self, params: Expr, products: Sequence[Product], count: Expr, most: int, flipped: Expr = 0) -> None:
        """Products of `count` rows: a block of each, then the next block. `count` may vary, up to `most`.

        All matrices have the same blocks. Threads share them, and wait for each other at the end. The blocks of a
        thread run backwards where `flipped` is 1, else forwards.
        """
        matrix = products[-1].matrix
        products = self._quantised(products, count)

        def blocks(first: Expr, number: Expr) -> None:
            def block(turn: Expr) -> None:
                index = first + turn + flipped * (number - 1 - 2 * turn)
                if isinstance(count, int) and self._is_long(products, count):
                    for product in products:
                        self._in_lengths(params, product, index, count)
                    return

                def tile(rows: Sequence[Expr]) -> None:
                    for product in products:
                        self._tile(params, product, index, rows)

                self._in_tiles(count, most, matrix.vectors, tile)

            each(number, block)

        self.sharing.shared(matrix.blocks, blocks)

    def _quantised(self, products: Sequence[Product], count: Expr) -> Sequence[Product]:
        """The products with their rows in bytes, where they are of bytes. One thread quantises, and the others wait."""
        room = self.bytes
        if room is None:
            return products
        found: list[Product] = []
        self.sharing.alone(
            lambda: found.extend(room.quantised(place, product, count) for place, product in enumerate(products)),
            wait=True,
        )
        return found

    def _tile(self, params: Expr, product: Product, block: Expr, rows: Sequence[Expr]) -> None:
        sums = _sums_of(product.matrix)(self, params, product, block, rows, [self._sums(product.matrix) for _ in rows])
        sums.start()
        for span in sums.spans():
            sums.add(span)
        sums.finish()

    def _sums(self, matrix: Matrix, rows: int = 1) -> Rows:
        width = matrix.vectors * self.lanes
        return Rows(T.alloc_buffer((rows * width,), _sums_of(matrix).dtype), 0, width, width)

    def _is_long(self, products: Sequence[Product], count: int) -> bool:
        """Whether several tiles of rows would each read a block from beyond the innermost cache."""
        several = count > self._rows_at_most(products[-1].matrix.vectors)
        return several and max(product.matrix.block_size * 4 for product in products) > INNERMOST_BYTES

    def _in_lengths(self, params: Expr, product: Product, block: Expr, count: int) -> None:
        """A block for all rows: the first steps of k, which the cache holds, then the next ones.

        While rows pass, the next ones are fetched.
        """
        matrix = product.matrix
        kept = self._sums(matrix, count)
        groups = LENGTH // (matrix.vectors * matrix.vector_size)

        def every(rows: Sequence[Expr]) -> BlockSums:
            return _sums_of(matrix)(self, params, product, block, rows, [kept.since(row) for row in rows])

        def add(span: Span) -> None:
            def tile(rows: Sequence[Expr]) -> None:
                places = [self._sums(matrix) for _ in rows]
                for row, place in zip(rows, places, strict=True):
                    self._copy_vectors(place, kept.since(row))
                _sums_of(matrix)(self, params, product, block, rows, places).add(
                    span, partial(self._prefetch, params, matrix, span, rows, count)
                )
                for row, place in zip(rows, places, strict=True):
                    self._copy_vectors(kept.since(row), place)

            self._in_tiles(count, count, matrix.vectors, tile)

        each(count, lambda row: every([row]).start())
        for span in every([]).spans():
            whole, rest = divmod(span.count, groups)
            if whole:
                each(whole, partial(_each_length, add, span, groups))
            if rest:
                add(span.part(whole * groups, rest))
        each(count, lambda row: every([row]).finish())

    def _prefetch(
        self, params: Expr, matrix: Matrix, span: Span, rows: Sequence[Expr], count: int, number: Expr
    ) -> None:
        """In group `number` of a tile, asks for its share of the length after the span: all tiles ask for all of it."""
        group, share = matrix.vectors * matrix.vector_size, LENGTH // count
        following = T.min(span.start + (span.first + span.count) * group, params.shape[0] - LENGTH)
        at = following + rows[0] * share + number * (share * len(rows) * group // LENGTH)
        address = tirx.address_of(params[at])
        T.evaluate(tirx.call_llvm_intrin("void", "llvm.prefetch.p0", address, *map(_int32, READ_INTO_INNERMOST)))

    def _copy_vectors(self, target: Rows, source: Rows) -> None:
        """Copies a row of whole vectors, without a loop."""
        for place in range(0, target.width, self.lanes):
            self.store(target.buffer, target.start + place, self.load(source.buffer, source.start + place))

    def _rows_at_most(self, vectors: int) -> int:
        """Rows of a tile whose sums are in registers, beside a number of each row and a vector of weights."""
        return max(1, (self.registers - 1) // (vectors + 1))

    def _in_tiles(self, count: Expr, most: int, vectors: int, body: Callable[[Sequence[Expr]], None]) -> None:
        """`body` with a few rows at a time.

        Where `count` varies and the last tile is not full, it repeats the last row: `body` must allow that.
        """
        limit = min(most, self._rows_at_most(vectors))
        if isinstance(count, int):
            for tiles in tiles_of(count, limit, vectors):
                each(tiles.number, partial(_each_tile, body, tiles))
            return
        size = next((s for s in range(limit, limit // 2, -1) if most % s == 0), limit)
        whole = tirx.floordiv(count + size - 1, size)
        each(whole, lambda tile: body([T.min(tile * size + i, count - 1) for i in range(size)]))


def _sums_of(matrix: Matrix) -> type[BlockSums]:
    return ByteSums if matrix.format.of_bytes else BlockSums


def tiles_of(count: int, limit: int, vectors: int) -> list[Tiles]:
    """How `count` rows are cut into tiles of at most `limit`, whose products have blocks of as many vectors.

    They are equal where that leaves each enough sums. Else there are as few as can be, whose sizes differ by one.
    """
    for size in range(limit, 0, -1):
        if count % size == 0 and size * vectors >= ENOUGH_SUMS:
            return [Tiles(count // size, size, 0)]
    number = -(-count // limit)
    size, larger = divmod(count, number)
    sizes = (Tiles(larger, size + 1, 0), Tiles(number - larger, size, larger * (size + 1)))
    return [tiles for tiles in sizes if tiles.number]


def _int32(value: int) -> Expr:
    return tirx.IntImm("int32", value)


def _each_tile(body: Callable[[Sequence[Expr]], None], tiles: Tiles, tile: Expr) -> None:
    body([tiles.first + tile * tiles.size + i for i in range(tiles.size)])


def _each_length(add: Callable[[Span], None], span: Span, groups: int, number: Expr) -> None:
    add(span.part(number * groups, groups))
