"""LiteRT's operators of an LSTM, in an arithmetic: of one step, of a sequence, and of a sequence in both directions.

Sources: tensorflow/lite/kernels/lstm.cc, unidirectional_sequence_lstm.cc, bidirectional_sequence_lstm.cc, and
lstm_eval.cc, which they call.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from rnnbench.model_files.errors import ModelFileError
from rnnbench.model_files.formats.tflite.activation import activated
from rnnbench.model_files.formats.tflite.directions import entering
from rnnbench.model_files.formats.tflite.graph import Graph, Operator
from rnnbench.model_files.formats.tflite.lstm_ranges import (
    BOTH,
    CONVERT,
    GATES,
    ONE_STEP,
    PROJECTION,
    SEQUENCE,
    STATES,
    SUMS,
    LstmRanges,
    is_basic,
    lstm_ranges,
)
from rnnbench.model_files.formats.tflite.schema import require_schema
from rnnbench.rnn import Arithmetic, Range

_STATES_OF_BOTH = 35
"""Where h and c of each direction are in the inputs of that of both."""
_X, _W, _R, _PEEPHOLES, _B = 0, 1, 5, 9, 12
"""Where the inputs of a kind begin: four of the gates i, f, c, o each; three peepholes."""
RECURRENT_WEIGHTS = slice(_R, _PEEPHOLES)
"""Where the recurrent weights are in the inputs of the operators of one direction."""
_BACKWARD = 17
"""How much further those of the second direction are."""
_AUXILIARY, _NORMS = 39, 20
_A = _AUXILIARY + 1, _AUXILIARY + 5
"""Where the weights of the auxiliary input begin, of both directions: four of the gates each."""
_NORMALISATION = 1e-8
"""What is added to a variance (kernels/internal/reference/portable_tensor_utils.cc, MeanStddevNormalization)."""


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


def lstm_states(operator: Operator) -> tuple[int, ...]:
    """The places of h and c, which it reads and writes in place: of both directions where it has two."""
    if is_basic(operator):
        return (1, 4)
    return tuple(range(_STATES_OF_BOTH, _AUXILIARY)) if operator.name == BOTH else (STATES, STATES + 1)


def lstm(arithmetic: Arithmetic, operator: Operator, graph: Graph, inputs: Sequence[Any]) -> list[np.ndarray]:
    """The outputs, and the states that it leaves. Raises ModelFileError for forms that are not computed here."""
    ranges = lstm_ranges(operator, graph)
    if is_basic(operator):
        return _basic(arithmetic, inputs, ranges)
    options, given = operator.options, [*inputs, *[None] * (_AUXILIARY + 9 - len(inputs))]
    form = _Form(options.FusedActivationFunction(), options.CellClip(), options.ProjClip())
    by_step = ranges is None and any(graph.tensors[n].is_quantised for n in operator.inputs[_W:_R] if n >= 0)
    if operator.name == ONE_STEP:
        outputs, h, c = _steps(
            arithmetic,
            _weights(given, 0, given[_NORMS : _NORMS + 4]),
            form,
            given[_X][None],
            given[STATES : STATES + 2],
            ranges,
        )
        return [outputs[0], h, c]
    x = given[_X] if options.TimeMajor() else given[_X].swapaxes(0, 1)
    if operator.name == SEQUENCE:
        norms, own = given[_NORMS : _NORMS + 4], given[STATES : STATES + 2]
        outputs, h, c = _steps(arithmetic, _weights(given, 0, norms), form, x, own, ranges, by_step=by_step)
        return [outputs if options.TimeMajor() else outputs.swapaxes(0, 1), h, c]
    states = given[_STATES_OF_BOTH:_AUXILIARY]
    weights = [
        _weights(given, first)._replace(auxiliary=given[place : place + 4])
        for first, place in zip((0, _BACKWARD), _A, strict=True)
    ]
    (x, aside), (other, other_aside) = entering(
        x, given[_AUXILIARY], options.TimeMajor(), any(each is not None for each in weights[0].auxiliary)
    )
    forward, *after = _steps(arithmetic, weights[0], form, x, states[:2], auxiliary=aside, by_step=by_step)
    backward, *last = _steps(arithmetic, weights[1], form, other, states[2:], auxiliary=other_aside, by_step=by_step)
    sides = [side if options.TimeMajor() else side.swapaxes(0, 1) for side in (forward, backward[::-1])]
    return [*([np.concatenate(sides, -1)] if options.MergeOutputs() else sides), *after, *last]


def _weights(inputs: Sequence[Any], first: int, norms: Sequence[Any] = (None,) * 4) -> _Weights:
    """The arrays of a direction, whose places begin `first` further."""
    own = inputs[first:]
    return _Weights(
        own[_W:_R],
        own[_R:_PEEPHOLES],
        own[_PEEPHOLES:_B],
        own[_B:PROJECTION],
        (own[PROJECTION], own[PROJECTION + 1]),
        norms,
    )


def _basic(arithmetic: Arithmetic, inputs: Sequence[Any], ranges: LstmRanges | None) -> list[np.ndarray]:
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
    _, new, kept = _steps(arithmetic, weights, form, x[None], (h, c), ranges)
    entering = np.concatenate([x, h], axis=-1)
    total = arithmetic.affine(matrix, bias)(entering)
    return [new, kept, entering, total if ranges is None else arithmetic.quantised(total, SUMS), new, kept]


def _steps(
    arithmetic: Arithmetic,
    weights: _Weights,
    form: _Form,
    x: np.ndarray,
    states: Sequence[Any],
    ranges: LstmRanges | None = None,
    auxiliary: np.ndarray | None = None,
    *,
    by_step: bool = False,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """y of all steps of x [steps, batch, input], and the last h and c. An auxiliary input has its own size.

    `by_step`: what enters a product has the range of its step.

    With `ranges`, each value that is rounded to whole numbers is put in its range (lite/kernels/lstm_eval.cc,
    LstmStepInteger8x8_16). These are the sum of each gate twice, each gate, both parts of c and c, its tanh, and h
    before and after a projection.
    """
    _require_computed(weights, form, states, ranges)

    def within(value: np.ndarray, own: Range | None) -> np.ndarray:
        return value if own is None else arithmetic.quantised(value, own)

    sums, gated, of_h, of_c, inside = (SUMS, GATES, ranges.h, ranges.c, ranges.hidden) if ranges else (None,) * 5
    own = [gate for gate in range(4) if weights.x[gate] is not None]  # The gates i and f may be joint.
    entered = _entered(arithmetic, weights, own, x, auxiliary, by_step=by_step)
    if ranges is not None and ranges.of_parts:
        entered = within(entered, sums)
    from_h = _recurrent(arithmetic, [weights.h[gate] for gate in own])
    ends = np.cumsum([len(weights.h[gate]) for gate in own])[:-1]
    project = None if weights.projection[0] is None else arithmetic.affine(*weights.projection)
    h, c = states
    outputs = []

    def sigmoid(total: np.ndarray) -> np.ndarray:
        return within(arithmetic.activated(0.5 * (np.tanh(0.5 * within(total, sums)) + 1)), gated)

    def shown(value: np.ndarray) -> np.ndarray:
        return within(arithmetic.activated(activated(form.activation, value)), gated)

    for of_step in entered:
        *of_i, of_f, of_g, of_o = np.split(arithmetic(of_step + from_h(h)), ends, axis=-1)
        f = sigmoid(_total(arithmetic, weights, 1, of_f, c))
        i = sigmoid(_total(arithmetic, weights, 0, of_i[0], c)) if of_i else within(arithmetic(1 - f), gated)
        g = shown(within(_total(arithmetic, weights, 2, of_g, c), sums))
        kept, added = within(arithmetic(f * c), of_c), within(arithmetic(i * g), of_c)
        c = arithmetic(kept + added)
        c = c if of_c is None else np.clip(c, of_c.low, of_c.high)
        if form.cell_clip > 0:
            c = np.clip(c, -form.cell_clip, form.cell_clip)
        o = sigmoid(_total(arithmetic, weights, 3, of_o, c))  # Its peephole sees the new c.
        h = within(arithmetic(o * shown(c.copy())), inside)
        if project is not None:
            h = within(project(h), of_h)
            h = np.clip(h, -form.projection_clip, form.projection_clip) if form.projection_clip > 0 else h
        outputs.append(h)
    return np.stack(outputs), h, c


def _require_computed(weights: _Weights, form: _Form, states: Sequence[Any], ranges: LstmRanges | None) -> None:
    """Raises ModelFileError for a form that is not computed here."""
    if ranges is not None and any(each is not None for each in (*weights.peepholes, *weights.norms)):
        raise ModelFileError(f"an LSTM in int8 with peepholes or a normalisation is not computed here; {CONVERT}")
    if ranges is not None and form.projection_clip > 0 and 2 * ranges.h.zero != ranges.h.steps + 1:
        raise ModelFileError(
            "an LSTM in int8 has a clip of its projection, and LiteRT clips the bytes of h, whose zero point is not 0; "
            f"{CONVERT}"
        )
    if any(each is None for each in (*weights.x[1:], *weights.h[1:], *states)):
        raise ModelFileError("an LSTM lacks weights or a state of its own, without which LiteRT does not run it")


def _entered(
    arithmetic: Arithmetic,
    weights: _Weights,
    gates: Sequence[int],
    x: np.ndarray,
    auxiliary: np.ndarray | None,
    *,
    by_step: bool,
) -> np.ndarray:
    """What all gates get of x, and of an auxiliary input: [steps, batch, gates·cells]."""
    matrix = np.concatenate([weights.x[gate] for gate in gates])
    biases = [bias for gate in gates if weights.norms[gate] is None and (bias := weights.biases[gate]) is not None]
    product = arithmetic.affine(matrix, np.concatenate(biases) if len(biases) == len(gates) else None)
    entered = np.stack([product(step) for step in x]) if by_step else product(x)
    if auxiliary is None or weights.auxiliary[gates[-1]] is None:
        return entered
    beside = arithmetic.product(np.concatenate([weights.auxiliary[gate] for gate in gates]))
    return arithmetic(entered + (np.stack([beside(step) for step in auxiliary]) if by_step else beside(auxiliary)))


def _total(arithmetic: Arithmetic, weights: _Weights, gate: int, total: np.ndarray, c: np.ndarray) -> np.ndarray:
    """What a gate's activation gets, of the sum of its products, and of the c that its peephole sees."""
    norm, bias = weights.norms[gate], weights.biases[gate]
    peephole = (*weights.peepholes[:2], None, weights.peepholes[2])[gate]
    if peephole is not None:
        total = arithmetic(total + arithmetic(peephole * c))
    if norm is None:
        return total
    off = total - total.mean(-1, keepdims=True)
    scaled = arithmetic(norm * off / np.sqrt(np.square(off).mean(-1, keepdims=True) + _NORMALISATION))
    return scaled if bias is None else arithmetic(scaled + bias)


def _recurrent(arithmetic: Arithmetic, weights: Sequence[np.ndarray]) -> Callable[[np.ndarray], np.ndarray]:
    """The products of all gates' recurrent weights with h. Weights of one axis are the diagonal of a matrix."""
    if all(each.ndim > 1 for each in weights):
        return arithmetic.product(np.concatenate(weights))
    products = [arithmetic.product(each) if each.ndim > 1 else _diagonal(arithmetic, each) for each in weights]
    return lambda h: np.concatenate([product(h) for product in products], axis=-1)


def _diagonal(arithmetic: Arithmetic, weights: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    return lambda h: arithmetic(weights * h)
