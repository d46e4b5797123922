"""Weights, inputs and states drawn from a seed: the same numbers on every machine and for every backend."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np

from rnnbench.rnn.dtypes import DTYPES, rounded, rounded_weight
from rnnbench.rnn.network import Network
from rnnbench.rnn.quantised import Range
from rnnbench.rnn.spec import PYTORCH_NAMES, Model
from rnnbench.rnn.weight_forms import WeightForms


@dataclass(frozen=True)
class Layer:
    """Weights of one layer in one direction, in PyTorch's layout and gate order (lstm: i f g o; gru: r z n).

    w_ih [gates·hidden, layer input], w_hh [gates·hidden, output], b_ih and b_hh [gates·hidden] or None,
    w_hr [projection, hidden] or None.
    """

    w_ih: np.ndarray
    w_hh: np.ndarray
    b_ih: np.ndarray | None
    b_hh: np.ndarray | None
    w_hr: np.ndarray | None
    ranges: Mapping[str, Range] = field(default_factory=dict)
    """The range of the operand of each matrix, by the matrix's name here. Empty unless activations are static."""


@dataclass(frozen=True)
class Weights:
    """The weights of a network. A stack of cells has `layers`, any other network `arrays`, a counter neither."""

    layers: tuple[Layer, ...] = ()
    """At index `layer·directions + direction`, as in PyTorch's state."""
    arrays: Mapping[str, np.ndarray] = field(default_factory=dict)
    """By the names of the network's `weight_specs`."""
    forms: WeightForms = field(default_factory=WeightForms, repr=False, compare=False)
    """What the reference makes of them, once for all of its runs."""

    def row(self, index: int) -> Layer:
        """The layer of a row of the state. A counter has no weights, and gets an empty layer."""
        return self.layers[index] if self.layers else Layer(np.empty((0, 0)), np.empty((0, 0)), None, None, None)

    def named(self, network: Network) -> Iterator[tuple[str, np.ndarray]]:
        """Every array with its name. Those of a stack have PyTorch's names: `weight_ih_l0`, `bias_hh_l1_reverse`."""
        yield from self.arrays.items()
        directions = network.directions if isinstance(network, Model) else 1
        for index, layer in enumerate(self.layers):
            number, backward = divmod(index, directions)
            for field_name, name in PYTORCH_NAMES.items():
                array = cast("np.ndarray | None", getattr(layer, field_name))
                if array is not None:
                    yield f"{name}_l{number}{'_reverse' if backward else ''}", array

    def digest(self, network: Network) -> str:
        """SHA-256 of all arrays, with their names and dtypes, and of the ranges of operands."""
        sha = hashlib.sha256()
        for name, array in self.named(network):
            sha.update(f"{name} {array.dtype}".encode())
            sha.update(array.tobytes())
        if ranges := [dict(layer.ranges) for layer in self.layers if layer.ranges]:
            sha.update(repr(ranges).encode())
        return sha.hexdigest()

    @property
    def nbytes(self) -> int:
        of_layers = (a for w in self.layers for a in (w.w_ih, w.w_hh, w.b_ih, w.b_hh, w.w_hr) if a is not None)
        return sum(array.nbytes for array in (*of_layers, *self.arrays.values()))


def draw_weights(network: Network, seed: int, dtype: str = "float32") -> Weights:
    """Weights uniform within the bounds of `Network.weight_specs`. Read-only, rounded to `dtype`.

    If the activations of `dtype` are static, with the ranges that they have over inputs and a state of this seed.
    """
    generator = np.random.default_rng([seed, 0])
    arrays = {}
    for name, shape, bound in network.weight_specs():
        arrays[name] = rounded_weight(generator.uniform(-bound, bound, shape), dtype)
        arrays[name].setflags(write=False)
    weights = network.as_weights(arrays)
    if DTYPES[dtype].activations != "static":
        return weights
    from rnnbench.rnn.calibration import calibrated

    return calibrated(network, weights, seed)


def layers_of(model: Model, arrays: Mapping[str, np.ndarray]) -> tuple[Layer, ...]:
    """The layers of a stack from its arrays by PyTorch's names."""
    layers = []
    for index in range(model.layers * model.directions if arrays else 0):
        number, backward = divmod(index, model.directions)
        suffix = f"_l{number}{'_reverse' if backward else ''}"
        given: dict[str, Any] = {key: arrays.get(name + suffix) for key, name in PYTORCH_NAMES.items()}
        layers.append(Layer(**given))
    return tuple(layers)


def draw_inputs(network: Network, steps: int, batch: int, seed: int, dtype: str = "float32") -> np.ndarray:
    """A stream x [steps, batch, input] (`Network.draw_x`): standard normal; for a counter, −4 to 4. Read-only."""
    generator = np.random.default_rng([seed, 1])
    x = rounded(network.draw_x(generator, steps, batch), dtype)
    x.setflags(write=False)
    return x


def draw_lengths(steps: int, batch: int, calls: int, seed: int) -> np.ndarray:
    """How many steps each row of each call has, int32 [calls, batch], from 1 to `steps`. Read-only."""
    lengths = np.random.default_rng([seed, 3]).integers(1, steps + 1, (calls, batch)).astype(np.int32)
    lengths.setflags(write=False)
    return lengths


def draw_state(network: Network, batch: int, seed: int, dtype: str = "float32") -> dict[str, np.ndarray]:
    """A state that is not zero, within the range of a running network: uniform in ±0.5. Read-only.

    Each array is [rows, batch, size]. An array of whole numbers has values that a run gives (`Network.draw_state`).
    """
    state = {}
    for name, values in network.draw_state(np.random.default_rng([seed, 2]), batch).items():
        dtype_of_state = network.state_dtype(name, dtype)
        state[name] = rounded(values, dtype_of_state) if dtype_of_state in DTYPES else values.astype(dtype_of_state)
        state[name].setflags(write=False)
    return state
