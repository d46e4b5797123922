"""Static ranges: the least and largest values of x and h of each layer, measured once, as constants of a program."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np

from rnnbench.rnn.arithmetic import Arithmetic
from rnnbench.rnn.network import Network
from rnnbench.rnn.quantised import Range
from rnnbench.rnn.reference import run_in
from rnnbench.rnn.weights import Weights, draw_inputs, draw_state

STEPS, ROWS = 32, 8
"""The size of the run that ranges are taken from. It is the same for every workload of a model, so that its programs
have the same constants. An LSTM has forgotten its start after so many steps."""
MATRICES = ("w_ih", "w_hh", "w_hr")


def calibrated(network: Network, weights: Weights, seed: int) -> Weights:
    """The weights of a stack of cells, with the range of each matrix's operand. A range always contains 0.

    The ranges are those of a reference run over ROWS streams, drawn like the case's inputs with its seed, from a state
    that is not zero. Values beyond a range saturate later.
    """
    numbers, observing = itertools.count(1), _Observing()
    unknown = [
        {name: Range(float(next(numbers)), 0) for name in MATRICES if getattr(layer, name) is not None}
        for layer in weights.layers
    ]
    marked = Weights(tuple(replace(w, ranges=ranges) for w, ranges in zip(weights.layers, unknown, strict=True)))
    x, state = draw_inputs(network, STEPS, ROWS, seed), draw_state(network, ROWS, seed)
    run_in(observing, network, marked, x, state)
    return Weights(
        tuple(
            replace(layer, ranges={name: Range.of(*observing.seen[mark]) for name, mark in ranges.items()})
            for layer, ranges in zip(weights.layers, unknown, strict=True)
        )
    )


class _Observing(Arithmetic):
    """The reference's arithmetic. It notes the least and largest value of each product's operand, by the operand."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: dict[Range, tuple[float, float]] = {}

    def _entering(self, x: np.ndarray, operand: Range | None) -> np.ndarray:
        assert operand is not None, "every product of a stack of cells has an operand with a range"
        low, high = self.seen.get(operand, (0.0, 0.0))
        self.seen[operand] = min(low, float(x.min())), max(high, float(x.max()))
        return x
