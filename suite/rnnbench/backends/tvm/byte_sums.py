"""Products of bytes: rows that are quantised to 8 bits, and sums of four products at once in 32 bits (VNNI).

A value becomes an unsigned byte q, which stands for (q − zero)·scale. Weights are signed bytes. A product's sum starts
from −zero times the sum of the output's weights, so that the zero point counts for nothing.
"""

from __future__ import annotations

from dataclasses import replace

from tvm import tirx
from tvm.tirx.script import builder as T

from rnnbench.backends.tvm.activations import Expr, VectorMath
from rnnbench.backends.tvm.sums import BlockSums, Product, Rows, Span, each
from rnnbench.rnn import Range

PRODUCTS = {lanes: f"llvm.x86.avx512.vpdpbusd.{32 * lanes}" for lanes in (16, 8)}
"""LLVM's name of the instruction, by lanes of 32 bits. AVX-VNNI has that of 8 lanes, too."""
PRODUCTS_IN_A_LANE = 4
"""Products that the instruction adds to a lane."""
ZERO = 128
"""The byte that stands for 0, where a row has a range of its own. It reaches as far below as above."""
LARGEST = 127
LEAST = 1e-30
"""The least largest magnitude of a row, so that a row of zeros has a scale."""
ROUNDING = 1.5 * 2**23
"""Added to a number below 2²², it leaves the nearest whole number in the lowest bits of the sum."""
MAGNITUDE = 0x7FFFFFFF
"""The bits of a float32 but its sign. As whole numbers, they are in the order of magnitudes, and NaN is the largest."""
PRODUCTS_AT_ONCE = 2
"""Products of one pass: by x and by h."""


class ByteRows:
    """Room for the quantised rows of a pass, and the code that fills it."""

    def __init__(self, math: VectorMath, rows: int, width: int) -> None:
        """Room for each product's `rows` of up to `width` values."""
        self._math = math
        self._stride = -(-width // PRODUCTS_IN_A_LANE) * PRODUCTS_IN_A_LANE
        self._rows = rows
        self._bytes = [T.alloc_buffer((rows * self._stride,), "uint8") for _ in range(PRODUCTS_AT_ONCE)]
        self._scales = [T.alloc_buffer((rows,), "float32") for _ in range(PRODUCTS_AT_ONCE)]

    def quantised(self, place: int, product: Product, count: Expr) -> Product:
        """The product with `count` rows of its sources as bytes, which are written to place 0 or 1."""
        width = product.matrix.groups * PRODUCTS_IN_A_LANE
        target = Rows(self._bytes[place], 0, self._stride, width)
        scales = Rows(self._scales[place], 0, self._rows, self._rows)
        each(count, lambda row: self._quantise(product, row, target, scales))
        return replace(product, sources=[target], scales=scales)

    def _quantise(self, product: Product, row: Expr, target: Rows, scales: Rows) -> None:
        operand = product.matrix.operand
        if operand is None:
            largest = self._scalar(T.max(_number(LEAST), self._largest(product, row)))
            steps = self._scalar(_number(LARGEST) / largest)
            scale: Expr = largest * _number(1 / LARGEST)
        else:
            steps, scale = _number(1 / operand.scale), _number(operand.scale)
        T.buffer_store(scales.buffer, scale, [scales.start + row])
        start = target.at(row)
        for source in product.sources:
            self._write(source, row, target.buffer, start, steps, operand)
            start = start + source.width

    def _write(self, source: Rows, row: Expr, target: Expr, start: Expr, steps: Expr, operand: Range | None) -> None:
        """A source's row as bytes: whole vectors, and then one value after the other."""
        lanes, at = self._math.lanes, source.at(row)
        whole = source.width // lanes

        def vector(number: Expr) -> None:
            values = self._math.load(source.buffer, at + number * lanes)
            T.buffer_store(target, _bytes(values, steps, operand, lanes), [tirx.Ramp(start + number * lanes, 1, lanes)])

        if whole:
            each(whole, vector)
        for i in range(whole * lanes, source.width):
            T.buffer_store(target, _bytes(source.buffer[at + i], steps, operand, 1), [start + i])

    def _largest(self, product: Product, row: Expr) -> Expr:
        """The largest magnitude of a row; NaN where it has one."""
        lanes = self._math.lanes
        most = T.alloc_buffer((lanes,), "int32")
        ramp = tirx.Ramp(0, 1, lanes)
        T.buffer_store(most, _whole(0, lanes), [ramp])
        rest: list[Expr] = []
        for source in product.sources:
            at, whole = source.at(row), source.width // lanes

            def vector(number: Expr, source: Rows = source, at: Expr = at) -> None:
                values = self._math.load(source.buffer, at + number * lanes)
                T.buffer_store(most, T.max(most[ramp], _magnitude(values, lanes)), [ramp])

            if whole:
                each(whole, vector)
            rest += [_magnitude(source.buffer[at + i], 1) for i in range(whole * lanes, source.width)]
        largest = T.alloc_buffer((1,), "int32")
        T.buffer_store(largest, tirx.call_llvm_pure_intrin("int32", "llvm.vector.reduce.smax", most[ramp]), [0])
        for value in rest:
            T.buffer_store(largest, T.max(largest[0], value), [0])
        return tirx.reinterpret("float32", largest[0])

    def _scalar(self, value: Expr) -> Expr:
        """A number, computed once."""
        buffer = T.alloc_buffer((1,), "float32")
        T.buffer_store(buffer, value, [0])
        return buffer[0]


class ByteSums(BlockSums):
    """Sums of products of bytes, in whole numbers of 32 bits."""

    dtype = "int32"

    def start(self) -> None:
        math, matrix = self._math, self._matrix
        zero = ZERO if matrix.operand is None else matrix.operand.zero
        sums_of_weights = matrix.start(self._block) + matrix.weights_size + math.lanes
        for sums in self._places:
            for v in range(matrix.vectors):
                loaded = math.load(self._params, sums_of_weights + v * math.lanes)
                of_weights = tirx.reinterpret(f"int32x{math.lanes}", loaded)
                math.store(sums.buffer, sums.start + v * math.lanes, of_weights * _whole(-zero, math.lanes))

    def _group(self, span: Span, number: Expr) -> None:
        math, matrix, source = self._math, self._matrix, span.source
        lanes, together = math.lanes, matrix.format.together
        packed = f"int8x{lanes * together}"
        inputs = [
            tirx.reinterpret(packed, math.broadcast(_word(source.buffer, source.at(row) + number * together)))
            for row in self._rows
        ]
        for v in range(matrix.vectors):
            at = span.start + (number * matrix.vectors + v) * matrix.vector_size
            weights = tirx.reinterpret(packed, math.load(self._params, at))
            for sums, values in zip(self._places, inputs, strict=True):
                place = sums.start + v * lanes
                total = math.load(sums.buffer, place)
                total = tirx.call_llvm_pure_intrin(f"int32x{lanes}", PRODUCTS[lanes], total, values, weights)
                math.store(sums.buffer, place, total)

    def _scale(self, row: Expr) -> Expr:
        scales = self._product.scales
        assert scales is not None, "rows of bytes have scales"
        return super()._scale(row) * self._math.broadcast(scales.buffer[scales.start + row])

    def _number(self, total: Expr) -> Expr:
        return tirx.Cast(f"float32x{self._math.lanes}", total)


def _bytes(values: Expr, steps: Expr, operand: Range | None, lanes: int) -> Expr:
    """Values as bytes: the nearest, ties to even. Beyond a fixed range they are its ends."""

    def number(value: float) -> Expr:
        return _several(_number(value), lanes)

    zero = ZERO if operand is None else operand.zero
    scaled = values * _several(steps, lanes)
    if operand is not None:
        scaled = T.max(number(-zero), T.min(number(255 - zero), scaled))
    rounded = scaled + number(ROUNDING + zero)
    return tirx.Cast(_type("uint8", lanes), tirx.reinterpret(_type("int32", lanes), rounded))


def _magnitude(values: Expr, lanes: int) -> Expr:
    return tirx.reinterpret(_type("int32", lanes), values) & _whole(MAGNITUDE, lanes)


def _word(source: Expr, at: Expr) -> Expr:
    """Four bytes as one number of 32 bits."""
    return tirx.reinterpret("int32", source[tirx.Ramp(at, 1, PRODUCTS_IN_A_LANE)])


def _number(value: float) -> Expr:
    return tirx.FloatImm("float32", value)


def _whole(value: int, lanes: int) -> Expr:
    return _several(tirx.IntImm("int32", value), lanes)


def _several(value: Expr, lanes: int) -> Expr:
    return value if lanes == 1 else tirx.Broadcast(value, lanes)


def _type(name: str, lanes: int) -> str:
    return name if lanes == 1 else f"{name}x{lanes}"
