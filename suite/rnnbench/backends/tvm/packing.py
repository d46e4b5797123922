"""The layout of a model's weights in the one buffer that its kernel reads.

A product by a matrix of [gates·units, k] is computed block by block. A block is `vectors` vectors of `lanes` outputs,
and its weights are laid out as [k, vectors, lanes]. So the innermost loop reads memory in order, and every output has a
lane of an accumulator. All gates of a unit are in one block: vector g·columns + j holds gate g of the block's j-th
vector of units. Units are padded with zeros to whole vectors. The layout of a bias is [gates, padded].

Weights of fewer bits are in the same buffer: int8 as [k, vectors, lanes], and bfloat16 as [k/2, vectors, lanes, 2]. So
a load of 32-bit lanes has two steps of k. A block of int8 ends with the matrix's scale. For products of bytes, int8 is
[k/4, vectors, lanes, 4], and behind the scale is the sum of each output's weights. Sizes and offsets count float32
elements.

Where both products of a step have the same rows, the blocks of w_ih and w_hh alternate: a step then reads memory once,
in order.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from rnnbench.rnn import GATES, Layer, Model, Range, Weights, in_int8

MAX_VECTORS = 6
"""Vectors of a block, where nothing else is asked for."""
ONE_ROW_VECTORS = 8
"""Vectors of a block for one row, where there are 16 registers, of AVX or SSE, and of products of bytes. With float32
and 32 registers they take longer than 4 to 6."""


@dataclass(frozen=True)
class Format:
    """How weights are stored."""

    nbytes: int
    """Bytes of a weight."""
    together: int = 1
    """Weights of one output, for steps of k that follow each other, in a lane."""
    scaled: bool = False
    """Whether a weight is a whole number, and the matrix has a scale."""
    of_bytes: bool = False
    """Whether products are of bytes: what is multiplied is quantised, and sums are whole numbers."""


BYTES = Format(1, together=4, scaled=True, of_bytes=True)
FORMATS = {
    "float32": Format(4),
    "bfloat16": Format(2, together=2),
    "int8_weights": Format(1, scaled=True),
    "int8_dynamic": BYTES,
    "int8_static": BYTES,
}
"""By `workload.dtype`."""


@dataclass(frozen=True)
class Matrix:
    """A packed matrix of [gates·units, k] that starts at element `offset`."""

    offset: int
    gates: int
    units: int
    k: int
    lanes: int
    format: Format = FORMATS["float32"]
    most: int = MAX_VECTORS
    """Vectors of a block, at most, where it has more than one column."""
    gap: int = 0
    """Elements between two blocks: those of another matrix."""
    operand: Range | None = None
    """The range of what is multiplied, where it is a constant of the program."""

    @property
    def padded(self) -> int:
        """Units, rounded up to whole vectors."""
        return -(-self.units // self.lanes) * self.lanes

    @property
    def columns(self) -> int:
        """Vectors of units in a block: the most that divide the whole and keep the block within `most`."""
        whole = self.padded // self.lanes
        return max(j for j in range(1, max(1, self.most // self.gates) + 1) if whole % j == 0)

    @property
    def vectors(self) -> int:
        return self.gates * self.columns

    @property
    def blocks(self) -> int:
        return self.padded // (self.columns * self.lanes)

    @property
    def groups(self) -> int:
        """Steps of k, those that are in a lane together counted once."""
        return -(-self.k // self.format.together)

    @property
    def vector_size(self) -> int:
        """Elements of the weights that one vector of outputs has in a group."""
        return self.lanes * self.format.nbytes * self.format.together // 4

    @property
    def weights_size(self) -> int:
        """Elements of a block's weights."""
        return self.groups * self.vectors * self.vector_size

    @property
    def block_size(self) -> int:
        """Elements of a block: its weights, the scale as a vector of equal lanes, and a sum of each output's weights,
        if there are such."""
        return self.weights_size + self.lanes * (self.format.scaled + self.vectors * self.format.of_bytes)

    @property
    def size(self) -> int:
        return self.blocks * self.block_size

    def start(self, block: Any) -> Any:
        """The first element of a block, whose number may be an expression."""
        return self.offset + block * (self.block_size + self.gap)

    def pack(self, weight: np.ndarray) -> np.ndarray:
        """[gates·units, k] to [blocks, block_size]: a block has [groups, gates, columns, lanes, together] weights, seen
        as float32, the scale, and [gates, columns, lanes] sums, whole numbers that are seen as float32."""
        together = self.format.together
        scale = in_int8(weight).scale if self.format.scaled else 1.0
        padded = np.zeros((self.gates, self.padded, self.groups * together), np.float32)
        padded[:, : self.units, : self.k] = weight.reshape(self.gates, self.units, self.k) / scale
        shape = (self.gates, self.blocks, self.columns, self.lanes, self.groups, together)
        ordered = np.ascontiguousarray(padded.reshape(shape).transpose(1, 4, 0, 2, 3, 5))
        if self.format.nbytes == 2:
            ordered = (ordered.view(np.uint32) >> 16).astype(np.uint16)
        if self.format.nbytes == 1:
            ordered = np.rint(ordered).astype(np.int8)
        numbers = [ordered.reshape(self.blocks, -1).view(np.float32)]
        numbers.append(np.full((self.blocks, self.lanes * self.format.scaled), scale, np.float32))
        if self.format.of_bytes:
            sums = ordered.sum(axis=(1, 5), dtype=np.int32)
            numbers.append(np.ascontiguousarray(sums.reshape(self.blocks, -1)).view(np.float32))
        return np.concatenate(numbers, axis=1)


@dataclass(frozen=True)
class Bias:
    """A padded bias of [gates·units] that starts at element `offset`."""

    offset: int
    gates: int
    units: int
    lanes: int

    @property
    def padded(self) -> int:
        return -(-self.units // self.lanes) * self.lanes

    @property
    def size(self) -> int:
        return self.gates * self.padded

    def start(self, block: int) -> int:
        return self.offset

    def pack(self, bias: np.ndarray) -> np.ndarray:
        """[gates·units] to [1, gates·padded]."""
        padded = np.zeros((self.gates, self.padded), bias.dtype)
        padded[:, : self.units] = bias.reshape(self.gates, self.units)
        return padded.reshape(1, -1)


@dataclass(frozen=True)
class PackedLayer:
    """One layer in one direction. A part that the cell or the model does not have is None."""

    w_ih: Matrix
    w_hh: Matrix
    """All gates; without w_n's rows where there is a w_n."""
    w_n: Matrix | None
    """The candidate's recurrent weights, where the reset gate comes before their product."""
    w_hr: Matrix | None
    b_x: Bias | None
    """The bias of the projection of x: b_ih, and those parts of b_hh that no gate scales."""
    b_n: Bias | None
    """The candidate's part of b_hh, where the reset gate scales it."""

    @property
    def parts(self) -> tuple[Matrix | Bias, ...]:
        every = (self.w_ih, self.w_hh, self.w_n, self.w_hr, self.b_x, self.b_n)
        return tuple(part for part in every if part is not None)

    def arrays(self, layer: Layer, hidden: int) -> tuple[np.ndarray, ...]:
        """The weights of each part, in the order of `parts`."""
        arrays = [layer.w_ih]
        arrays += [layer.w_hh] if self.w_n is None else [layer.w_hh[: 2 * hidden], layer.w_hh[2 * hidden :]]
        if layer.w_hr is not None:
            arrays.append(layer.w_hr)
        if layer.b_ih is not None and layer.b_hh is not None:
            if self.b_n is None:
                arrays.append(layer.b_ih + layer.b_hh)
            else:
                summed = layer.b_ih.copy()
                summed[: 2 * hidden] += layer.b_hh[: 2 * hidden]
                arrays += [summed, layer.b_hh[2 * hidden :]]
        return tuple(arrays)


@dataclass(frozen=True)
class Blocking:
    """How a kernel cuts its products into blocks."""

    input_vectors: int = MAX_VECTORS
    """Vectors of a block of w_ih, at most."""
    state_vectors: int = MAX_VECTORS
    """Vectors of a block of the recurrent matrices, at most."""
    joint: bool = False
    """Whether the blocks of w_ih and w_hh alternate."""


def is_joint(model: Model, blocking: Blocking) -> bool:
    """Whether the blocks of w_ih and w_hh alternate: both have the same gates, unless the reset gate comes before."""
    return blocking.joint and (model.cell != "gru" or model.reset_after)


def layout(
    model: Model,
    lanes: int,
    dtype: str = "float32",
    blocking: Blocking = Blocking(),
    weights: Weights | None = None,
) -> tuple[PackedLayer, ...]:
    """Where everything lies, layer by layer and direction by direction. `dtype` is one of FORMATS.

    `weights` are those that have ranges, where ranges are constants of the program.
    """
    if model.cell == "counter":
        return ()
    places = _Places(model, lanes, FORMATS[dtype], blocking)
    rows = range(model.layers * model.directions)
    return tuple(places.layer(row, weights.row(row).ranges if weights is not None else {}) for row in rows)


class _Places:
    """Gives every part its place, one behind the other."""

    def __init__(self, model: Model, lanes: int, stored: Format, blocking: Blocking) -> None:
        self._model = model
        self._lanes = lanes
        self._stored = stored
        self._blocking = blocking
        self._end = 0

    def layer(self, row: int, ranges: Mapping[str, Range]) -> PackedLayer:
        """The next layer, which has a row of the state. `ranges` are those of its operands, by matrix."""
        model, blocking, most = self._model, self._blocking, self._blocking.state_vectors
        gates, hidden = GATES[model.cell], model.hidden
        below = model.layer_input(row // model.directions)
        reset_before = model.cell == "gru" and not model.reset_after
        of_h = ranges.get("w_hh")
        w_ih = self._matrix(gates, hidden, below, blocking.input_vectors, ranges.get("w_ih"))
        w_hh = self._matrix(gates - reset_before, hidden, model.output, most, of_h)
        if is_joint(model, blocking):
            w_hh = replace(w_hh, offset=w_ih.offset + w_ih.block_size, gap=w_ih.block_size)
            w_ih = replace(w_ih, gap=w_hh.block_size)
        return PackedLayer(
            w_ih=w_ih,
            w_hh=w_hh,
            w_n=self._matrix(1, hidden, hidden, most, of_h) if reset_before else None,
            w_hr=self._matrix(1, model.projection, hidden, most, ranges.get("w_hr")) if model.projection else None,
            b_x=self._bias(gates) if model.bias else None,
            b_n=self._bias(1) if model.bias and model.cell == "gru" and model.reset_after else None,
        )

    def _matrix(self, gates: int, units: int, k: int, most: int, operand: Range | None) -> Matrix:
        part = Matrix(self._end, gates, units, k, self._lanes, self._stored, most, operand=operand)
        self._end += part.size
        return part

    def _bias(self, gates: int) -> Bias:
        part = Bias(self._end, gates, self._model.hidden, self._lanes)
        self._end += part.size
        return part


def fewest_blocks(model: Model, dtype: str) -> int:
    """Blocks of a step's weights that the threads of a kernel can share on any processor; 0 where there are none."""
    widest = ONE_ROW_VECTORS if FORMATS[dtype].of_bytes else MAX_VECTORS
    kinds = ((16, widest), (8, ONE_ROW_VECTORS), (4, ONE_ROW_VECTORS))
    every = (layout(model, lanes, blocking=Blocking(state_vectors=most)) for lanes, most in kinds)
    return min((layer.w_hh.blocks for layers in every for layer in layers), default=0)


def size(layers: tuple[PackedLayer, ...]) -> int:
    """Elements of the whole buffer."""
    return sum(part.size for layer in layers for part in layer.parts)


def pack(layers: tuple[PackedLayer, ...], model: Model, weights: Weights, out: np.ndarray) -> None:
    """Fill `out` [size] with the weights of every layer, as bits: weights of fewer bits may look like NaN."""
    bits = out.view(np.uint32)
    for packed, layer in zip(layers, weights.layers, strict=True):
        for part, array in zip(packed.parts, packed.arrays(layer, model.hidden), strict=True):
            for block, numbers in enumerate(part.pack(array)):
                bits[part.start(block) :][: numbers.size] = numbers.view(np.uint32)
