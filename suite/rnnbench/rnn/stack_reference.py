"""The reference of a stack of cells, in plain NumPy and in float64. It shares no code with the cells of backends.

Nothing here comes from `cells.py`, so a mistake there shows. Equations: torch.nn.LSTM (with `proj_size`), torch.nn.GRU
and torch.nn.RNN; the ONNX operators for the GRU whose reset comes before the product, and for `clip`; TFLite's
UNIDIRECTIONAL_SEQUENCE_LSTM for `cell_clip`. A layer's input projection is one product over all steps. The rows of a
batch are independent, so runs from many initial states can be one batch.

Where a layer has ranges, what enters a product saturates at their ends: the exact result of a program with static 8-bit
operands, but for its rounding.

`clip` is what ONNX Runtime's CPU kernels do (compared with 1.31, every cell and direction): the input of every gate,
bias included, is clipped before its activation. The cell state is not clipped before the output's tanh, although the
text of the ONNX operator would allow this reading too.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from rnnbench.rnn.arithmetic import Arithmetic
from rnnbench.rnn.reference import Trajectory
from rnnbench.rnn.spec import Model
from rnnbench.rnn.weights import Layer, Weights


def run_stack(
    arithmetic: Arithmetic,
    model: Model,
    weights: Weights,
    x: np.ndarray,
    state: Mapping[str, np.ndarray],
    lengths: np.ndarray | None = None,
) -> Trajectory:
    """Like `run_in`, for a stack. x and state are checked and cast already."""
    layer_x = x
    states_of_rows: dict[str, list[np.ndarray]] = {name: [] for name in state}
    backwards, last, beyond = _order(x.shape[0], x.shape[1], lengths)
    for number in range(model.layers):
        outputs = []
        for direction in range(model.directions):
            row = number * model.directions + direction
            backward = direction == 1 or model.direction == "reverse"
            start = {name: array[row] for name, array in state.items()}
            history = _run(model, weights, row, layer_x[backwards] if backward else layer_x, start, arithmetic)
            for name, values in history.items():
                states_of_rows[name].append(values)
            y = history["h"][backwards] if backward else history["h"]
            outputs.append(y if lengths is None else np.where(beyond, 0, y))
        layer_x = _joined(outputs)
    stored = {
        n: [values.astype(arithmetic.stored, copy=False) for values in rows] for n, rows in states_of_rows.items()
    }
    return Trajectory(
        y=layer_x.astype(arithmetic.stored, copy=False),
        final={name: np.stack([values[last] for values in rows]) for name, rows in stored.items()},
        states={n: _stacked(rows) for n, rows in stored.items()} if model.direction == "forward" else None,
    )


def _joined(outputs: list[np.ndarray]) -> np.ndarray:
    """The outputs of all directions side by side. One direction is not copied: the copy of a long run takes longer than
    its products."""
    return outputs[0] if len(outputs) == 1 else np.concatenate(outputs, axis=2)


def _stacked(rows: list[np.ndarray]) -> np.ndarray:
    """The states of all rows [steps, rows, batch, size]."""
    return rows[0][:, None] if len(rows) == 1 else np.stack(rows, axis=1)


Index = tuple[np.ndarray, ...]


def _order(steps: int, batch: int, ends: np.ndarray | None) -> tuple[Index, Index | int, np.ndarray | bool]:
    """The order of steps for rows of these lengths, or of all steps, as three arrays.

    - indices [steps, batch] of the steps in the backward direction's order
    - indices [batch] of each row's last step
    - which steps [steps, batch, 1] are beyond their row's end
    """
    step, row = np.arange(steps)[:, None], np.arange(batch)
    if ends is None:  # As most runs are: a short one takes as long as these arrays.
        return (step[::-1, 0],), -1, False
    return (np.where(step < ends, ends - 1 - step, step), row), (ends - 1, row), (step >= ends)[..., None]


def _run(
    model: Model, weights: Weights, row: int, x: np.ndarray, start: dict[str, np.ndarray], arithmetic: Arithmetic
) -> dict[str, np.ndarray]:
    """One layer in one direction: the state after each of x's steps, in the order of x, [steps, batch, size] each."""
    if model.cell == "counter":
        return {"h": start["h"] + np.cumsum(x, axis=0)}
    layer = weights.layers[row]
    projected = arithmetic.affine(layer.w_ih, layer.b_ih, layer.ranges.get("w_ih"))(x)
    if model.cell == "lstm":
        return _lstm(model, layer, projected, start["h"], start["c"], arithmetic)
    run = {"gru": _gru, "rnn": _rnn}[model.cell]
    return {"h": run(model, layer, projected, start["h"], arithmetic)}


def _lstm(
    model: Model, layer: Layer, projected: np.ndarray, h: np.ndarray, c: np.ndarray, a: Arithmetic
) -> dict[str, np.ndarray]:
    recur = a.affine(layer.w_hh, layer.b_hh, layer.ranges.get("w_hh"))
    shrink = None if layer.w_hr is None else a.product(layer.w_hr, layer.ranges.get("w_hr"))
    size = model.hidden
    hs, cs = _for_steps(projected, h), _for_steps(projected, c)
    for step, from_x in enumerate(projected):
        gates = _clipped(a(from_x + recur(h)), model.clip, a)
        i, f, o = (_gate(model, gates[:, k * size : (k + 1) * size], a) for k in (0, 1, 3))
        g = _activated(model, gates[:, 2 * size : 3 * size], a)
        c = _clipped(a(a(f * c) + a(i * g)), model.cell_clip, a)
        h = a(o * _activated(model, c, a))
        if shrink is not None:
            h = shrink(h)
        hs[step], cs[step] = h, c
    return {"h": hs, "c": cs}


def _for_steps(projected: np.ndarray, state: np.ndarray) -> np.ndarray:
    """An array for a state after each step. A list that is stacked at the end would hold each state twice."""
    return np.empty((len(projected), *state.shape), projected.dtype)


def _gru(model: Model, layer: Layer, projected: np.ndarray, h: np.ndarray, a: Arithmetic) -> np.ndarray:
    size = model.hidden
    b_rz, b_n = (None, None) if layer.b_hh is None else (layer.b_hh[: 2 * size], layer.b_hh[2 * size :])
    of_h = layer.ranges.get("w_hh")
    recur_rz = a.affine(layer.w_hh[: 2 * size], b_rz, of_h)
    recur_n = a.affine(layer.w_hh[2 * size :], b_n, of_h)
    hs = _for_steps(projected, h)
    for step, from_x in enumerate(projected):
        gates = _gate(model, _clipped(a(from_x[:, : 2 * size] + recur_rz(h)), model.clip, a), a)
        r, z = gates[:, :size], gates[:, size:]
        from_h = a(r * recur_n(h)) if model.reset_after else recur_n(a(r * h))
        n = _activated(model, _clipped(a(from_x[:, 2 * size :] + from_h), model.clip, a), a)
        h = a(a(a(1 - z) * n) + a(z * h))
        hs[step] = h
    return hs


def _rnn(model: Model, layer: Layer, projected: np.ndarray, h: np.ndarray, a: Arithmetic) -> np.ndarray:
    recur = a.affine(layer.w_hh, layer.b_hh, layer.ranges.get("w_hh"))
    hs = _for_steps(projected, h)
    for step, from_x in enumerate(projected):
        total = _clipped(a(from_x + recur(h)), model.clip, a)
        h = _activated(model, total, a)
        hs[step] = h
    return hs


def _activated(model: Model, x: np.ndarray, a: Arithmetic) -> np.ndarray:
    return a.activated(np.tanh(x)) if model.activation == "tanh" else np.maximum(x, 0)


def _gate(model: Model, x: np.ndarray, a: Arithmetic) -> np.ndarray:
    """The sigmoid, or the operator HardSigmoid of ONNX with alpha 0.2 and beta 0.5."""
    if model.recurrent_activation == "sigmoid":
        return a.activated(_sigmoid(x))
    hard: np.ndarray = np.clip(a(a(0.2 * x) + 0.5), 0, 1)
    return hard


def _sigmoid(x: np.ndarray) -> np.ndarray:
    """1/(1 + e⁻ˣ). If e⁻ˣ is infinite, this is 0, as it must be."""
    value: np.ndarray = 1 / (1 + np.exp(-x))
    return value


def _clipped(x: np.ndarray, bound: float | None, a: Arithmetic) -> np.ndarray:
    """x within ±bound. Rounded again, because the dtype may not have the bound itself."""
    return x if bound is None else a(np.clip(x, -bound, bound))
