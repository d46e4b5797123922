"""Which LSTMs of LiteRT compute in whole numbers, and in which ranges.

Sources: tensorflow/lite/kernels/lstm.cc, unidirectional_sequence_lstm.cc and bidirectional_sequence_lstm.cc. LiteRT has
no such kernel of x in int16, and none of both directions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rnnbench.model_files.errors import ModelFileError
from rnnbench.model_files.formats.tflite.graph import Graph, Operator, Tensor
from rnnbench.model_files.formats.tflite.schema import require_schema
from rnnbench.rnn import Range

ONE_STEP, SEQUENCE, BOTH = "LSTM", "UNIDIRECTIONAL_SEQUENCE_LSTM", "BIDIRECTIONAL_SEQUENCE_LSTM"
LSTMS = frozenset((ONE_STEP, SEQUENCE, BOTH))
STATES = 18
"""Where h and c are in the inputs of the operators of one direction."""
_MATRIX = 2
"""Where the basic kernel has the matrix of all its gates. Its inputs are x, h, the matrix, the bias, and c."""
_HIDDEN = 4
"""The intermediate that has the range of h before a projection."""
PROJECTION = 16
"""Where the matrix of the projection is in the inputs of one direction. Its bias is the next one."""
_INTERMEDIATES = 5
"""The intermediates of the kernel whose cell state is in int16. Another one, of LSTM alone, has 12. No known converter
writes files for it."""
_QUANTISED = ("x", "h", "c", "the value that h is rounded to", "y")
_BASIC = {"x": "uint8", "h": "uint8", "weights": "uint8", "bias": "int32", "c": "int16"}
"""What the basic kernel of whole numbers takes."""
CONVERT = (
    "what it gives is not known here, so nothing can be compared; convert the network with converter.optimizations = "
    "[tf.lite.Optimize.DEFAULT] and no representative_dataset (weights in int8), or without optimizations (float32)"
)
"""What to do about a recurrent operator in other ranges."""
_INT16 = 1 << 15
SUMS, GATES = Range(2.0**-12, _INT16, 2 * _INT16 - 1), Range(2.0**-15, _INT16, 2 * _INT16 - 1)
"""The ranges in an LSTM in int8: what enters a sigmoid or tanh, ±8, and what they give, ±1. Both are int16."""
_UNIT, _KEPT = Range(2.0**-7, 128, 255), Range(2.0**-11, _INT16, 2 * _INT16 - 1)
"""The ranges of x, h and y, and of c, in the basic kernel, which takes no others."""
_SAME = 1e-5
"""The largest difference, relative to the scale, of scales that float32 has rounded."""


@dataclass(frozen=True)
class LstmRanges:
    """The ranges of an LSTM that has whole numbers inside: of the next h, of c, and of h before a projection."""

    h: Range
    c: Range
    hidden: Range
    of_parts: bool = True
    """Whether what a gate gets of x alone is a whole number too, before that of h is added."""


def lstm_ranges(operator: Operator, graph: Graph) -> LstmRanges | None:
    """The ranges of a quantised operator; None where all but its weights is float.

    Raises ModelFileError for forms that LiteRT does not compute, or computes in several scales.
    """
    x, y = (graph.tensors[number] for number in (operator.inputs[0], operator.outputs[0]))
    if is_basic(operator) and any(graph.tensors[number].is_quantised for number in operator.inputs):
        return _basic_ranges(operator, graph)
    if not x.is_quantised:
        return None
    if operator.name == BOTH:
        raise ModelFileError(
            f"{BOTH} that gives {y.called} takes {x.dtype} of a scale, and LiteRT has it of float32 alone; {CONVERT}"
        )
    states = [_at(graph, operator.inputs, place) for place in (STATES, STATES + 1)]
    hidden = _at(graph, operator.intermediates, _HIDDEN)
    kinds = [each.dtype if each else "none" for each in (x, states[0], states[1], hidden, y)]
    if kinds != ["int8", "int8", "int16", "int8", "int8"] or len(operator.intermediates) != _INTERMEDIATES:
        told = ", ".join(f"{name} {kind}" for name, kind in zip(_QUANTISED, kinds, strict=True))
        instead = "" if x.dtype == "int8" else f", and LiteRT has no kernel of x in {x.dtype}"
        raise ModelFileError(
            f"{operator.name} that gives {y.called} has the types {told}, and {len(operator.intermediates)} "
            f"intermediates{instead}; of those with scales, int8 with c in int16 and five is computed here; {CONVERT}"
        )
    ranges = [each.range if each else None for each in (*states, hidden, y)]
    has_projection = _at(graph, operator.inputs, PROJECTION) is not None
    of_h = {ranges[0], ranges[3]} if has_projection else {ranges[0], ranges[2], ranges[3]}
    if len(of_h) != 1 or None in ranges:
        told = ", ".join(
            f"{name} {_described_range(each)}" for name, each in zip(_QUANTISED[1:], (*states, hidden, y), strict=True)
        )
        raise ModelFileError(
            f"{operator.name} that gives {y.called} has several scales or zero points of h ({told}), and one of each "
            f"is expected; {CONVERT}"
        )
    h, c, inside, _ = ranges
    assert h is not None
    assert c is not None
    assert inside is not None
    return LstmRanges(h, c, inside)


def _basic_ranges(operator: Operator, graph: Graph) -> LstmRanges:
    """Those of the basic kernel of whole numbers, which LiteRT takes for granted (lstm.cc, basic::Eval)."""
    x, h, matrix, bias, c = (graph.tensors[number] for number in operator.inputs)
    y, kept, *between = (graph.tensors[number] for number in operator.outputs)
    kinds = dict(zip(_BASIC, (each.dtype for each in (x, h, matrix, bias, c)), strict=True))
    if kinds != _BASIC:
        found, taken = (", ".join(f"{name} {kind}" for name, kind in each.items()) for each in (kinds, _BASIC))
        raise ModelFileError(
            f"{operator.name} by its basic kernel that gives {y.called} has the types {found}, and LiteRT takes "
            f"{taken}, or float32 alone; {CONVERT}"
        )
    own = [(x, _UNIT), (h, _UNIT), (y, _UNIT), (c, _KEPT), (kept, _KEPT)]
    own += [(each, expected) for each, expected in zip(between, (_UNIT, SUMS), strict=True) if each.is_quantised]
    for each, expected in own:
        if each.range != expected:
            raise ModelFileError(
                f"{each.called} of an LSTM in uint8 has the {_described_range(each)}, and LiteRT takes its scale for "
                f"{expected.scale:g}, whatever the file says; {CONVERT}"
            )
    scale = _UNIT.scale * matrix.range.scale if matrix.range is not None else 0.0
    if bias.quantisation is None or not np.allclose(bias.quantisation.scales, scale, rtol=_SAME, atol=0):
        raise ModelFileError(
            f"{bias.called} of an LSTM in uint8 has the {_described_range(bias)}, and its product with x has the scale "
            f"{scale:g}, which LiteRT takes for that of the bias; {CONVERT}"
        )
    return LstmRanges(_UNIT, _KEPT, _UNIT, of_parts=False)


def may_have_zero_point(operator: Operator, place: int) -> bool:
    """Whether LiteRT takes the zero point of a constant at this place in an operator's inputs."""
    return place == _MATRIX and is_basic(operator)


def is_basic(operator: Operator) -> bool:
    """Whether it is an LSTM by the kernel that has one matrix of all gates."""
    return operator.name == ONE_STEP and operator.options.KernelType() == require_schema().LSTMKernelType.BASIC


def _described_range(tensor: Tensor | None) -> str:
    """The ranges of a quantised value, for a message."""
    if tensor is None or tensor.quantisation is None:
        return "none"
    found = tensor.quantisation
    scales, zeros = (", ".join(f"{one:g}" for one in side[:3]) for side in (found.scales, found.zeros))
    return f"scale {scales}, zero point {zeros}"


def _at(graph: Graph, numbers: Sequence[int], place: int) -> Tensor | None:
    return graph.tensors[numbers[place]] if place < len(numbers) and numbers[place] >= 0 else None
