"""LiteRT's operators that have a state of their own: where it is, and what they give in an arithmetic.

Sources: tensorflow/lite/kernels/basic_rnn.cc, unidirectional_sequence_rnn.cc, bidirectional_sequence_rnn.cc, svdf.cc,
and the sources of lstm.py.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from rnnbench.model_files.errors import ModelFileError
from rnnbench.model_files.formats.tflite.activation import activated
from rnnbench.model_files.formats.tflite.directions import entering
from rnnbench.model_files.formats.tflite.graph import Graph, Operator
from rnnbench.model_files.formats.tflite.lstm import lstm, lstm_states
from rnnbench.model_files.formats.tflite.lstm_ranges import BOTH, CONVERT, ONE_STEP, SEQUENCE, lstm_ranges
from rnnbench.rnn import Arithmetic

_OF_SVDF = ("int8", "int8", "int16", "int16", "int8")
"""The types of x, both weights, the state and y of an SVDF in whole numbers."""


class Recurrent(NamedTuple):
    """An operator with a state of its own."""

    states: Callable[[Operator], tuple[int, ...]]
    """The places of its states in its inputs."""
    compute: Callable[[Arithmetic, Operator, Graph, Sequence[Any]], Sequence[np.ndarray]]
    """Its outputs, and the states that it leaves."""
    is_static: Callable[[Operator, Graph], bool]
    """Whether it computes in whole numbers of fixed ranges. Raises ModelFileError for types not computed here."""


def states_of(operator: Operator) -> tuple[int, ...]:
    """The numbers of the tensors that it reads and writes in place."""
    return tuple(operator.inputs[place] for place in RECURRENT[operator.name].states(operator))


def has_own_range(operator: Operator, graph: Graph) -> bool:
    """Whether it has weights of whole numbers, and quantises floats by the range that they have.

    Raises ModelFileError where it has other types that are not computed here.
    """
    if RECURRENT[operator.name].is_static(operator, graph):
        return False
    quantised = [graph.tensors[n] for n in operator.inputs if n >= 0 and graph.tensors[n].is_quantised]
    if (other := next((tensor for tensor in quantised if tensor.dtype != "int8"), None)) is not None:
        raise ModelFileError(
            f"{other.called} is {other.dtype} with a scale, and {operator.name} has weights of int8; {CONVERT}"
        )
    return bool(quantised)


def _rnn_is_static(operator: Operator, graph: Graph) -> bool:
    x = graph.tensors[operator.inputs[0]]
    if x.is_quantised:
        raise ModelFileError(f"{x.called} is {x.dtype} with a scale, which {operator.name} does not take; {CONVERT}")
    return False


def _svdf_is_static(operator: Operator, graph: Graph) -> bool:
    x, feature, time, _, state = (graph.tensors[number] for number in operator.inputs)
    y = graph.tensors[operator.outputs[0]]
    if not x.is_quantised:
        return False
    kinds = tuple(tensor.dtype for tensor in (x, feature, time, state, y))
    if kinds != _OF_SVDF:
        named = zip(("x", "the weights", "the weights of time", "the state", "y"), kinds, strict=True)
        types = ", ".join(f"{name} {kind}" for name, kind in named)
        raise ModelFileError(
            f"SVDF that gives {y.called} has the types {types}. LiteRT reads the weights of time and the state as "
            "int16, and writes beyond their end (docs/upstream/litert-svdf-state.md); convert the network with both in "
            "int16, which TFLite Micro takes too"
        )
    if state.range is None or state.range.zero * 2 != state.range.steps + 1:
        raise ModelFileError(f"SVDF that gives {y.called} has a state whose zero point is not 0; {CONVERT}")
    if y.range is None or y.range.zero:
        raise ModelFileError(
            f"SVDF that gives {y.called} gives int8 of another zero point than -128. LiteRT takes it with RELU "
            f"alone, and leaves numbers below 0 there, which RELU would not; {CONVERT}"
        )
    return True


def _svdf(arithmetic: Arithmetic, operator: Operator, graph: Graph, inputs: Sequence[Any]) -> Sequence[np.ndarray]:
    """A filter of x in each step, and one of the last steps' results, which are the state [batch, filters·memory]: the
    newest of each filter is its last one."""
    x, feature, time, bias, state = inputs
    state_range, y_range = (
        graph.tensors[number].range if _svdf_is_static(operator, graph) else None
        for number in (operator.inputs[4], operator.outputs[0])
    )
    filters, memory = time.shape
    new = arithmetic.product(feature)(x)
    new = new if state_range is None else arithmetic.quantised(new, state_range)
    seen = np.concatenate([state.reshape(-1, filters, memory)[..., 1:], new[..., None]], axis=-1)
    rank = operator.options.Rank()

    def of_units(values: np.ndarray) -> np.ndarray:
        total: np.ndarray = values.sum(-1).reshape(len(x), -1, rank).sum(-1)
        return total

    y = arithmetic.summed(of_units(seen * time), lambda: of_units(np.square(seen * time)), rank * memory)
    y = y if bias is None else arithmetic(y + bias)
    y = activated(operator.options.FusedActivationFunction(), y)
    return y if y_range is None else arithmetic.quantised(y, y_range), seen.reshape(state.shape)


def _rnn(arithmetic: Arithmetic, operator: Operator, graph: Graph, inputs: Sequence[Any]) -> Sequence[np.ndarray]:
    """An RNN of one step, of a sequence, or of a sequence in both directions."""
    options, x = operator.options, inputs[0]
    activation = options.FusedActivationFunction()
    if operator.name == "RNN":
        outputs, h = _rnn_steps(arithmetic, activation, x[None], inputs[1:5])
        return outputs[0], h
    x = x if options.TimeMajor() else x.swapaxes(0, 1)
    if operator.name == "UNIDIRECTIONAL_SEQUENCE_RNN":
        forward, h = _rnn_steps(arithmetic, activation, x, inputs[1:5])
        return forward if options.TimeMajor() else forward.swapaxes(0, 1), h
    auxiliary, *weights = [*inputs[9:], *[None] * 3][:3]
    (x, aside), (other, other_aside) = entering(x, auxiliary, options.TimeMajor(), weights[0] is not None)
    forward, h = _rnn_steps(arithmetic, activation, x, inputs[1:5], weights[0], aside)
    backward, last = _rnn_steps(arithmetic, activation, other, inputs[5:9], weights[1], other_aside)
    sides = [side if options.TimeMajor() else side.swapaxes(0, 1) for side in (forward, backward[::-1])]
    return [*([np.concatenate(sides, -1)] if options.MergeOutputs() else sides), h, last]


def _rnn_steps(
    arithmetic: Arithmetic,
    activation: int,
    x: np.ndarray,
    arrays: Sequence[Any],
    beside: Any = None,
    auxiliary: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """y of all steps of x [steps, batch, input], and the last h. `beside` has the weights of an auxiliary input.

    Source: kernels/internal/kernel_utils.cc.
    """
    weights, recurrent, bias, h = arrays
    if h is None:
        raise ModelFileError("an RNN has no state of its own, without which LiteRT does not run it")
    from_x, from_h = arithmetic.affine(weights, bias), arithmetic.product(recurrent)
    from_aside = None if beside is None else arithmetic.product(beside)
    outputs = []
    for place, step in enumerate(x):
        entered = from_x(step)
        if from_aside is not None and auxiliary is not None:
            entered = arithmetic(entered + from_aside(auxiliary[place]))
        h = arithmetic.activated(activated(activation, arithmetic(entered + from_h(h))))
        outputs.append(h)
    return np.stack(outputs), h


_OF_RNN = Recurrent(lambda operator: (4,), _rnn, _rnn_is_static)
_OF_LSTM = Recurrent(lstm_states, lstm, lambda operator, graph: lstm_ranges(operator, graph) is not None)
RECURRENT: dict[str, Recurrent] = {
    "RNN": _OF_RNN,
    "UNIDIRECTIONAL_SEQUENCE_RNN": _OF_RNN,
    "BIDIRECTIONAL_SEQUENCE_RNN": _OF_RNN._replace(states=lambda operator: (4, 8)),
    "SVDF": Recurrent(lambda operator: (4,), _svdf, _svdf_is_static),
    ONE_STEP: _OF_LSTM,
    SEQUENCE: _OF_LSTM,
    BOTH: _OF_LSTM,
}
