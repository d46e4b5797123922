"""The runtime's own tool times the artifact that `bound` calls, and an empty call costs less than either."""

from __future__ import annotations

import pytest

from rnnbench.cases.trial import State, Target
from rnnbench.run import fidelity


@pytest.mark.parametrize("state", ["stitched", "stateful"])
def test_bound_and_the_runtimes_own_tool_are_timed_in_turn(monkeypatch: pytest.MonkeyPatch, state: State) -> None:
    for name, value in {"PROCESSES": 1, "ROUNDS": 2, "PIECE_S": 0.02}.items():
        monkeypatch.setattr(fidelity, name, value)
    (figure,) = fidelity.measure([Target("openvino", "onnx")], (2,), (state,))
    assert figure.untimed == ""
    assert figure.tool == "benchmark_app"
    assert 0 < figure.empty < min(figure.bound, figure.own)
