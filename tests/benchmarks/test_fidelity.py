"""Every program that its runtime can time itself is called from Python as cheaply (minutes; docs/fidelity.md).

What `rnnbench doctor --fidelity` prints, as a test: IREE's and TVM's programs with either state, and at 16 steps a
call, too.
"""

from __future__ import annotations

import pytest

from rnnbench.cases import State, Target
from rnnbench.fidelity import measure_fidelity
from rnnbench.fidelity.measure import CHUNKS, STATES
from rnnbench.plan import parse_targets, probe

CASES = [
    *((target, chunk, (state,)) for target in parse_targets(["iree:linalg", "tvm:tir", "tvm:relax"])
      for chunk in (1, 16, 32) for state in STATES),
    *((target, chunk, STATES) for target in parse_targets(["openvino:*", "torch:*"]) for chunk in CHUNKS),
]  # fmt: skip


@pytest.mark.parametrize(("target", "chunk", "states"), CASES, ids=str)
def test_bound_costs_what_the_runtime_costs(target: Target, chunk: int, states: tuple[State, ...]) -> None:
    if lack := probe(target.backend).lack(target.route):
        pytest.skip(lack.reason)
    (figure,) = measure_fidelity([target], (chunk,), states)
    assert not figure.failed, figure.unmeasured
    if figure.unmeasured:
        pytest.skip(figure.unmeasured)
    print(
        f"\n{figure.target} {figure.strategy} chunk {figure.chunk}: bound {figure.bound * 1e6:.2f} µs, {figure.tool} "
        f"{figure.tool_s * 1e6:.2f} µs, ratio {figure.ratio:.3f} {figure.interval}, difference "
        f"{figure.difference * 1e6:.2f} µs, empty call {figure.empty * 1e6:.2f} µs, "
        f"empty after a call {figure.empty_after_call * 1e6:.2f} µs"
    )
    assert figure.verdict != "too far"
