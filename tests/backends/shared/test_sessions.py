"""What every RNN session does alike: here, what a ragged rest runs through."""

from __future__ import annotations

import pytest

from rnnbench.backends.base import Request
from rnnbench.backends.shared import of_one_step
from rnnbench.cases.trial import Precision, Strategy
from rnnbench.rnn.spec import Model
from rnnbench.rnn.weights import draw_weights

LSTM = Model(cell="lstm", input=2, hidden=3)


@pytest.mark.parametrize(
    ("time", "rest"),
    [
        ("fused", "fused"),
        ("looped", "looped"),
        ("unrolled", "unrolled"),
        ("unrolled:2", "unrolled"),
        ("parallel", "parallel"),
        ("chunked:2", "parallel"),
    ],
)
def test_a_rest_is_one_step_of_the_same_kind_and_never_several_copies(time: str, rest: str) -> None:
    request = Request("loop", LSTM, draw_weights(LSTM, 0), Strategy(time, "stitched", 4), 1, Precision.of("float32"))
    assert of_one_step(request).strategy == Strategy(rest, "stitched", 1)
