"""Weights, inputs and states drawn from a seed: the same numbers on every machine and for every backend."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import cast

import numpy as np

from rnnbench.rnn.dtypes import rounded
from rnnbench.rnn.spec import GATES, Model


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


@dataclass(frozen=True)
class Weights:
    """All layers, at index `layer·directions + direction`, as in PyTorch's state. A counter has none."""

    layers: tuple[Layer, ...]

    def row(self, index: int) -> Layer:
        """The layer of a row of the state. For a counter, which has no weights, an empty one."""
        return self.layers[index] if self.layers else Layer(np.empty((0, 0)), np.empty((0, 0)), None, None, None)

    def named(self, model: Model) -> Iterator[tuple[str, np.ndarray]]:
        """PyTorch's parameter names (`weight_ih_l0`, `bias_hh_l1_reverse`, …) with their arrays."""
        fields = {
            "w_ih": "weight_ih",
            "w_hh": "weight_hh",
            "b_ih": "bias_ih",
            "b_hh": "bias_hh",
            "w_hr": "weight_hr",
        }
        for index, layer in enumerate(self.layers):
            number, backward = divmod(index, model.directions)
            for field, name in fields.items():
                array = cast("np.ndarray | None", getattr(layer, field))
                if array is not None:
                    yield f"{name}_l{number}{'_reverse' if backward else ''}", array

    def digest(self, model: Model) -> str:
        """SHA-256 of all arrays, with their names and dtypes."""
        sha = hashlib.sha256()
        for name, array in self.named(model):
            sha.update(f"{name} {array.dtype}".encode())
            sha.update(array.tobytes())
        return sha.hexdigest()

    @property
    def nbytes(self) -> int:
        return sum(a.nbytes for w in self.layers for a in (w.w_ih, w.w_hh, w.b_ih, w.b_hh, w.w_hr) if a is not None)


def draw_weights(model: Model, seed: int, dtype: str = "float32") -> Weights:
    """Weights uniform in ±gain/√hidden; with gain 1 as torch initialises RNNs. Read-only, rounded to `dtype`."""
    if model.cell == "counter":
        return Weights(())
    generator = np.random.default_rng([seed, 0])
    bound = model.gain / np.sqrt(model.hidden)
    rows = GATES[model.cell] * model.hidden

    def uniform(*shape: int) -> np.ndarray:
        array = rounded(generator.uniform(-bound, bound, shape), dtype)
        array.setflags(write=False)
        return array

    layers = []
    for index in range(model.layers * model.directions):
        layers.append(
            Layer(
                w_ih=uniform(rows, model.layer_input(index // model.directions)),
                w_hh=uniform(rows, model.output),
                b_ih=uniform(rows) if model.bias else None,
                b_hh=uniform(rows) if model.bias else None,
                w_hr=uniform(model.projection, model.hidden) if model.projection else None,
            )
        )
    return Weights(tuple(layers))


def draw_inputs(model: Model, steps: int, batch: int, seed: int, dtype: str = "float32") -> np.ndarray:
    """A stream x [steps, batch, input]: standard normal; for a counter, whole numbers from −4 to 4. Read-only."""
    generator = np.random.default_rng([seed, 1])
    shape = (steps, batch, model.input)
    x = generator.integers(-4, 5, shape) if model.cell == "counter" else generator.standard_normal(shape)
    x = rounded(x, dtype)
    x.setflags(write=False)
    return x


def draw_lengths(steps: int, batch: int, calls: int, seed: int) -> np.ndarray:
    """How many steps each row of each call has, int32 [calls, batch], from 1 to `steps`. Read-only."""
    lengths = np.random.default_rng([seed, 3]).integers(1, steps + 1, (calls, batch)).astype(np.int32)
    lengths.setflags(write=False)
    return lengths


def draw_state(model: Model, batch: int, seed: int, dtype: str = "float32") -> dict[str, np.ndarray]:
    """A state that is not zero, within the range of a running network: uniform in ±0.5. Read-only.

    Each array is [layers·directions, batch, size].
    """
    generator = np.random.default_rng([seed, 2])
    state = {}
    for name, shape in model.state_shapes(batch).items():
        values = generator.integers(-4, 5, shape) if model.cell == "counter" else generator.uniform(-0.5, 0.5, shape)
        state[name] = rounded(values, dtype)
        state[name].setflags(write=False)
    return state
