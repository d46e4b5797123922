"""A row for each program that was timed, in words; and whether any is too far from its tool."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest
from rich.console import Console

from rnnbench.fidelity import Fidelity, print_fidelity

HOLDS = Fidelity(
    "fake:honest",
    "looped-stitched",
    32,
    tool="a tool",
    bound=104e-6,
    tool_s=100e-6,
    empty=1e-6,
    empty_after_call=2e-6,
    ratio=1.04,
    interval=(1.03, 1.05),
    difference=4e-6,
    note="It sleeps.",
)


@pytest.mark.parametrize(
    ("ratio", "verdict", "fine"), [(1.04, "holds", True), (1.2, "too far", False), (0.8, "tool slower", True)]
)
def test_a_program_too_far_from_its_tool_is_the_one_failure(ratio: float, verdict: str, fine: bool) -> None:
    said, answer = _printed(replace(HOLDS, ratio=ratio))
    assert answer is fine
    (row,) = [line for line in said.splitlines() if line.startswith("fake:honest looped-stitched")]
    assert f"{ratio:.3f} (1.030 to 1.050)" in row
    assert row.endswith(f"{verdict} (a tool)")


def test_what_a_tool_does_beside_and_what_has_none_is_said() -> None:
    said, _ = _printed(HOLDS, Fidelity("fake:other", "", 1, unmeasured="there is none"))
    assert "fake:honest at chunk 32: It sleeps." in said
    assert "fake:other at chunk 1: not measured: there is none" in said


def _printed(*figures: Fidelity) -> tuple[str, bool]:
    out = io.StringIO()
    fine = print_fidelity(figures, Console(file=out, width=200))
    return out.getvalue(), fine
