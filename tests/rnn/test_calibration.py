"""Static ranges: those of the reference's own operands, one for each matrix of each layer."""

from __future__ import annotations

import numpy as np
import pytest

from rnnbench.rnn import Model, draw_inputs, draw_state, draw_weights, run_reference
from rnnbench.rnn.calibration import ROWS, STEPS
from rnnbench.rnn.weights import Weights

LSTM = Model(cell="lstm", input=8, hidden=24, layers=2)


def test_a_range_is_what_an_operand_reaches_from_a_state_that_is_not_zero() -> None:
    weights = draw_weights(LSTM, 3, "int8_static")
    x, state = draw_inputs(LSTM, STEPS, ROWS, 3), draw_state(LSTM, ROWS, 3)
    run = run_reference(LSTM, draw_weights(LSTM, 3, "int8_dynamic"), x, state)
    assert run.states is not None
    h = np.concatenate([state["h"][None], run.states["h"][:-1]])
    for layer, operand, name in ((0, x, "w_ih"), (0, h[:, 0], "w_hh"), (1, h[1:, 0], "w_ih"), (1, h[:, 1], "w_hh")):
        found = weights.layers[layer].ranges[name]
        assert found.low == pytest.approx(operand.min(), abs=found.scale)
        assert found.high == pytest.approx(operand.max(), abs=2 * found.scale)


@pytest.mark.parametrize(
    "model",
    [
        Model(cell="lstm", input=5, hidden=9, projection=3, direction="bidirectional", layers=2),
        Model(cell="gru", input=5, hidden=9, reset_after=False, direction="reverse"),
        Model(cell="rnn", input=5, hidden=9, activation="relu"),
    ],
)
def test_every_matrix_has_a_range_in_every_direction(model: Model) -> None:
    for layer in draw_weights(model, 0, "int8_static").layers:
        assert layer.ranges.keys() == {"w_ih", "w_hh"} | ({"w_hr"} if model.projection else set())


def test_ranges_are_part_of_the_weights_digest() -> None:
    static, dynamic = (draw_weights(LSTM, 0, dtype) for dtype in ("int8_static", "int8_dynamic"))
    assert not any(layer.ranges for layer in dynamic.layers)
    assert static.digest(LSTM) != dynamic.digest(LSTM) == Weights(dynamic.layers).digest(LSTM)
    assert static.digest(LSTM) == draw_weights(LSTM, 0, "int8_static").digest(LSTM)
