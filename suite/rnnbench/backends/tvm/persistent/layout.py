"""How the persistent kernel is spread over a GPU: which block has which units, and where each weight is held.

A block has `units` units of every layer, with all of their gates. Its rows of a weight matrix are `gates·units`, and
row g·units + u is gate g of its unit u. A warp computes every WARPS-th row. It holds the first ones in registers
and the next in shared memory, and reads the rest through L2 in each step.

A step of an LSTM with a projection has a second product, by the projection's weights: a block has `output_units` of its
rows. A GRU that resets before its product has two as well: the rows of r and z by h, and those of the candidate by r·h.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate

import numpy as np

from rnnbench.cases import State
from rnnbench.rnn import GATES, Layer, Model, Weights

THREADS = 256
"""Threads of a block."""
WARPS = THREADS // 32
HELD = 128
"""Weights that a thread holds in registers: half of the 255 registers that it can have. The rest is for the sums."""
FLOAT = 4
"""Bytes."""
VECTOR = 4
"""Floats that a thread reads at once. Rows are padded to whole vectors with zeros."""
STAGED = 8192
"""Floats of x or h that are in shared memory at a time: so a row may have as many, on every GPU."""
SUMMED = 4096
"""Floats of a block's sums in shared memory."""
BARRIER = 32
"""Floats at the start of the scratch memory: the counter of the barrier, in a cache line of its own."""
SHARED_KIB = dict.fromkeys(("sm_86", "sm_89", "sm_120", "sm_121"), 99) | dict.fromkeys(("sm_80", "sm_87"), 163)
SHARED_KIB |= {"sm_75": 64, **dict.fromkeys(("sm_90", "sm_100", "sm_103"), 227)}
"""KiB of shared memory that a block can have, by capability. Source: CUDA C++ Programming Guide, "Technical
Specifications per Compute Capability"."""
SHARED_KIB_AT_LEAST = 48
"""On every GPU."""


@dataclass(frozen=True)
class Gpu:
    """What of a GPU decides the kernel."""

    processors: int
    """Multiprocessors. A block has one for itself, so all blocks run at the same time."""
    shared_bytes: int
    """Shared memory of a block, at most."""

    @classmethod
    def of(cls, capability: str, processors: int) -> Gpu:
        return cls(processors, 1024 * SHARED_KIB.get(capability, SHARED_KIB_AT_LEAST))


@dataclass(frozen=True)
class Matrix:
    """A block's rows of a weight matrix."""

    rows: int
    columns: int

    @property
    def rows_per_warp(self) -> int:
        return -(-self.rows // WARPS)


@dataclass(frozen=True)
class Held:
    """How many rows of each warp are held in registers, and how many in shared memory."""

    registers: int
    shared: int


@dataclass(frozen=True)
class LayerOffsets:
    """Where the weights of a layer in one direction begin, in floats. A model without bias has no biases."""

    w_ih: int
    w_hh: int
    w_second: int | None
    """Where a step has two products, the weights of the second: w_hr, or the candidate's rows of w_hh."""
    b_x: int | None
    """b_ih, with those parts of b_hh that no gate scales."""
    b_h: int | None
    """A GRU's part of b_hh that the reset gate scales; zeros for the other gates."""


@dataclass(frozen=True)
class Plan:
    """The persistent kernel of one request on one GPU. All sizes that its source has are here."""

    model: Model
    state: State
    chunk: int
    batch: int
    gpu: Gpu

    @property
    def gates(self) -> int:
        return GATES[self.model.cell]

    @property
    def units(self) -> int:
        """Units of a block."""
        return -(-self.model.hidden // self.gpu.processors)

    @property
    def blocks(self) -> int:
        return -(-self.model.hidden // self.units)

    @property
    def output_units(self) -> int:
        """Numbers of h, and of y in one direction, that a block gives: of the projection where there is one."""
        return -(-self.model.projection // self.blocks) if self.model.projection else self.units

    @property
    def rows(self) -> int:
        """Rows of x's projection that a block has."""
        return self.gates * self.units

    @property
    def recurrent(self) -> tuple[Matrix, ...]:
        """The matrices that a step multiplies by, in order: one, or two with a barrier between them."""
        hidden = self.model.hidden
        if self.model.projection:
            return Matrix(self.rows, self.model.projection), Matrix(self.output_units, hidden)
        if not self.model.reset_after:
            return Matrix(2 * self.units, hidden), Matrix(self.units, hidden)
        return (Matrix(self.rows, hidden),)

    def of_x(self, layer: int) -> Matrix:
        """The matrix that a layer projects x with."""
        return Matrix(self.rows, self.model.layer_input(layer))

    @property
    def tile(self) -> int:
        """Rows of x or h that are in shared memory at a time."""
        widest = max(padded(self.model.hidden), *(padded(self.model.layer_input(n)) for n in range(self.model.layers)))
        return max(1, min(STAGED // widest, SUMMED // self.rows, self.chunk * self.batch))

    @property
    def staged(self) -> int:
        """Floats of shared memory for these."""
        widths = [self.model.layer_input(n) for n in range(self.model.layers)]
        return self.tile * max(map(padded, (self.model.hidden, *widths)))

    @property
    def sums(self) -> int:
        """Floats of shared memory for the sums, to whole vectors."""
        return padded(self.tile * self.rows)

    def held(self, *matrices: Matrix) -> tuple[Held, ...]:
        """How much of each matrix a block holds at the same time. The first ones get room first."""
        registers, floats = HELD, self.gpu.shared_bytes // FLOAT - self.staged - self.sums
        parts = []
        for matrix in matrices:
            of_thread, of_row = VECTOR * vectors(matrix.columns), WARPS * padded(matrix.columns)
            in_registers = min(matrix.rows_per_warp, registers // of_thread)
            held = Held(in_registers, min(matrix.rows_per_warp - in_registers, floats // of_row))
            registers -= held.registers * of_thread
            floats -= held.shared * of_row
            parts.append(held)
        return tuple(parts)

    @property
    def shared(self) -> int:
        """Floats of shared memory of a block."""
        together = [self.recurrent, *((self.of_x(layer),) for layer in range(self.model.layers))]
        return self.staged + self.sums + max(self._shared_weights(*matrices) for matrices in together)

    def _shared_weights(self, *matrices: Matrix) -> int:
        """Floats of shared memory for the weights of matrices that a block has at the same time."""
        held = zip(matrices, self.held(*matrices), strict=True)
        return sum(WARPS * part.shared * padded(matrix.columns) for matrix, part in held)

    @property
    def read_bytes(self) -> int:
        """Bytes of recurrent weights that each step of a layer reads through L2, as they are not held."""
        held = zip(self.recurrent, self.held(*self.recurrent), strict=True)
        left = [(max(0, matrix.rows - WARPS * (part.registers + part.shared)), matrix.columns) for matrix, part in held]
        return FLOAT * self.blocks * sum(rows * padded(columns) for rows, columns in left)

    @property
    def projected(self) -> int:
        """Floats of scratch memory for the projections of x, which each block keeps for itself."""
        return self.blocks * self.chunk * self.batch * self.rows

    @property
    def outputs(self) -> int:
        """Floats of scratch memory for the outputs of one layer that is below another."""
        return padded(self.chunk * self.batch * self.model.width)

    @property
    def exchanged(self) -> int:
        """Floats of scratch memory for the vectors between the two products of a step; 0 where it has one."""
        return padded(self.batch * self.model.hidden) if has_two_products(self.model) else 0

    @property
    def exchanged_start(self) -> int:
        """Where these begin in the scratch memory: behind the barrier, projections, and outputs of two layers."""
        return BARRIER + padded(self.projected) + min(self.model.layers - 1, 2) * self.outputs

    @property
    def scratch(self) -> int:
        """Floats of scratch memory. The last ones are c, where there is no state."""
        cell = self.batch * self.model.hidden if self.state == "none" and self.model.cell == "lstm" else 0
        return self.exchanged_start + self.exchanged + cell

    @property
    def writes_before_read(self) -> bool:
        """Whether a block would write the new h to where another block still reads the old one, without a barrier.

        Where a step has two products, all blocks have read the old one before the barrier between them.
        """
        return self.state == "stateful" and self.chunk == 1 and not has_two_products(self.model)

    @property
    def state_size(self) -> int:
        """Floats of a state: h, and then c."""
        shapes = self.model.state_shapes(self.batch).values()
        return sum(rows * batch * size for rows, batch, size in shapes)

    @property
    def layers(self) -> tuple[LayerOffsets, ...]:
        """At index `layer·directions + direction`."""
        offsets = []
        for index, start in enumerate(self._ends[:-1]):
            sizes = [self._floats(matrix) for matrix in (self.of_x(index // self.model.directions), *self.recurrent)]
            w_ih, w_hh, *second, b_x = accumulate(sizes, initial=start)
            b_h = b_x + padded(self.blocks * self.rows)
            biases = b_x if self.model.bias else None, b_h if self.has_scaled_bias else None
            offsets.append(LayerOffsets(w_ih, w_hh, second[0] if second else None, *biases))
        return tuple(offsets)

    @property
    def params(self) -> int:
        """Floats of all weights."""
        return self._ends[-1]

    @property
    def has_scaled_bias(self) -> bool:
        return self.model.bias and self.model.cell == "gru" and self.model.reset_after

    @property
    def _ends(self) -> list[int]:
        """Where the weights of each layer and direction begin, and the end of all."""
        ends = [0]
        for index in range(self.model.layers * self.model.directions):
            matrices = (self.of_x(index // self.model.directions), *self.recurrent)
            biases = (self.model.bias + self.has_scaled_bias) * padded(self.blocks * self.rows)
            ends.append(ends[-1] + sum(map(self._floats, matrices)) + biases)
        return ends

    def _floats(self, matrix: Matrix) -> int:
        """The floats of all blocks' rows of a matrix."""
        return self.blocks * matrix.rows * padded(matrix.columns)

    def pack(self, weights: Weights) -> np.ndarray:
        """All weights as the kernel reads them, float32 and flat."""
        parts: list[np.ndarray] = []
        for layer in weights.layers:
            parts += [self._matrix(layer.w_ih, self.gates), *self._recurrent_of(layer)]
            parts += [self._bias(bias) for bias in self._biases(layer)]
        return np.concatenate([part.ravel() for part in parts])

    def _recurrent_of(self, layer: Layer) -> tuple[np.ndarray, ...]:
        """In the order of `recurrent`."""
        if layer.w_hr is not None:
            return self._matrix(layer.w_hh, self.gates), self._matrix(layer.w_hr, 1)
        if not self.model.reset_after:
            gates = 2 * self.model.hidden
            return self._matrix(layer.w_hh[:gates], 2), self._matrix(layer.w_hh[gates:], 1)
        return (self._matrix(layer.w_hh, self.gates),)

    def _matrix(self, weight: np.ndarray, parts: int) -> np.ndarray:
        """[parts·size, width] to [blocks, parts, units, padded width]; of w_hr, the units are those of the output."""
        size, width = weight.shape[0] // parts, weight.shape[1]
        spread = self._spread(weight.reshape(parts, size, width))
        return np.pad(spread, ((0, 0),) * 3 + ((0, padded(width) - width),))

    def _bias(self, bias: np.ndarray) -> np.ndarray:
        """[gates·hidden] to [blocks, gates, units], and zeros to whole vectors."""
        flat = self._spread(bias.reshape(self.gates, self.model.hidden)).ravel()
        return np.pad(flat, (0, padded(flat.size) - flat.size))

    def _spread(self, of_units: np.ndarray) -> np.ndarray:
        """[parts, size, …] to [blocks, parts, units, …], with zeros for the units that the last blocks lack."""
        parts, size, *rest = of_units.shape
        units = self.units if size == self.model.hidden else self.output_units
        lacking = self.blocks * units - size
        of_units = np.pad(of_units, ((0, 0), (0, lacking)) + ((0, 0),) * len(rest))
        return of_units.reshape(parts, self.blocks, units, *rest).swapaxes(0, 1)

    def _biases(self, layer: Layer) -> tuple[np.ndarray, ...]:
        """b_x and, where there is one, b_h."""
        if layer.b_ih is None or layer.b_hh is None:
            return ()
        if not self.has_scaled_bias:
            return (layer.b_ih + layer.b_hh,)
        scaled = layer.b_hh.copy()
        scaled[: 2 * self.model.hidden] = 0
        return layer.b_ih + (layer.b_hh - scaled), scaled


def has_two_products(model: Model) -> bool:
    """Whether a step has two products, and so exchanges two vectors with a barrier behind each."""
    return bool(model.projection) or not model.reset_after


def padded(count: int) -> int:
    """Floats, to whole vectors."""
    return -(-count // VECTOR) * VECTOR


def vectors(width: int) -> int:
    """Vectors of a row that each of a warp's 32 threads reads."""
    return -(-padded(width) // (32 * VECTOR))
