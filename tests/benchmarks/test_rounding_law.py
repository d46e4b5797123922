"""Expected rounding of a long run is carried on rightly from its first steps (minutes; docs/tolerance.md).

For each network and dtype it prints how many steps were measured. Then comes what the law makes of them at the last
step, as a multiple of what a measurement of all steps gives there. The last figure is an honest run's own error, as a
multiple of the expectation.
"""

from __future__ import annotations

import numpy as np
import pytest

from rnnbench.conformance import rounding as module
from rnnbench.conformance.rounding import Y, expected_rounding
from rnnbench.rnn.reference import run_reference
from rnnbench.rnn.spec import Model
from rnnbench.rnn.weights import draw_inputs, draw_weights

LAW = (1 / 4, 16)
"""What the law may be off by, below and above: a tolerance is 16 times what is expected, and honest errors a half."""


@pytest.mark.parametrize(
    ("model", "steps", "dtype"),
    [
        (Model(cell="lstm", input=16, hidden=32), 10_000, "float32"),
        (Model(cell="lstm", input=16, hidden=32), 10_000, "bfloat16"),
        (Model(cell="gru", input=16, hidden=32, layers=2), 4_000, "float32"),
        (Model(cell="gru", input=16, hidden=32), 4_000, "float16"),
        (Model(cell="rnn", input=16, hidden=64), 10_000, "float64"),
        (Model(cell="rnn", input=16, hidden=64, activation="relu"), 10_000, "float32"),
        (Model(cell="rnn", input=16, hidden=1), 10_000, "float32"),
        (Model(cell="lstm", input=64, hidden=512), 512, "float32"),
        (Model(cell="gru", input=64, hidden=1_024), 128, "float32"),
        (Model(cell="lstm", input=64, hidden=2_048), 32, "float32"),
    ],
    ids=lambda value: f"{value.cell}-{value.layers}x{value.hidden}" if isinstance(value, Model) else str(value),
)
def test_the_law_holds(model: Model, steps: int, dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    weights, x = draw_weights(model, 0, dtype), draw_inputs(model, steps, 1, 0, dtype)
    if model.hidden >= 1_024:
        monkeypatch.setattr(module, "FEWEST_STEPS", 8)
    carried = expected_rounding(model, weights, x, None, dtype, 0)[Y]
    monkeypatch.setattr(module, "MEASURED_STEPS", steps)
    monkeypatch.setattr(module, "WORK", np.inf)
    monkeypatch.setattr(module, "FEWEST_STEPS", steps)
    measured = expected_rounding(model, weights, x, None, dtype, 0)[Y]
    honest = run_reference(model, weights, x, dtype=dtype, summation=9).y - run_reference(model, weights, x).y
    law = carried.at(steps - 1).max() / measured.at(steps - 1).max()
    error = np.abs(honest).max() / measured.at(steps - 1).max()
    print(f"\n{len(carried.measured)} of {steps} steps measured; law / measured {law:.2f}; honest {error:.2f}")
    assert len(carried.measured) < steps
    assert LAW[0] <= law <= LAW[1]
    assert error <= 2
