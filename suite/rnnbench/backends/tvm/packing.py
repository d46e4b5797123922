"""The layout of a model's weights in the one buffer that its kernel reads.

A product by a matrix of [gates·units, k] is computed block by block. A block is `vectors` vectors of `lanes` outputs,
and its weights are laid out as [k, vectors, lanes]: the innermost loop reads memory in order, and every output has a
lane of an accumulator. All gates of a unit are in one block: vector g·columns + j holds gate g of the block's j-th
vector of units. Units are padded with zeros to whole vectors. The layout of a bias is [gates, padded].
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rnnbench.rnn import GATES, Layer, Model, Weights

MAX_VECTORS = 6
"""Accumulators of a block: enough to hide the latency of a fused multiply-add, 4 cycles on each of 2 ports."""


@dataclass(frozen=True)
class Matrix:
    """A packed matrix of [gates·units, k] that starts at element `offset`."""

    offset: int
    gates: int
    units: int
    k: int
    lanes: int

    @property
    def padded(self) -> int:
        """Units, rounded up to whole vectors."""
        return -(-self.units // self.lanes) * self.lanes

    @property
    def columns(self) -> int:
        """Vectors of units in a block: the most that divide the whole and keep the block within MAX_VECTORS."""
        whole = self.padded // self.lanes
        return max(j for j in range(1, max(1, MAX_VECTORS // self.gates) + 1) if whole % j == 0)

    @property
    def vectors(self) -> int:
        return self.gates * self.columns

    @property
    def blocks(self) -> int:
        return self.padded // (self.columns * self.lanes)

    @property
    def block_size(self) -> int:
        return self.k * self.vectors * self.lanes

    @property
    def size(self) -> int:
        return self.blocks * self.block_size

    def pack(self, weight: np.ndarray) -> np.ndarray:
        """[gates·units, k] to [blocks, k, gates, columns, lanes]."""
        padded = np.zeros((self.gates, self.padded, self.k), weight.dtype)
        padded[:, : self.units] = weight.reshape(self.gates, self.units, self.k)
        return padded.reshape(self.gates, self.blocks, self.columns, self.lanes, self.k).transpose(1, 4, 0, 2, 3)


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

    def pack(self, bias: np.ndarray) -> np.ndarray:
        """[gates·units] to [gates, padded]."""
        padded = np.zeros((self.gates, self.padded), bias.dtype)
        padded[:, : self.units] = bias.reshape(self.gates, self.units)
        return padded


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


def layout(model: Model, lanes: int) -> tuple[PackedLayer, ...]:
    """Where everything lies, layer by layer and direction by direction."""
    if model.cell == "counter":
        return ()
    gates, hidden, end = GATES[model.cell], model.hidden, 0

    def matrix(gates: int, units: int, k: int) -> Matrix:
        nonlocal end
        part = Matrix(end, gates, units, k, lanes)
        end += part.size
        return part

    def bias(gates: int) -> Bias:
        nonlocal end
        part = Bias(end, gates, hidden, lanes)
        end += part.size
        return part

    layers = []
    for index in range(model.layers * model.directions):
        reset_before = model.cell == "gru" and not model.reset_after
        layers.append(
            PackedLayer(
                w_ih=matrix(gates, hidden, model.layer_input(index // model.directions)),
                w_hh=matrix(gates - reset_before, hidden, model.output),
                w_n=matrix(1, hidden, hidden) if reset_before else None,
                w_hr=matrix(1, model.projection, hidden) if model.projection else None,
                b_x=bias(gates) if model.bias else None,
                b_n=bias(1) if model.bias and model.cell == "gru" and model.reset_after else None,
            )
        )
    return tuple(layers)


def size(layers: tuple[PackedLayer, ...]) -> int:
    """Elements of the whole buffer."""
    return sum(part.size for layer in layers for part in layer.parts)


def pack(layers: tuple[PackedLayer, ...], model: Model, weights: Weights, out: np.ndarray) -> None:
    """Fill `out` [size] with the weights of every layer."""
    for packed, layer in zip(layers, weights.layers, strict=True):
        for part, array in zip(packed.parts, packed.arrays(layer, model.hidden), strict=True):
            out[part.offset : part.offset + part.size] = part.pack(array).ravel()
