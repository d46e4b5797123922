"""LiteRT's operators of an LSTM, in an arithmetic: of one step, of a sequence, and of a sequence in both directions.

Sources: tensorflow/lite/kernels/lstm.cc, unidirectional_sequence_lstm.cc, bidirectional_sequence_lstm.cc, and
lstm_eval.cc, which they call.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from rnnbench.model_files.errors import ModelFileError
from rnnbench.model_files.formats.tflite.activation import activated
from rnnbench.model_files.formats.tflite.directions import entering
from rnnbench.model_files.formats.tflite.graph import Graph, Operator, Tensor
from rnnbench.model_files.formats.tflite.schema import require_schema
from rnnbench.rnn import Arithmetic, Range

ONE_STEP, SEQUENCE, BOTH = "LSTM", "UNIDIRECTIONAL_SEQUENCE_LSTM", "BIDIRECTIONAL_SEQUENCE_LSTM"
LSTMS = frozenset((ONE_STEP, SEQUENCE, BOTH))
_STATES = 18
"""Where h and c are in the inputs of the operators of one direction."""
_STATES_OF_BOTH = 35
"""Where h and c of each direction are in the inputs of that of both."""
_X, _W, _R, _PEEPHOLES, _B, _PROJECTION = 0, 1, 5, 9, 12, 16
"""Where the inputs of a kind begin: four of the gates i, f, c, o each; three peepholes; the projection and its bias."""
RECURRENT_WEIGHTS = slice(_R, _PEEPHOLES)
"""Where the recurrent weights are in the inputs of the operators of one direction."""
_BACKWARD = 17
"""How much further those of the second direction are."""
_AUXILIARY, _NORMS = 39, 20
_A = _AUXILIARY + 1, _AUXILIARY + 5
"""Where the weights of the auxiliary input begin, of both directions: four of the gates each."""
_OF_BASIC = 5
"""The basic kernel has one matrix of all gates. Its inputs are x, h, the matrix, the bias, and c."""
_HIDDEN = 4
"""The intermediate that has the range of h before it is given."""
_INTERMEDIATES = 5
"""The intermediates of the kernel whose cell state is in int16. Another one has 12."""
_QUANTISED = ("x", "h", "c", "the value that h is rounded to", "y")
CONVERT = (
    "what it gives is not known here, so nothing can be compared; convert the network with converter.optimizations = "
    "[tf.lite.Optimize.DEFAULT] and no representative_dataset (weights in int8), or without optimizations (float32)"
)
"""What to do about a recurrent operator in other ranges."""
_INT16 = 1 << 15
_SUMS, _GATES = Range(2.0**-12, _INT16, 2 * _INT16 - 1), Range(2.0**-15, _INT16, 2 * _INT16 - 1)
"""The ranges in an LSTM in int8: what enters a sigmoid or tanh, ±8, and what they give, ±1. Both are int16."""
_NORMALISATION = 1e-8
"""What is added to a variance (kernels/internal/reference/portable_tensor_utils.cc, MeanStddevNormalization)."""


@dataclass(frozen=True)
class LstmRanges:
    """The ranges of the next h and of c of an LSTM that has whole numbers inside."""

    h: Range
    c: Range


class _Weights(NamedTuple):
    """Four arrays are of the gates i, f, c, o. None: the operator has no such array."""

    x: Sequence[Any]
    """The first is None where the gates i and f are joint."""
    h: Sequence[Any]
    peepholes: Sequence[Any]
    """The peepholes of i, f and o."""
    biases: Sequence[Any]
    projection: tuple[Any, Any] = (None, None)
    """The matrix and its bias."""
    norms: Sequence[Any] = (None,) * 4
    auxiliary: Sequence[Any] = (None,) * 4


class _Form(NamedTuple):
    """The activation of a cell's values, and its limits; 0: none."""

    activation: int
    cell_clip: float = 0.0
    projection_clip: float = 0.0


def lstm_ranges(operator: Operator, graph: Graph) -> LstmRanges | None:
    """The ranges of a quantised operator; None where all but its weights is float.

    Raises ModelFileError for forms that LiteRT does not compute, or computes in several scales.
    """
    x, y = (graph.tensors[number] for number in (operator.inputs[_X], operator.outputs[0]))
    if not x.is_quantised:
        return None
    if operator.name == BOTH or is_basic(operator):
        kind = "of both directions" if operator.name == BOTH else "of one matrix for all gates"
        raise ModelFileError(f"{operator.name} {kind} that gives {y.called} takes {x.dtype} of a scale; {CONVERT}")
    states = [_at(graph, operator.inputs, place) for place in (_STATES, _STATES + 1)]
    hidden = _at(graph, operator.intermediates, _HIDDEN)
    kinds = [each.dtype if each else "none" for each in (x, states[0], states[1], hidden, y)]
    if kinds != ["int8", "int8", "int16", "int8", "int8"] or len(operator.intermediates) != _INTERMEDIATES:
        told = ", ".join(f"{name} {kind}" for name, kind in zip(_QUANTISED, kinds, strict=True))
        raise ModelFileError(
            f"{operator.name} that gives {y.called} has the types {told}, and {len(operator.intermediates)} "
            f"intermediates; of those with scales, int8 with c in int16 and five is computed here; {CONVERT}"
        )
    ranges = [each.range if each else None for each in (*states, hidden, y)]
    if len({ranges[0], ranges[2], ranges[3]}) != 1 or None in ranges:
        told = ", ".join(
            f"{name} {_told(each)}" for name, each in zip(_QUANTISED[1:], (*states, hidden, y), strict=True)
        )
        raise ModelFileError(
            f"{operator.name} that gives {y.called} has several scales or zero points of h ({told}), and one of each "
            f"is expected; {CONVERT}"
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


def is_basic(operator: Operator) -> bool:
    return operator.name == ONE_STEP and operator.options.KernelType() == require_schema().LSTMKernelType.BASIC


def lstm_states(operator: Operator) -> tuple[int, ...]:
    """The places of h and c, which it reads and writes in place: of both directions where it has two."""
    if is_basic(operator):
        return (1, 4)
    return tuple(range(_STATES_OF_BOTH, _AUXILIARY)) if operator.name == BOTH else (_STATES, _STATES + 1)


def lstm(arithmetic: Arithmetic, operator: Operator, graph: Graph, inputs: Sequence[Any]) -> list[np.ndarray]:
    """The outputs, and the states that it leaves. Raises ModelFileError for forms that are not computed here."""
    ranges = lstm_ranges(operator, graph)
    if is_basic(operator):
        return _basic(arithmetic, inputs)
    options, given = operator.options, [*inputs, *[None] * (_AUXILIARY + 9 - len(inputs))]
    form = _Form(options.FusedActivationFunction(), options.CellClip(), options.ProjClip())
    if operator.name == ONE_STEP:
        outputs, h, c = _steps(
            arithmetic,
            _weights(given, 0, given[_NORMS : _NORMS + 4]),
            form,
            given[_X][None],
            given[_STATES : _STATES + 2],
            ranges,
        )
        return [outputs[0], h, c]
    x = given[_X] if options.TimeMajor() else given[_X].swapaxes(0, 1)
    if operator.name == SEQUENCE:
        outputs, h, c = _steps(
            arithmetic, _weights(given, 0, given[_NORMS : _NORMS + 4]), form, x, given[_STATES : _STATES + 2], ranges
        )
        return [outputs if options.TimeMajor() else outputs.swapaxes(0, 1), h, c]
    states = given[_STATES_OF_BOTH:_AUXILIARY]
    weights = [
        _weights(given, first)._replace(auxiliary=given[place : place + 4])
        for first, place in zip((0, _BACKWARD), _A, strict=True)
    ]
    (x, aside), (other, other_aside) = entering(
        x, given[_AUXILIARY], options.TimeMajor(), any(each is not None for each in weights[0].auxiliary)
    )
    forward, *after = _steps(arithmetic, weights[0], form, x, states[:2], auxiliary=aside)
    backward, *last = _steps(arithmetic, weights[1], form, other, states[2:], auxiliary=other_aside)
    sides = [side if options.TimeMajor() else side.swapaxes(0, 1) for side in (forward, backward[::-1])]
    return [*([np.concatenate(sides, -1)] if options.MergeOutputs() else sides), *after, *last]


def _weights(inputs: Sequence[Any], first: int, norms: Sequence[Any] = (None,) * 4) -> _Weights:
    """The arrays of a direction, whose places begin `first` further."""
    own = inputs[first:]
    return _Weights(
        own[_W:_R],
        own[_R:_PEEPHOLES],
        own[_PEEPHOLES:_B],
        own[_B:_PROJECTION],
        (own[_PROJECTION], own[_PROJECTION + 1]),
        norms,
    )


def _basic(arithmetic: Arithmetic, inputs: Sequence[Any]) -> list[np.ndarray]:
    """The basic kernel: h, c, what enters its product, what that gives, and h and c again, as states.

    Its gates are in the order i, c, f, o. Source: kernels/internal/optimized/optimized_ops.h, LstmCell.
    """
    x, h, matrix, bias, c = inputs
    gates, biases = (np.split(each, 4) for each in (matrix, bias))
    order = (0, 2, 1, 3)
    weights = _Weights(
        [gates[gate][:, : x.shape[1]] for gate in order],
        [gates[gate][:, x.shape[1] :] for gate in order],
        (None,) * 3,
        [biases[gate] for gate in order],
    )
    form = _Form(require_schema().ActivationFunctionType.TANH)
    _, new, kept = _steps(arithmetic, weights, form, x[None], (h, c))
    entering = np.concatenate([x, h], axis=-1)
    return [new, kept, entering, arithmetic.affine(matrix, bias)(entering), new, kept]


def _steps(
    arithmetic: Arithmetic,
    weights: _Weights,
    form: _Form,
    x: np.ndarray,
    states: Sequence[Any],
    ranges: LstmRanges | None = None,
    auxiliary: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """y of all steps of x [steps, batch, input], and the last h and c. An auxiliary input has its own size.

    With `ranges`, each value that is rounded to whole numbers is put in its range (lite/kernels/lstm_eval.cc,
    LstmStepInteger8x8_16). These are the sum of each gate twice, each gate, both parts of c and c, its tanh, and h.
    """
    joint, others = weights.x[0] is None, (*weights.peepholes, *weights.projection, *weights.norms)
    if ranges is not None and (joint or any(each is not None for each in others)):
        raise ModelFileError(
            f"an LSTM in int8 with peepholes, projection, normalisation or a joint gate is not computed here; {CONVERT}"
        )
    if any(each is None for each in (*weights.x[1:], *weights.h[1:], *states)):
        raise ModelFileError("an LSTM lacks weights or a state of its own, without which LiteRT does not run it")

    def within(value: np.ndarray, own: Range | None) -> np.ndarray:
        return value if own is None else arithmetic.quantised(value, own)

    sums, gated, of_h, of_c = (_SUMS, _GATES, ranges.h, ranges.c) if ranges else (None,) * 4
    gates = [_gate(arithmetic, weights, gate, sums) for gate in range(4) if gate or not joint]
    project = None if weights.projection[0] is None else arithmetic.affine(*weights.projection)
    h, c = states
    outputs = []

    def sigmoid(total: np.ndarray) -> np.ndarray:
        return within(arithmetic.activated(0.5 * (np.tanh(0.5 * within(total, sums)) + 1)), gated)

    def shown(value: np.ndarray) -> np.ndarray:
        return within(arithmetic.activated(activated(form.activation, value)), gated)

    for step in zip(x) if auxiliary is None else zip(x, auxiliary, strict=True):
        *of_i, of_f, of_g, of_o = gates
        f = sigmoid(of_f(step, h, c))
        i = sigmoid(of_i[0](step, h, c)) if of_i else arithmetic(1 - f)
        g = shown(within(of_g(step, h, c), sums))
        kept, added = within(arithmetic(f * c), of_c), within(arithmetic(i * g), of_c)
        c = arithmetic(kept + added)
        c = c if of_c is None else np.clip(c, of_c.low, of_c.high)
        if form.cell_clip > 0:
            c = np.clip(c, -form.cell_clip, form.cell_clip)
        o = sigmoid(of_o(step, h, c))  # Its peephole sees the new c.
        h = within(arithmetic(o * shown(c.copy())), of_h)
        if project is not None:
            h = project(h)
            h = np.clip(h, -form.projection_clip, form.projection_clip) if form.projection_clip > 0 else h
        outputs.append(h)
    return np.stack(outputs), h, c


def _gate(arithmetic: Arithmetic, weights: _Weights, gate: int, sums: Range | None) -> Any:
    """What a gate's activation gets, of x, and an auxiliary input after it, h and the c that its peephole sees."""
    norm, bias = weights.norms[gate], weights.biases[gate]
    peephole = (*weights.peepholes[:2], None, weights.peepholes[2])[gate]
    from_x = arithmetic.affine(weights.x[gate], bias if norm is None else None)
    beside = weights.auxiliary[gate]
    from_aside = None if beside is None else arithmetic.product(beside)
    from_h = _recurrent(arithmetic, weights.h[gate])

    def total(given: Sequence[np.ndarray], h: np.ndarray, c: np.ndarray) -> np.ndarray:
        entered = from_x(given[0])
        if from_aside is not None:
            entered = arithmetic(entered + from_aside(given[1]))
        entered = entered if sums is None else arithmetic.quantised(entered, sums)
        result = arithmetic(entered + from_h(h))
        if peephole is not None:
            result = arithmetic(result + arithmetic(peephole * c))
        if norm is None:
            return result
        off = result - result.mean(-1, keepdims=True)
        scaled = arithmetic(norm * off / np.sqrt(np.square(off).mean(-1, keepdims=True) + _NORMALISATION))
        return scaled if bias is None else arithmetic(scaled + bias)

    return total


def _recurrent(arithmetic: Arithmetic, weights: np.ndarray) -> Any:
    """The product of recurrent weights with h. Weights of one axis are the diagonal of a matrix."""
    if weights.ndim > 1:
        return arithmetic.product(weights)
    return lambda h: arithmetic(weights * h)
