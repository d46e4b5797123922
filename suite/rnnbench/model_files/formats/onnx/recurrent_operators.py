"""ONNX's LSTM, GRU and RNN, step by step in a given arithmetic.

`onnx.reference` has each as one operation, and ignores `sequence_lens`, `clip`, `activations` and `input_forget`. Here
each is a `Model` for `run_in`, the suite's own reference, which is compared with ONNX's node tests and ONNX Runtime.
Forms that a `Model` does not have are in `other_cells`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal

import numpy as np
from pydantic import ValidationError

from rnnbench.model_files.errors import ModelFileError
from rnnbench.model_files.formats.onnx.other_cells import Cell, activations_of, run_cell
from rnnbench.outside_text import safe_text
from rnnbench.rnn import Arithmetic, Layer, Model, Weights, run_in

Run = Callable[..., tuple[np.ndarray, ...]]
_ORDERS = {"LSTM": (0, 2, 3, 1), "GRU": (1, 0, 2), "RNN": (0,)}
"""Where PyTorch's gates stand in ONNX's order: i f g o in i o f c; r z n in z r h."""
OPERATORS = tuple(_ORDERS)
_GATED = {"LSTM": 3, "GRU": 2, "RNN": 1}
"""Activations of one direction: of the gates, then of the rest. An RNN has no gates."""
_READ = frozenset(
    (
        *("hidden_size", "direction", "activations", "activation_alpha", "activation_beta", "clip", "input_forget"),
        *("layout", "linear_before_reset", "output_sequence"),
    )
)
_PEEPHOLES = 7
"""Index of the input that has them."""
_NOT_COMPUTED = "is not computed here; export its step as products, sums and activations, in a Scan or one step a call"
_NO_PROJECTION = (
    "; ONNX has no projection (proj_size), so export such a network as products, sums and activations, with a cell of "
    "your own"
)
_HARD_SIGMOID = {"activation_alpha": 0.2, "activation_beta": 0.5}
"""Values of a hard sigmoid by the standard, which converters write down."""


def recurrent_operator(node: Any, arithmetic: Arithmetic, attributes: dict[str, Any]) -> Run:
    """A function of the operator's inputs. Raises ModelFileError for what it would compute wrongly."""
    operator = node.op_type
    for name, value in attributes.items():
        if name not in _READ:
            raise ModelFileError(f"{operator} with {name} = {safe_text(str(value), 60)} {_NOT_COMPUTED}")
    has_peepholes = len(node.input) > _PEEPHOLES and bool(node.input[_PEEPHOLES])
    chosen = None if has_peepholes or attributes.get("input_forget") else _activations(operator, attributes)
    cell = _cell(operator, attributes) if chosen is None else None
    if (layout := attributes.get("layout", 0)) not in (0, 1):
        raise ModelFileError(f"{operator} has layout = {layout}; it is 0 (steps come first) or 1 (rows come first)")
    batch_first = layout == 1

    def run(x: np.ndarray, w: np.ndarray, r: np.ndarray, *rest: np.ndarray | None) -> tuple[np.ndarray, ...]:
        b, lengths, h, c, p = [*rest, *[None] * 5][:5]
        model = _model(operator, w, r, b, attributes, chosen or {})
        if batch_first:
            x = x.swapaxes(0, 1)
            h, c = (None if array is None else array.swapaxes(0, 1) for array in (h, c))
        state, lengths = _state(operator, model, x, h, c), _checked(lengths, x)
        if cell is not None:
            y, *ends = run_cell(arithmetic, cell, (w, r, b, p), x, list(state.values()), lengths)
        else:
            weights = Weights(tuple(_layer(operator, row, w, r, b) for row in range(model.directions)))
            result = run_in(arithmetic, model, weights, x, state, lengths)
            y = result.y.reshape(*result.y.shape[:2], model.directions, model.hidden).swapaxes(1, 2)
            ends = list(result.final.values())
        if batch_first:
            y, ends = y.transpose(2, 0, 1, 3), [end.swapaxes(0, 1) for end in ends]
        return tuple(array.astype(arithmetic.carrier, copy=False) for array in (y, *ends))

    return run


def _cell(operator: str, attributes: Mapping[str, Any]) -> Cell:
    direction = _direction(attributes)
    return Cell(
        operator,
        activations_of(operator, 2 if direction == "bidirectional" else 1, attributes),
        float(attributes.get("clip", 0.0)),
        bool(attributes.get("input_forget", 0)),
        bool(attributes.get("linear_before_reset", 0)),
        direction,
    )


def _direction(attributes: Mapping[str, Any]) -> str:
    direction: str = attributes.get("direction", b"forward").decode("utf-8", "replace")
    return direction


def _activations(operator: str, attributes: Mapping[str, Any]) -> dict[str, str] | None:
    """The fields of a Model that say them. None: it has no word for them."""
    names = [name.decode("utf-8", "replace").lower() for name in attributes.get("activations", ())]
    if not all(_are_of_hard_sigmoid(name, names, attributes) for name in _HARD_SIGMOID):
        return None
    if not names:
        return {}
    per_direction = _GATED[operator]
    directions = [tuple(names[i : i + per_direction]) for i in range(0, len(names), per_direction)]
    if len(directions[-1]) != per_direction:
        return None
    first = directions[0]
    gate, rest = (first[0], set(first[1:])) if operator != "RNN" else ("sigmoid", set(first))
    words = {"sigmoid": "sigmoid", "hardsigmoid": "hard_sigmoid"}
    if len(set(directions)) != 1 or len(rest) != 1 or gate not in words or not rest <= {"tanh", "relu"}:
        return None
    return {"recurrent_activation": words[gate], "activation": rest.pop()}


def _are_of_hard_sigmoid(which: str, names: list[str], attributes: Mapping[str, Any]) -> bool:
    """Whether the values of the activations are those that a hard sigmoid has by the standard, or none are given."""
    values = attributes.get(which, ())
    hard = names.count("hardsigmoid")
    return not len(values) or (len(values) <= hard and np.allclose(values, _HARD_SIGMOID[which], rtol=1e-6))


def _model(
    operator: str,
    w: np.ndarray,
    r: np.ndarray,
    b: np.ndarray | None,
    attributes: dict[str, Any],
    chosen: dict[str, str],
) -> Model:
    cells: dict[str, Literal["lstm", "gru", "rnn"]] = {"LSTM": "lstm", "GRU": "gru", "RNN": "rnn"}
    after = bool(attributes.get("linear_before_reset", 0)) if operator == "GRU" else True
    hidden = attributes.get("hidden_size", r.shape[-1])
    if r.shape[-1] != hidden or {w.shape[-2], r.shape[-2]} != {len(_ORDERS[operator]) * hidden}:
        raise ModelFileError(
            f"{operator} has a hidden_size of {hidden}, and other weights: W is {[*w.shape]}, R is {[*r.shape]}"
            f"{_NO_PROJECTION if operator == 'LSTM' else ''}"
        )
    try:
        return Model.model_validate(
            {
                "cell": cells[operator],
                "input": w.shape[-1],
                "hidden": r.shape[-1],
                "direction": _direction(attributes),
                "bias": b is not None,
                "reset_after": after,
                "clip": float(attributes["clip"]) if attributes.get("clip") else None,
                **chosen,
            }
        )
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        raise ModelFileError(f"{operator} is not computed here: {first['loc']}: {first['msg']}") from error


def _layer(operator: str, row: int, w: np.ndarray, r: np.ndarray, b: np.ndarray | None) -> Layer:
    b_ih, b_hh = (None, None) if b is None else np.split(b[row], 2)

    def gates(rows: np.ndarray) -> np.ndarray:
        parts = np.split(rows, len(_ORDERS[operator]))
        return np.concatenate([parts[index] for index in _ORDERS[operator]])

    return Layer(
        w_ih=gates(w[row]),
        w_hh=gates(r[row]),
        b_ih=None if b_ih is None else gates(b_ih),
        b_hh=None if b_hh is None else gates(b_hh),
        w_hr=None,
    )


def _state(
    operator: str, model: Model, x: np.ndarray, h: np.ndarray | None, c: np.ndarray | None
) -> dict[str, np.ndarray]:
    states = {name: array for name, array in (("h", h), ("c", c)) if array is not None}
    shapes = model.state_shapes(x.shape[1]) if x.ndim == 3 else {}
    for name, array in states.items():
        if array.shape != shapes.get(name, array.shape):
            may_be_projected = operator == "LSTM" and array.shape[-1:] != shapes[name][-1:]
            raise ModelFileError(
                f"{operator} has an initial {name} of the shape {[*array.shape]}; x and the weights call for "
                f"{[*shapes[name]]}"
                f"{_NO_PROJECTION if may_be_projected else ''}"
            )
    return {name: states.get(name, np.zeros(shape)) for name, shape in shapes.items()}


def _checked(lengths: np.ndarray | None, x: np.ndarray) -> np.ndarray | None:
    if lengths is not None and (lengths.size == 0 or lengths.min() < 1 or lengths.max() > len(x)):
        raise ModelFileError(f"sequence_lens must be 1 to {len(x)}, the steps of x; they are {lengths.tolist()}")
    return lengths
