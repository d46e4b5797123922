"""`tensorflow:graph`, fused: one operator of TensorFlow's for all steps of a layer and direction of an LSTM."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from mixed_network import built_and_right
from quick_tests import for_proof

from rnnbench.backends.tensorflow import TensorflowBackend

NO_PROJECTION = "no projection, no clip and no other activations"


@pytest.mark.parametrize(
    ("options", "operators"),
    [
        ({"layers": 2, "bias": False, "cell_clip": 0.1}, 2),
        *for_proof(
            ({"state": "stateful", "chunk": 1}, 1),
            ({"state": "none", "direction": "bidirectional", "layers": 2}, 4),
            ({"state": "none", "direction": "reverse"}, 1),
        ),
    ],
    ids=str,
)
def test_an_lstm_is_an_operator_for_each_layer_and_direction(
    ask, folder: Path, options: dict[str, Any], operators: int
) -> None:
    request = ask("graph", time="fused", **options)
    artifact = built_and_right(TensorflowBackend(), request, folder, rest=0).artifact
    assert artifact.lowered == "fused"
    assert artifact.operations["compiled"]["BlockLSTMV2"] == operators
    assert artifact.origin == "library"


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"cell": "gru"}, "for LSTMs alone"),
        ({"projection": 9}, NO_PROJECTION),
        ({"clip": 0.5}, NO_PROJECTION),
        ({"activation": "relu"}, NO_PROJECTION),
        ({"dtype": "float64"}, "no kernel for float64"),
    ],
    ids=str,
)
def test_what_the_operator_lacks_is_unsupported(ask, options: dict[str, Any], told: str) -> None:
    answer = TensorflowBackend().support(ask("graph", time="fused", **options))
    assert answer.level == "unsupported"
    assert told in answer.reason


@pytest.mark.parametrize(
    ("route", "changed", "told"),
    [
        ("xla", {}, "It is on the route graph"),
        ("graph", {"device": "cuda"}, "on the route keras"),
        ("graph", {"ragged": True}, "one length for all rows"),
    ],
)
def test_other_routes_devices_and_lengths_are_told(ask, route: str, changed: dict[str, Any], told: str) -> None:
    answer = TensorflowBackend().support(replace(ask(route, time="fused"), **changed))
    assert answer.level == "unsupported"
    assert told in answer.reason
