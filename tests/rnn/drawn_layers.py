"""A layer with weights, inputs and a state, drawn from a seed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rnnbench.rnn import Arithmetic
from rnnbench.rnn.layers import LayerKind


@dataclass(frozen=True)
class Drawn:
    """A layer and what it is run on: x [steps, batch, input], each array of the state [batch, size]."""

    kind: LayerKind
    weights: dict[str, np.ndarray]
    x: np.ndarray
    state: dict[str, np.ndarray]

    def run(self) -> np.ndarray:
        """y of the reference, in float64."""
        return self.kind.run(Arithmetic(), self.weights, self.x, self.state)[0]

    def final(self) -> dict[str, np.ndarray]:
        """The state of the reference after the last step."""
        return {
            name: array[-1] for name, array in self.kind.run(Arithmetic(), self.weights, self.x, self.state)[1].items()
        }


def drawn(kind: LayerKind, steps: int = 7, batch: int = 3, seed: int = 0) -> Drawn:
    generator = np.random.default_rng(seed)
    return Drawn(
        kind,
        {name: generator.uniform(-bound, bound, shape) for name, shape, bound in kind.weight_specs()},
        generator.standard_normal((steps, batch, kind.input)),
        {name: generator.uniform(-0.5, 0.5, (batch, size)) for name, size in kind.states.items()},
    )


def with_ring(layer: Drawn) -> np.ndarray:
    """What a convolution over time sees: the steps of its ring, then those of x."""
    batch, size = layer.x.shape[1:]
    return np.concatenate([layer.state["ring"].reshape(batch, -1, size).swapaxes(0, 1), layer.x])
