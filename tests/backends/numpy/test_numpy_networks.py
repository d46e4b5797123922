"""Every network of layers, small, in NumPy's recorded calls: all steps in one call, and a call a step."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from small_networks import COMPOSED, small

from rnnbench.backends.base import Request
from rnnbench.backends.numpy import NumpyBackend
from rnnbench.backends.numpy.network import LayerArrays, LayerCalls
from rnnbench.backends.numpy.recorder import Recorder
from rnnbench.cases.trial import Precision, Strategy
from rnnbench.rnn import LayerBody, draw_inputs, draw_state, draw_weights, run_reference

STEPS, BATCH = 6, 2


@pytest.mark.parametrize("chunk", [1, STEPS])
@pytest.mark.parametrize("name", COMPOSED)
def test_a_network_is_its_reference(tmp_path: Path, name: str, chunk: int) -> None:
    network = small(name)
    weights = draw_weights(network, 0, "float64")
    x, start = draw_inputs(network, STEPS, BATCH, 1, "float64"), draw_state(network, BATCH, 2, "float64")
    request = Request("eager", network, weights, Strategy("looped", "stitched", chunk), BATCH, Precision.of("float64"))
    session = NumpyBackend().build(request, tmp_path).open()
    session.set_state(start)
    y = np.concatenate([session.step({"x": x[step : step + chunk]})["y"] for step in range(0, STEPS, chunk)])
    expected = run_reference(network, weights, x, start)
    np.testing.assert_allclose(y, expected.y, rtol=1e-9, atol=1e-11)
    for key, array in session.get_state().items():
        np.testing.assert_allclose(array, expected.final[key], rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize(
    ("name", "call", "number"), [("kws-crnn", "dot", 7), ("kws-svdf", "reduce", 6), ("mamba2", "matmul", 1)]
)
def test_what_one_call_computes_is_not_many_calls(tmp_path: Path, name: str, call: str, number: int) -> None:
    """A product for each frequency took twice as long. Others are a sum of taps, and a row by the matrices of heads."""
    network = small(name)
    strategy = Strategy("looped", "stitched", 1)
    request = Request("eager", network, draw_weights(network, 0), strategy, 1, Precision.of("float32"))
    assert NumpyBackend().build(request, tmp_path).artifact.operations["compiled"][call] == number


class Delay(LayerBody[Any]):
    """y has the input of two steps before, and the sum before this step."""

    def __init__(self, ops: Any) -> None:
        self.ops = ops

    def project(self, x: Any) -> Any:
        return x

    def advance(self, projected: Any, state: tuple[Any, ...]) -> tuple[Any, tuple[Any, ...]]:
        last, before, total = state
        return self.ops.concat([before, total]), (projected, last, self.ops.add(total, before))


class Delayed(Delay):
    """y is a state as it was before the step."""

    def advance(self, projected: Any, state: tuple[Any, ...]) -> tuple[Any, tuple[Any, ...]]:
        _, new = super().advance(projected, state)
        return state[1], new


@pytest.mark.parametrize("body", [Delay, Delayed])
def test_a_state_that_is_another_one_of_before_the_step_is_not_overwritten(body: type[Delay]) -> None:
    x = np.arange(1.0, 11.0).reshape(5, 1, 2)
    last, before, total = np.zeros((3, 1, 2))
    state, y = (last.copy(), before.copy(), total.copy()), np.zeros((5, 1, 4 if body is Delay else 2))
    recorder = Recorder(x.dtype)
    arrays = LayerArrays(x, state, y, None)
    calls = LayerCalls(recorder, body(recorder), arrays, backward=False, strategy=Strategy("looped", "none", 5))
    for array in state:
        array[...] = 0
    calls()
    for got, projected in zip(y, x, strict=True):
        np.testing.assert_array_equal(got, np.concatenate([before, total], 1)[:, : got.shape[1]])
        last, before, total = projected, last, total + before
    np.testing.assert_array_equal(state, (last, before, total))
