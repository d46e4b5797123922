"""ONNX's LSTM, GRU and RNN in the forms that the suite's own cells do not have, step by step.

These are peepholes, an input gate that is one less the forget gate, and other activations, which may differ between
gates and directions. Source: the texts of the operators, and ONNX Runtime's kernels for `clip` (see
rnn/stack_reference.py) and for how the values of activations are handed out (core/providers/cpu/rnn/rnn_helpers.cc).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from rnnbench.model_files.errors import ModelFileError
from rnnbench.outside_text import safe_text
from rnnbench.rnn import Arithmetic

Function = Callable[[np.ndarray], np.ndarray]


class _Kind(NamedTuple):
    """A kind of activation."""

    function: Callable[..., np.ndarray]
    """A function of x, and then of alpha and beta if it has them."""
    defaults: tuple[float, ...] = ()
    """The defaults of alpha and beta."""


def _softplus(x: np.ndarray) -> np.ndarray:
    result: np.ndarray = np.logaddexp(x, 0)
    return result


def _elu(x: np.ndarray, alpha: float) -> np.ndarray:
    return np.where(x < 0, alpha * np.expm1(np.minimum(x, 0)), x)


_KINDS = {
    "relu": _Kind(lambda x: np.maximum(x, 0)),
    "tanh": _Kind(np.tanh),
    "sigmoid": _Kind(lambda x: 0.5 * (np.tanh(0.5 * x) + 1)),
    "affine": _Kind(lambda x, alpha, beta: alpha * x + beta, (1.0, 0.0)),
    "leakyrelu": _Kind(lambda x, alpha: np.where(x < 0, alpha * x, x), (0.01,)),
    "thresholdedrelu": _Kind(lambda x, alpha: np.where(x > alpha, x, 0.0), (1.0,)),
    "hardsigmoid": _Kind(lambda x, alpha, beta: np.clip(alpha * x + beta, 0, 1), (0.2, 0.5)),
    "elu": _Kind(_elu, (1.0,)),
    "softsign": _Kind(lambda x: x / (1 + np.abs(x))),
    "softplus": _Kind(_softplus),
    "scaledtanh": _Kind(lambda x, alpha, beta: alpha * np.tanh(beta * x), (np.nan, np.nan)),
}
"""By name in small letters. ScaledTanh has no default values: they must be given."""
_ORDERS = {"LSTM": "iofc", "GRU": "zrh", "RNN": "h"}
"""The gates as weights have them."""
_DEFAULTS = {"LSTM": ("sigmoid", "tanh", "tanh"), "GRU": ("sigmoid", "tanh"), "RNN": ("tanh",)}


@dataclass(frozen=True)
class Cell:
    """One of the three operators, with attributes as they are in the file. `activations` are of all directions."""

    operator: str
    activations: Sequence[Function]
    clip: float
    input_forget: bool
    linear_before_reset: bool
    direction: str


def activations_of(operator: str, directions: int, attributes: Mapping[str, Any]) -> list[Function]:
    """The functions of all directions. Each that has an alpha or beta takes the next one given, else its default.

    Raises ModelFileError for a name that the standard does not have, and for another number of them.
    """
    names = [name.decode("utf-8", "replace").lower() for name in attributes.get("activations", ())]
    names = names or [*_DEFAULTS[operator]] * directions
    parameters = [iter(attributes.get(f"activation_{which}", ())) for which in ("alpha", "beta")]
    if len(names) != directions * len(_DEFAULTS[operator]) or not {*names} <= _KINDS.keys():
        shown = safe_text(", ".join(names), 100)
        raise ModelFileError(
            f"{operator} with the activations {shown}: {len(_DEFAULTS[operator])} for each of {directions} directions "
            f"are expected, of {', '.join(_KINDS)}"
        )
    return [_function(operator, name, parameters) for name in names]


def _function(operator: str, name: str, parameters: Sequence[Any]) -> Function:
    kind = _KINDS[name]
    values = [float(next(rest, default)) for rest, default in zip(parameters, kind.defaults, strict=False)]
    if np.isnan(values).any():
        raise ModelFileError(f"{operator} has the activation {name} without activation_alpha or activation_beta")
    return lambda x: kind.function(x, *values)


def run_cell(
    arithmetic: Arithmetic,
    cell: Cell,
    weights: Sequence[Any],
    x: np.ndarray,
    state: Sequence[np.ndarray],
    lengths: np.ndarray | None,
) -> tuple[np.ndarray, ...]:
    """y [steps, directions, batch, hidden], and the last h and c [directions, batch, hidden].

    `weights` are W, R, B and P, the latter two None where the operator has none; `state` is h, and c of an LSTM.
    """
    steps, batch, _ = x.shape
    x, state = arithmetic.cast(x), [arithmetic.cast(array) for array in state]
    lengths = np.full(batch, steps) if lengths is None else np.asarray(lengths)
    sides = []
    for side in range(len(weights[0])):
        backward = cell.direction == "reverse" or side == 1
        order = _order(steps, lengths) if backward else np.broadcast_to(np.arange(steps)[:, None], (steps, batch))
        rows = np.arange(batch)
        side_weights = [None if array is None else array[side] for array in weights]
        step = _step(arithmetic, cell, side_weights, cell.activations[len(_DEFAULTS[cell.operator]) * side :])
        y, ends = _steps(step, x[order, rows], [array[side] for array in state], lengths)
        sides.append((y[order, rows], *ends))
    y, *ends = (np.stack(arrays) for arrays in zip(*sides, strict=True))
    return y.swapaxes(0, 1), *ends


def _order(steps: int, lengths: np.ndarray) -> np.ndarray:
    """The place of each step [steps, batch] where each row is read from its own end. It is its own inverse."""
    places = np.arange(steps)[:, None]
    result: np.ndarray = np.where(places < lengths, lengths - 1 - places, places)
    return result


def _steps(
    step: Callable[..., list[np.ndarray]], x: np.ndarray, state: list[np.ndarray], lengths: np.ndarray
) -> tuple[np.ndarray, list[np.ndarray]]:
    """All steps of one direction: h, which is zero after a row's end, and the state that each row ends with."""
    outputs = []
    for place, of_step in enumerate(x):
        running = (place < lengths)[:, None]
        state = [np.where(running, new, old) for new, old in zip(step(of_step, *state), state, strict=True)]
        outputs.append(np.where(running, state[0], 0))
    return np.stack(outputs), state


def _step(
    arithmetic: Arithmetic, cell: Cell, weights: Sequence[Any], activations: Sequence[Function]
) -> Callable[..., list[np.ndarray]]:
    """One step of a direction: of x and the state, to the next state."""
    a, order = arithmetic, _ORDERS[cell.operator]
    of_x, of_h, of_both, of_c = weights
    count = len(order)
    biases = [None] * (2 * count) if of_both is None else np.split(of_both, 2 * count)
    from_x, from_h = (
        {gate: a.affine(matrix, bias) for gate, matrix, bias in zip(order, np.split(side, count), offsets, strict=True)}
        for side, offsets in ((of_x, biases[:count]), (of_h, biases[count:]))
    )
    peepholes = dict(zip("iof", [None] * 3 if of_c is None else np.split(of_c, 3), strict=True))

    def activated(which: int, total: np.ndarray) -> np.ndarray:
        clipped = np.clip(total, -cell.clip, cell.clip) if cell.clip else total
        return a.activated(np.asarray(activations[which](clipped)))

    def total(gate: str, x: np.ndarray, h: np.ndarray, c: np.ndarray | None = None) -> np.ndarray:
        result = a(from_x[gate](x) + from_h[gate](h))
        peephole = peepholes.get(gate)
        return result if c is None or peephole is None else a(result + a(a.cast(peephole) * c))

    def lstm(x: np.ndarray, h: np.ndarray, c: np.ndarray) -> list[np.ndarray]:
        i = activated(0, total("i", x, h, c))
        f = a(1 - i) if cell.input_forget else activated(0, total("f", x, h, c))
        new = a(a(f * c) + a(i * activated(1, total("c", x, h))))
        o = activated(0, total("o", x, h, new))
        return [a(o * a.activated(np.asarray(activations[2](new)))), new]

    def gru(x: np.ndarray, h: np.ndarray) -> list[np.ndarray]:
        z, r = (activated(0, total(gate, x, h)) for gate in "zr")
        if cell.linear_before_reset:
            candidate = activated(1, a(from_x["h"](x) + a(r * from_h["h"](h))))
        else:
            candidate = activated(1, a(from_x["h"](x) + from_h["h"](a(r * h))))
        return [a(a(a(1 - z) * candidate) + a(z * h))]

    def rnn(x: np.ndarray, h: np.ndarray) -> list[np.ndarray]:
        return [activated(0, total("h", x, h))]

    steps: dict[str, Callable[..., list[np.ndarray]]] = {"LSTM": lstm, "GRU": gru, "RNN": rnn}
    return steps[cell.operator]
