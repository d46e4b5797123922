"""LiteRT's operator UNIDIRECTIONAL_SEQUENCE_LSTM, in an arithmetic."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rnnbench.model_files.errors import ModelFileError
from rnnbench.model_files.formats.tflite.activation import activated
from rnnbench.model_files.formats.tflite.graph import Graph, Operator, Tensor
from rnnbench.rnn import Arithmetic, Range

LSTM = "UNIDIRECTIONAL_SEQUENCE_LSTM"
_X, _W, _R, _PEEPHOLES, _B, _PROJECTIONS, _H, _C, _NORMS = 0, 1, 5, 9, 12, 16, 18, 19, 20
"""Where the inputs of a kind begin: four each, of the gates i, f, c, o; three peepholes, two projections; h; c."""
_HIDDEN = 4
"""The intermediate that has the range of h before it is given."""
_QUANTISED = ("x", "h", "c", "the value that h is rounded to", "y")
_CONVERT = (
    "what it gives is not known here, so nothing can be compared; convert the network with converter.optimizations = "
    "[tf.lite.Optimize.DEFAULT] and no representative_dataset (weights in int8), or without optimizations (float32)"
)
"""What to do about an LSTM in other ranges."""
_INT16 = 1 << 15
_SUMS, _GATES = Range(2.0**-12, _INT16, 2 * _INT16 - 1), Range(2.0**-15, _INT16, 2 * _INT16 - 1)
"""Of an LSTM in int8: what enters a sigmoid or tanh, ±8, and what they give, ±1. Both are int16."""


@dataclass(frozen=True)
class LstmRanges:
    """Of an LSTM that has whole numbers inside: the ranges of its next h and of c."""

    h: Range
    c: Range


def lstm_ranges(operator: Operator, graph: Graph) -> LstmRanges | None:
    """The ranges of a quantised operator; None where all but its weights is float.

    Raises ModelFileError for forms that LiteRT does not compute, or computes in several scales.
    """
    x, y = (graph.tensors[number] for number in (operator.inputs[_X], operator.outputs[0]))
    if not x.is_quantised:
        return None
    states = [_at(graph, operator.inputs, place) for place in (_H, _C)]
    hidden = _at(graph, operator.intermediates, _HIDDEN)
    kinds = [each.dtype if each else "none" for each in (x, states[0], states[1], hidden, y)]
    if kinds != ["int8", "int8", "int16", "int8", "int8"]:
        told = ", ".join(f"{name} {kind}" for name, kind in zip(_QUANTISED, kinds, strict=True))
        raise ModelFileError(
            f"{LSTM} that gives {y.called} has the types {told}; of those with scales, int8 with c in int16 is "
            f"computed here; {_CONVERT}"
        )
    ranges = [each.range if each else None for each in (*states, hidden, y)]
    if len({ranges[0], ranges[2], ranges[3]}) != 1 or None in ranges:
        told = ", ".join(
            f"{name} {_told(each)}" for name, each in zip(_QUANTISED[1:], (*states, hidden, y), strict=True)
        )
        raise ModelFileError(
            f"{LSTM} that gives {y.called} has several scales or zero points of h ({told}), and one of each is "
            f"expected; {_CONVERT}"
        )
    h, c = ranges[:2]
    assert h is not None
    assert c is not None
    return LstmRanges(h, c)


def _told(tensor: Tensor | None) -> str:
    """The ranges of a quantised value, for a message."""
    if tensor is None or tensor.quantisation is None:
        return "none"
    found = tensor.quantisation
    scales, zeros = (", ".join(f"{one:g}" for one in side[:3]) for side in (found.scales, found.zeros))
    return f"scale {scales}, zero point {zeros}"


def _at(graph: Graph, numbers: Sequence[int], place: int) -> Tensor | None:
    return graph.tensors[numbers[place]] if place < len(numbers) and numbers[place] >= 0 else None


def states_of(operator: Operator) -> tuple[int, ...]:
    """The numbers of its h and c, which it reads and writes in place."""
    return operator.inputs[_H : _C + 1]


def sequence_lstm(
    arithmetic: Arithmetic, options: Any, inputs: Sequence[Any], ranges: LstmRanges | None = None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """y of all steps, and the last h and c. Source: tensorflow/lite/kernels/unidirectional_sequence_lstm.cc.

    With `ranges`, each value that is rounded to whole numbers is put in its range (lite/kernels/lstm_eval.cc,
    LstmStepInteger8x8_16). These are the sum of each gate twice, each gate, both parts of c and c, its tanh, and h.
    """
    others = (*inputs[_PEEPHOLES:_B], *inputs[_PROJECTIONS : _PROJECTIONS + 2], *inputs[_NORMS:])
    if inputs[_W] is None or any(each is not None for each in others):
        raise ModelFileError(f"{LSTM} with peepholes, projection, normalisation or a joint gate is not computed here")
    if inputs[_H] is None or inputs[_C] is None:
        raise ModelFileError(f"{LSTM} has no state of its own, without which LiteRT does not run it")

    def within(value: np.ndarray, own: Range | None) -> np.ndarray:
        return value if own is None else arithmetic.quantised(value, own)

    sums, gated, of_h, of_c = (_SUMS, _GATES, ranges.h, ranges.c) if ranges else (None,) * 4
    x = inputs[_X] if options.TimeMajor() else inputs[_X].swapaxes(0, 1)
    inside = [arithmetic.affine(inputs[_W + gate], inputs[_B + gate]) for gate in range(4)]
    around = [arithmetic.product(inputs[_R + gate]) for gate in range(4)]
    h, c = inputs[_H], inputs[_C]
    outputs = []
    for step in x:
        totals = (arithmetic(within(inside[gate](step), sums) + around[gate](h)) for gate in range(4))
        i, f, g, o = (within(total, sums) for total in totals)
        gates = [within(arithmetic.activated(0.5 * (np.tanh(0.5 * gate) + 1)), gated) for gate in (i, f, o)]
        g = within(arithmetic.activated(activated(options.FusedActivationFunction(), g)), gated)
        kept, added = within(arithmetic(gates[1] * c), of_c), within(arithmetic(gates[0] * g), of_c)
        c = arithmetic(kept + added)
        c = c if of_c is None else np.clip(c, of_c.low, of_c.high)
        if options.CellClip() > 0:
            c = np.clip(c, -options.CellClip(), options.CellClip())
        shown = within(arithmetic.activated(activated(options.FusedActivationFunction(), c.copy())), gated)
        h = within(arithmetic(gates[2] * shown), of_h)
        outputs.append(h)
    y = np.stack(outputs)
    return y if options.TimeMajor() else y.swapaxes(0, 1), h, c
