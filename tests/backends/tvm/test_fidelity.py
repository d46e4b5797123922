"""The runtime's own tool times the artifact that `bound` calls, and an empty call costs less than either."""

from __future__ import annotations

import pytest

from rnnbench.cases.trial import Target
from rnnbench.fidelity import measure, measure_fidelity


@pytest.mark.proof
def test_bound_and_the_runtimes_own_tool_are_timed_in_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"PROCESSES": 1, "ROUNDS": 2, "TURN_S": 0.02}.items():
        monkeypatch.setattr(measure, name, value)
    (figure,) = measure_fidelity([Target("tvm", "tir")], (2,))
    assert figure.unmeasured == ""
    assert figure.tool == "TVM time_evaluator"
    assert 0 < figure.empty < min(figure.bound, figure.tool_s)
