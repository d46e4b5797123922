"""Kernels whose weights have fewer bits than float32 compute what their dtype says."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from rnnbench.backends.base import Request
from rnnbench.backends.tvm import TvmBackend
from rnnbench.cases.trial import Precision
from rnnbench.rnn.dtypes import rounded
from rnnbench.rnn.reference import run_reference
from rnnbench.rnn.spec import Model
from rnnbench.rnn.weights import draw_inputs

pytest.importorskip("tvm")

Built = Callable[..., Any]
PROJECTED = Model(cell="lstm", input=5, hidden=33, projection=7)
GRU = Model(cell="gru", input=6, hidden=17, layers=2)
RNN = Model(cell="rnn", input=3, hidden=18)
TOLERANCE = {"bfloat16": 2.0**-8, "int8_weights": 2e-6}
"""bfloat16 rounds h and c of each step to 2⁻⁹ of itself, and they are below ½ here. int8 is computed in float32."""


@pytest.mark.first(1)
@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("model", [PROJECTED, GRU, RNN], ids=["lstm", "gru", "rnn"])
def test_any_width_is_right(built: Built, model: Model, dtype: str) -> None:
    """Widths that neither vectors nor pairs of weights divide."""
    program = built("tir", "looped", "stateful", 4, 3, model, 1, dtype)
    steps = 10 if model is RNN else 8  # A rest is a program of its own, of one step: test_product.py has the others'.
    x = rounded(draw_inputs(model, steps, 3, 0), "bfloat16")
    expected = run_reference(model, program.request.weights, x)
    session = program.open()
    y = session.step({"x": x})["y"]
    assert np.abs(y - expected.y).max() <= TOLERANCE[dtype]
    assert np.abs(y).max() > 10 * TOLERANCE[dtype]
    for name, array in session.get_state().items():
        np.testing.assert_allclose(array, expected.final[name], atol=TOLERANCE[dtype])


def test_what_leaves_a_kernel_of_bfloat16_is_bfloat16(built: Built) -> None:
    session = built("tir", "looped", "stateful", 4, 3, PROJECTED, 1, "bfloat16").open()
    y = session.step({"x": rounded(draw_inputs(PROJECTED, 4, 3, 0), "bfloat16")})["y"]
    for array in (y, *session.get_state().values()):
        np.testing.assert_array_equal(array, rounded(array, "bfloat16"))


def test_a_nan_stays_one_when_it_is_rounded(built: Built) -> None:
    session = built("tir", "looped", "stateful", 4, 3, PROJECTED, 1, "bfloat16").open()
    x = rounded(draw_inputs(PROJECTED, 4, 3, 0), "bfloat16")
    x[2, 1] = np.uint32(0x7FFFFFFF).view(np.float32)
    y = session.step({"x": x})["y"]
    assert np.isnan(y[2:, 1]).all()
    assert np.isfinite(y[:, [0, 2]]).all()


@pytest.mark.parametrize(
    ("model", "dtype", "reason"),
    [
        (Model(cell="gru", input=5, hidden=17, reset_after=False), "int8_weights", "one scale"),
        (Model(cell="counter", input=4, hidden=4), "int8_weights", "no weights"),
        (Model(cell="counter", input=4, hidden=4), "int8_dynamic", "no weights"),
        (Model(cell="lstm", input=5, hidden=17, layers=2, direction="bidirectional"), "bfloat16", "two directions"),
    ],
)
def test_what_has_no_narrow_weights_has_a_reason(
    request_for: Callable[..., Request], model: Model, dtype: str, reason: str
) -> None:
    request = request_for("tir", state="none", model=model)
    changed = Request("tir", model, request.weights, request.strategy, 1, Precision.of(dtype))
    support = TvmBackend().support(changed)
    assert support.level == "unsupported"
    assert reason in support.reason
