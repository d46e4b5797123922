"""What every RNN session does alike: what a ragged rest runs through, and how arrays lie in memory."""

from __future__ import annotations

import numpy as np
import pytest
from honest_adapter import HonestProgram, HonestSession

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


class NoNegativeStrides(HonestSession):
    """Refuses them, as PyTorch does."""

    def _advance(self, x):
        assert x.flags.c_contiguous
        assert min(x.strides) >= 0
        return super()._advance(x)

    def _write_state(self, state):
        assert all(min(array.strides) >= 0 for array in state.values())
        super()._write_state(state)

    def _bind(self, ring):
        assert all(min(x.strides) >= 0 for x in ring)
        return super()._bind(ring)


@pytest.mark.parametrize("chunk", [1, 2])
def test_a_program_gets_no_array_that_is_reversed_along_a_dimension_of_one(chunk: int) -> None:
    model = Model(cell="lstm", input=1, hidden=1)
    strategy = Strategy("looped", "stitched", chunk)
    request = Request("loop", model, draw_weights(model, 0), strategy, 1, Precision.of("float32"))
    session = NoNegativeStrides(HonestProgram(request, "digest", True, lambda: None))
    x, state = np.ones((chunk, 1, 1), np.float32), np.ones((1, 1, 1), np.float32)
    session.set_state({"h": state[::-1, ::-1, ::-1], "c": state[::-1]})
    reversed_x = x[::-1, ::-1, ::-1]
    session.step({"x": reversed_x})
    session.bind([{"x": reversed_x}])()


def test_a_session_that_is_closed_closes_that_of_its_rest() -> None:
    """Its arrays would otherwise stay as long as the program."""
    closed: list[int] = []

    class Tail(HonestSession):
        def close(self) -> None:
            closed.append(self.request.strategy.chunk)
            super().close()

    class TailProgram(HonestProgram):
        def open(self) -> HonestSession:
            return Tail(self)

    request = Request(
        "loop", LSTM, draw_weights(LSTM, 0), Strategy("looped", "stitched", 2), 1, Precision.of("float32")
    )
    program = HonestProgram(request, "digest", True, lambda: TailProgram(of_one_step(request), "digest", True, None))
    session = program.open()
    session.step({"x": np.ones((3, 1, 2), np.float32)})
    session.close()
    session.close()
    assert closed == [1]
