"""A model that makes no sense is refused with a sentence; sizes follow from the spec."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from rnnbench.rnn import Model

SIZES = {"input": 4, "hidden": 8}


@pytest.mark.parametrize(
    ("fields", "complaint"),
    [
        ({"cell": "gru", "projection": 2}, "a gru has none"),
        ({"cell": "lstm", "projection": 8}, "projection 8 must be smaller than hidden 8"),
        ({"cell": "lstm", "reset_after": False}, "reset_after belongs to a gru"),
        ({"cell": "counter", "hidden": 4, "activation": "relu"}, "a counter has no activation"),
        ({"cell": "rnn", "recurrent_activation": "hard_sigmoid"}, "gates of an lstm or gru, and this is a rnn"),
        ({"cell": "gru", "cell_clip": 1.0}, "bounds an lstm's cell state"),
        ({"cell": "counter", "hidden": 4, "clip": 1.0}, "a counter has none"),
        ({"cell": "counter"}, "one size, not 4 and 8"),
        ({"cell": "counter", "hidden": 4, "layers": 2}, "one layer"),
        ({"cell": "counter", "hidden": 4, "direction": "reverse"}, "runs forward"),
        ({"cell": "counter", "hidden": 4, "gain": 2.0}, "gain scales weights"),
        ({"cell": "lstm", "clip": 0.0}, "greater than 0"),
        ({"cell": "lstm", "clip": float("inf")}, "finite"),
        ({"cell": "lstm", "hiden": 8}, "Extra inputs"),
        ({"cell": "lstm", "hidden": 0}, "greater than or equal to 1"),
    ],
)
def test_a_senseless_model_is_refused(fields: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ValidationError, match=complaint):
        Model(**{**SIZES, **fields})


def test_state_and_output_sizes_follow_projection_and_direction() -> None:
    model = Model(cell="lstm", input=4, hidden=8, projection=3, layers=2, direction="bidirectional")
    assert model.width == 6
    assert [model.layer_input(layer) for layer in range(2)] == [4, 6]
    assert model.state_shapes(batch=5) == {"h": (4, 5, 3), "c": (4, 5, 8)}


def test_only_an_lstm_carries_a_cell_state() -> None:
    assert list(Model(cell="gru", **SIZES).state_shapes(1)) == ["h"]


@pytest.mark.parametrize(
    ("fields", "smaller"),
    [
        (
            {"cell": "gru", "input": 6, "hidden": 8, "layers": 4},
            [{"layers": 2}, {"hidden": 4}, {"input": 3}],
        ),
        ({"cell": "lstm", "input": 6, "hidden": 8, "projection": 3}, [{"input": 3}]),
        ({"cell": "counter", "input": 6, "hidden": 6}, [{"input": 3, "hidden": 3}]),
        ({"cell": "rnn", "input": 1, "hidden": 1}, []),
    ],
)
def test_smaller_halves_one_size_at_a_time(fields: dict[str, Any], smaller: list[dict[str, int]]) -> None:
    assert list(Model(**fields).smaller()) == [Model(**{**fields, **halves}) for halves in smaller]
