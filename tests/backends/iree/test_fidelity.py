"""The runtime's own tool times the artifact that `bound` calls, and an empty call costs less than either."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from rnnbench.backends import NoToolError
from rnnbench.backends.iree.runtime import IreeProgram
from rnnbench.backends.iree.timing_tool import own_tool
from rnnbench.cases.trial import Target
from rnnbench.fidelity import measure, measure_fidelity


@pytest.mark.proof
def test_bound_and_the_runtimes_own_tool_are_timed_in_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"PROCESSES": 1, "ROUNDS": 2, "TURN_S": 0.02}.items():
        monkeypatch.setattr(measure, name, value)
    (figure,) = measure_fidelity([Target("iree", "linalg")], (2,))
    assert figure.unmeasured == ""
    assert figure.tool == "iree-benchmark-module"
    assert 0 < figure.empty < min(figure.bound, figure.tool_s)


@pytest.mark.parametrize(
    ("route", "kind", "asked", "why"),
    [
        ("onnx", IreeProgram, {}, "as iree:linalg, which is timed"),
        ("linalg", SimpleNamespace, {}, "as iree:linalg, which is timed"),
        ("linalg", IreeProgram, {"threads": 2}, "on one thread"),
        ("linalg", IreeProgram, {"device": "vulkan"}, "on the processor alone"),
    ],
)
def test_what_the_tool_does_not_time_is_refused(
    tmp_path: Path, route: str, kind: type, asked: dict[str, object], why: str
) -> None:
    request = SimpleNamespace(**{"route": route, "threads": 1, "device": "cpu", **asked})
    with pytest.raises(NoToolError, match=why):
        own_tool(kind.__new__(kind), request, tmp_path)
