"""The reference: what a network computes, in plain NumPy and in float64.

Each family has its own reference in its file (`Network.run`). Nothing of a reference comes from the bodies that
backends compile, so a mistake there shows. The rows of a batch are independent, so runs from many initial states can be
one batch.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from rnnbench.rnn.arithmetic import Arithmetic
from rnnbench.rnn.dtypes import DTYPES
from rnnbench.rnn.network import Network
from rnnbench.rnn.weights import Weights


@dataclass(frozen=True)
class Trajectory:
    """The outputs and states of a run: `y` [steps, batch, width], `final` by name [rows, batch, size]."""

    y: np.ndarray
    final: dict[str, np.ndarray]
    states: dict[str, np.ndarray] | None
    """The state after each step [steps, rows, batch, size]. None if a direction runs backwards."""
    margin: np.ndarray | None = None
    """For a network that decides, as a search does: by how much the best score exceeded the next one [steps, batch], at
    the closest decision of each step. A program whose scores are off by half of it may decide otherwise."""


def run_reference(
    network: Network,
    weights: Weights,
    x: np.ndarray,
    state: Mapping[str, np.ndarray] | None = None,
    *,
    dtype: str = "float64",
    summation: int | None = None,
    lengths: np.ndarray | None = None,
) -> Trajectory:
    """Run x [steps, batch, input] from `state` (None: zeros), with every operation in `dtype`.

    `summation` is the seed of a permutation of the reduction axis of every product. Runs with several seeds in a small
    dtype show the effect of rounding alone. With `lengths` [batch], each row ends after so many steps: its y is zero
    from there on, `final` is its state at its end, and a direction that runs backwards starts there. Raises ValueError
    if a shape is not the network's.
    """
    return run_in(Arithmetic(dtype, summation), network, weights, x, state, lengths)


def run_in(
    arithmetic: Arithmetic,
    network: Network,
    weights: Weights,
    x: np.ndarray,
    state: Mapping[str, np.ndarray] | None = None,
    lengths: np.ndarray | None = None,
) -> Trajectory:
    """Like `run_reference`, with the caller's arithmetic. NaN and infinity are allowed, and give no warnings."""
    if x.ndim != 3 or x.shape[0] < 1 or x.shape[2] != network.input:
        raise ValueError(f"x: expected shape [steps ≥ 1, batch, {network.input}], got {list(x.shape)}")
    initial = _initial(network, x.shape[1], state, arithmetic)
    arithmetic = arithmetic.over(weights.forms)
    with np.errstate(over="ignore", invalid="ignore"):
        if lengths is None:
            return network.run(arithmetic, weights, arithmetic.cast(x), initial)
        return network.run_lengths(arithmetic, weights, arithmetic.cast(x), initial, lengths)


def _initial(
    network: Network, batch: int, state: Mapping[str, np.ndarray] | None, arithmetic: Arithmetic
) -> dict[str, np.ndarray]:
    shapes = network.state_shapes(batch)
    if state is None:
        return {name: np.zeros(shape, arithmetic.carrier) for name, shape in shapes.items()}
    if state.keys() != shapes.keys():
        raise ValueError(f"state: expected the arrays {list(shapes)}, got {list(state)}")
    for name, shape in shapes.items():
        if state[name].shape != shape:
            raise ValueError(f"{name}: expected shape {list(shape)}, got {list(state[name].shape)}")
    # Whole numbers are not rounded.
    rounds = {name: network.state_dtype(name, arithmetic.dtype) in DTYPES for name in shapes}
    return {n: arithmetic.cast(state[n]) if rounds[n] else state[n].astype(np.float64) for n in shapes}
