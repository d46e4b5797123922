"""How the persistent kernel is spread over a GPU: which block has which units, and where each weight is held.

A block has `units` units of every layer, with all of their gates. Its rows of a weight matrix are `gates·units`, and
row g·units + u is gate g of its unit u. A warp computes every WARPS-th row. Of these it holds the first in registers,
the next in shared memory, and reads the rest through L2 in each step.
"""

from __future__ import annotations

from dataclasses import dataclass

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
SHARED_KIB = {"sm_75": 64, "sm_80": 163, "sm_86": 99, "sm_87": 163, "sm_89": 99, "sm_90": 227, "sm_100": 227}
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
class Held:
    """How many rows of each warp are held in registers, and how many in shared memory."""

    registers: int
    shared: int


@dataclass(frozen=True)
class LayerOffsets:
    """Where the weights of a layer in one direction begin, in floats. A model without bias has no biases."""

    w_ih: int
    w_hh: int
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
    def rows(self) -> int:
        """Rows of each matrix that a block has."""
        return self.gates * self.units

    @property
    def rows_per_warp(self) -> int:
        return -(-self.rows // WARPS)

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

    def held(self, width: int) -> Held:
        """Of a matrix with rows of this width."""
        registers = min(self.rows_per_warp, HELD // (VECTOR * vectors(width)))
        room = self.gpu.shared_bytes - FLOAT * (self.staged + self.sums)
        return Held(registers, min(self.rows_per_warp - registers, room // (FLOAT * WARPS * padded(width))))

    @property
    def shared(self) -> int:
        """Floats of shared memory of a block."""
        widths = {self.model.hidden, *(self.model.layer_input(n) for n in range(self.model.layers))}
        weights = max(WARPS * self.held(width).shared * padded(width) for width in widths)
        return self.staged + self.sums + weights

    @property
    def read_bytes(self) -> int:
        """Bytes of recurrent weights that each step of a layer reads through L2, as they are not held."""
        held = self.held(self.model.hidden)
        rows = max(0, self.rows - WARPS * (held.registers + held.shared))
        return FLOAT * self.blocks * rows * padded(self.model.hidden)

    @property
    def projected(self) -> int:
        """Floats of scratch memory for the projections of x, which each block keeps for itself."""
        return self.blocks * self.chunk * self.batch * self.rows

    @property
    def outputs(self) -> int:
        """Floats of scratch memory for the outputs of one layer that is below another."""
        return padded(self.chunk * self.batch * self.model.width)

    @property
    def scratch(self) -> int:
        """Floats of scratch memory: the barrier, projections, outputs of two layers, and c where there is no state."""
        cell = self.batch * self.model.hidden if self.state == "none" and self.model.cell == "lstm" else 0
        return BARRIER + padded(self.projected) + min(self.model.layers - 1, 2) * self.outputs + cell

    @property
    def writes_before_read(self) -> bool:
        """Whether a block would write the new h to where another block still reads the old one, without a barrier."""
        return self.state == "stateful" and self.chunk == 1

    @property
    def state_size(self) -> int:
        """Floats of a state: h, and then c."""
        shapes = self.model.state_shapes(self.batch).values()
        return sum(rows * batch * size for rows, batch, size in shapes)

    @property
    def layers(self) -> tuple[LayerOffsets, ...]:
        """At index `layer·directions + direction`."""
        matrix, found = self.blocks * self.rows, []
        for index, start in enumerate(self._ends[:-1]):
            w_hh = start + matrix * padded(self.model.layer_input(index // self.model.directions))
            b_x = w_hh + matrix * padded(self.model.hidden)
            b_h = b_x + padded(matrix)
            found.append(
                LayerOffsets(start, w_hh, b_x if self.model.bias else None, b_h if self.has_scaled_bias else None)
            )
        return tuple(found)

    @property
    def params(self) -> int:
        """Floats of all weights."""
        return self._ends[-1]

    @property
    def has_scaled_bias(self) -> bool:
        return self.model.bias and self.model.cell == "gru"

    @property
    def _ends(self) -> list[int]:
        """Where the weights of each layer and direction begin, and the end of all."""
        matrix, ends = self.blocks * self.rows, [0]
        for index in range(self.model.layers * self.model.directions):
            columns = padded(self.model.layer_input(index // self.model.directions)) + padded(self.model.hidden)
            biases = (self.model.bias + self.has_scaled_bias) * padded(matrix)
            ends.append(ends[-1] + matrix * columns + biases)
        return ends

    def pack(self, weights: Weights) -> np.ndarray:
        """All weights as the kernel reads them, float32 and flat."""
        parts: list[np.ndarray] = []
        for layer in weights.layers:
            parts += [self._matrix(layer.w_ih), self._matrix(layer.w_hh)]
            parts += [self._bias(bias) for bias in self._biases(layer)]
        return np.concatenate([part.ravel() for part in parts])

    def _matrix(self, weight: np.ndarray) -> np.ndarray:
        """[gates·hidden, width] to [blocks, gates, units, padded width]."""
        width = weight.shape[1]
        spread = self._spread(weight.reshape(self.gates, self.model.hidden, width))
        return np.pad(spread, ((0, 0),) * 3 + ((0, padded(width) - width),))

    def _bias(self, bias: np.ndarray) -> np.ndarray:
        """[gates·hidden] to [blocks, gates, units], and zeros to whole vectors."""
        flat = self._spread(bias.reshape(self.gates, self.model.hidden)).ravel()
        return np.pad(flat, (0, padded(flat.size) - flat.size))

    def _spread(self, of_units: np.ndarray) -> np.ndarray:
        """[gates, hidden, …] to [blocks, gates, units, …], with zeros for the units that the last block lacks."""
        lacking = self.blocks * self.units - self.model.hidden
        of_units = np.pad(of_units, ((0, 0), (0, lacking)) + ((0, 0),) * (of_units.ndim - 2))
        return of_units.reshape(self.gates, self.blocks, self.units, *of_units.shape[2:]).swapaxes(0, 1)

    def _biases(self, layer: Layer) -> tuple[np.ndarray, ...]:
        """b_x and, where there is one, b_h."""
        if layer.b_ih is None or layer.b_hh is None:
            return ()
        if not self.has_scaled_bias:
            return (layer.b_ih + layer.b_hh,)
        scaled = layer.b_hh.copy()
        scaled[: 2 * self.model.hidden] = 0
        return layer.b_ih + (layer.b_hh - scaled), scaled


def padded(count: int) -> int:
    """Floats, to whole vectors."""
    return -(-count // VECTOR) * VECTOR


def vectors(width: int) -> int:
    """Vectors of a row that each of a warp's 32 threads reads."""
    return -(-padded(width) // (32 * VECTOR))
