"""The least cost of one call: the bytes that it must read, and the operations that it must do.

Each step multiplies the state by all recurrent weights. They do not fit in registers, so each step reads them again.
One reading of the input's weights may serve many steps, where a program projects many steps at once. Where there are
two ways to count, the lower number counts: biases folded into one, layers run one after the other, nothing written.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from rnnbench.rnn.spec import GATES, Model

_GATING = {"lstm": 9, "gru": 8, "rnn": 1, "counter": 0}
"""Operations on each unit of a step, without the products: activations and the arithmetic between them. An addition to
a product is part of the product. A GRU that resets before its product has one less."""


@dataclass(frozen=True)
class Reading:
    """Bytes that a call reads `times` times. Between two of these readings it reads all of `working_set` bytes."""

    nbytes: int
    working_set: int
    times: int


@dataclass(frozen=True)
class Cost:
    readings: tuple[Reading, ...]
    operations: int
    """Arithmetic operations of one call: a multiply-add is two, an activation one."""
    weights: int
    """Bytes of all weights, biases folded."""

    @property
    def nbytes(self) -> int:
        """Bytes that one call must read: weights as often as necessary, inputs and state once."""
        return sum(reading.nbytes * reading.times for reading in self.readings)


def call_cost(
    model: Model, chunk: int, batch: int, weight_bytes: int = 4, value_bytes: int = 4, hoisted: int | None = None
) -> Cost:
    """The cost of a call of `chunk` steps. A weight has `weight_bytes` bytes; an input or a state, `value_bytes`.

    `hoisted` is how many steps share one reading of the input's weights. None means all steps of the call.
    """
    groups = math.ceil(chunk / min(hoisted or chunk, chunk))
    layers = [model.layer_input(index) for index in range(model.layers) for _ in range(model.directions)]
    sizes = [(_input_weights(model, width) * weight_bytes, _state_weights(model) * weight_bytes) for width in layers]
    weights = sum(map(sum, sizes))
    values = batch * (chunk * model.input + sum(rows * size for rows, _, size in model.state_shapes(1).values()))
    readings = [Reading(weights + values * value_bytes, weights or values * value_bytes, 1)]
    for of_input, of_state in sizes:
        readings.append(Reading(of_input + of_state, of_input + of_state, groups - 1))
        readings.append(Reading(of_state, of_state, chunk - groups))
    operations = chunk * batch * sum(_step_operations(model, width) for width in layers)
    return Cost(tuple(r for r in readings if r.nbytes and r.times), operations, weights)


def _input_weights(model: Model, width: int) -> int:
    """Elements of one layer's input weights in one direction, with the biases that can be added to their product."""
    rows = GATES[model.cell] * model.hidden
    return rows * (width + model.bias)


def _state_weights(model: Model) -> int:
    rows = GATES[model.cell] * model.hidden
    after_reset = model.hidden if model.cell == "gru" and model.reset_after and model.bias else 0
    return rows * model.output + model.projection * model.hidden + after_reset


def _step_operations(model: Model, width: int) -> int:
    """Operations of one step of one layer and direction, for a batch of 1."""
    hidden, rows = model.hidden, GATES[model.cell] * model.hidden
    if model.cell == "counter":
        return hidden
    products = 2 * rows * (width + model.output) + 2 * model.projection * hidden
    gating = _GATING[model.cell] - (model.cell == "gru" and not model.reset_after)
    clipping = (rows if model.clip is not None else 0) + (hidden if model.cell_clip is not None else 0)
    return products + hidden * gating + clipping
