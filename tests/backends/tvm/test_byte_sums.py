"""Products of bytes: rows are quantised as said, and the sums are those of whole numbers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from rnnbench.backends.base import Request
from rnnbench.backends.shared import VNNI
from rnnbench.backends.tvm import TvmBackend, backend
from rnnbench.cases.trial import Precision
from rnnbench.measure import processor_features
from rnnbench.rnn.arithmetic import Arithmetic
from rnnbench.rnn.quantised import Range
from rnnbench.rnn.reference import run_in
from rnnbench.rnn.spec import Model
from rnnbench.rnn.weights import draw_inputs, draw_state

pytest.importorskip("tvm")

Built = Callable[..., Any]
MODELS = {
    "lstm": Model(cell="lstm", input=5, hidden=33, layers=2),
    "projected": Model(cell="lstm", input=32, hidden=40, projection=7),
    "gru": Model(cell="gru", input=6, hidden=17, layers=2),
    "rnn": Model(cell="rnn", input=3, hidden=18, bias=False),
    "longer than the innermost cache": Model(cell="lstm", input=5, hidden=520),
}
ROUNDING = 3e-6
"""Of float32, in the gates: what is quantised and summed up is the same to the bit, but where a value lies between two
bytes and rounding decides."""
needs_vnni = pytest.mark.skipif(
    not processor_features() & VNNI, reason="this processor has no instruction for products of bytes (VNNI)"
)


class ByRow(Arithmetic):
    """Rows of 8 bits with a sign, each with a range of its own. Fixed ranges are those of the matrix."""

    def __init__(self) -> None:
        super().__init__("float32")

    def _entering(self, x: np.ndarray, operand: Range | None) -> np.ndarray:
        if operand is not None:
            return operand.nearest(x)
        largest = np.maximum(np.abs(x).max(axis=-1, keepdims=True), np.float32(1e-30))
        entering: np.ndarray = np.rint(x * (np.float32(127) / largest)) * (largest * np.float32(1 / 127))
        return entering


@needs_vnni
@pytest.mark.parametrize(
    ("dtype", "name", "chunk", "batch"),
    [
        *(("int8_dynamic", name, 3, 7) for name in MODELS),
        *(("int8_static", name, 3, 7) for name in ("projected", "gru")),
        *(("int8_dynamic", "longer than the innermost cache", 1, 1), ("int8_static", "rnn", 1, 1)),
    ],
)
def test_a_kernel_computes_what_its_bytes_say(built: Built, dtype: str, name: str, chunk: int, batch: int) -> None:
    model = MODELS[name]
    program = built("tir", "looped", "stateful", chunk, batch, model, 1, dtype)
    x, state = draw_inputs(model, 3, batch, 0), draw_state(model, batch, 0)
    session = program.open()
    session.set_state(state)
    y = np.concatenate([session.step({"x": x[i : i + chunk]})["y"] for i in range(0, 3, chunk)])
    expected = run_in(ByRow(), model, program.request.weights, x, state)
    step = 1 / 127 * np.abs(program.request.weights.layers[-1].w_hh).max()
    wrong = np.abs(y - expected.y)
    assert np.quantile(wrong, 0.9) < ROUNDING
    assert wrong.max() < step
    assert program.artifact.int8_operations


@needs_vnni
def test_a_row_has_a_range_of_its_own(built: Built) -> None:
    """A row of large values leaves the others as exact as they were."""
    model = MODELS["lstm"]
    session = built("tir", "looped", "stateful", 3, 7, model, 1, "int8_dynamic").open()
    x, state = draw_inputs(model, 3, 7, 0).copy(), draw_state(model, 7, 0)
    session.set_state(state)
    before = session.step({"x": x})["y"]
    x[:, 2] *= 1e6
    session.set_state(state)
    after = session.step({"x": x})["y"]
    others = [row for row in range(7) if row != 2]
    np.testing.assert_array_equal(after[:, others], before[:, others])
    assert (after[:, 2] != before[:, 2]).any()


@needs_vnni
def test_zeros_and_tiny_values_have_a_scale(built: Built) -> None:
    model = MODELS["gru"]
    session = built("tir", "looped", "stateful", 3, 7, model, 1, "int8_dynamic").open()
    x = np.zeros((3, 7, model.input), np.float32)
    zero = session.step({"x": x})["y"]
    assert np.isfinite(zero).all()
    session.reset()
    x[:] = 1e-40
    np.testing.assert_array_equal(session.step({"x": x})["y"], zero)


@needs_vnni
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_what_has_no_range_is_not_lost(built: Built, value: float) -> None:
    model = MODELS["lstm"]
    session = built("tir", "looped", "stateful", 3, 7, model, 1, "int8_dynamic").open()
    x = draw_inputs(model, 3, 7, 0).copy()
    x[1, 4, 3] = value
    y = session.step({"x": x})["y"]
    assert np.isnan(y[1:, 4]).all()
    assert np.isfinite(y[:, [0, 1, 2, 3, 5, 6]]).all()


@needs_vnni
@pytest.mark.parametrize(("dtype", "chunk"), [("int8_dynamic", 1), ("int8_static", 3)])
def test_threads_share_rows_that_one_of_them_quantised(built: Built, dtype: str, chunk: int) -> None:
    model = Model(cell="lstm", input=32, hidden=96, layers=2)
    x, state = draw_inputs(model, 3, 2, 0), draw_state(model, 2, 0)
    found = []
    for threads in (1, 2):
        session = built("tir", "looped", "stateful", chunk, 2, model, threads, dtype).open()
        session.set_state(state)
        found.append(np.concatenate([session.step({"x": x[i : i + chunk]})["y"] for i in range(0, 3, chunk)]))
    np.testing.assert_array_equal(*found)


@pytest.mark.parametrize("features", [frozenset({"avx2", "fma"}), frozenset()])
def test_a_processor_without_the_instruction_is_told(
    request_for: Callable[..., Request], monkeypatch: pytest.MonkeyPatch, features: frozenset[str]
) -> None:
    monkeypatch.setattr(backend, "processor_features", lambda: features)
    request = replace(request_for("tir", state="none"), precision=Precision.of("int8_dynamic"))
    support = TvmBackend().support(request)
    assert support.level == "unsupported"
    assert "AVX512-VNNI" in support.reason
