"""A row for each program that was timed, in words; and whether any is too far from its tool."""

from __future__ import annotations

import io
from dataclasses import dataclass, replace

import pytest
from rich.console import Console

from rnnbench.reports.doctor import print_fidelity


@dataclass(frozen=True)
class Fidelity:
    """What the table reads of a program and its runtime's tool."""

    target: str
    strategy: str
    chunk: int
    tool: str = ""
    bound: float = 0.0
    own: float = 0.0
    empty: float = 0.0
    swept: float = 0.0
    ratio: float = 0.0
    interval: tuple[float, float] | None = None
    difference: float = 0.0
    note: str = ""
    untimed: str = ""
    verdict: str | None = None


HOLDS = Fidelity(
    "fake:honest",
    "looped-stitched",
    32,
    tool="a tool",
    bound=104e-6,
    own=100e-6,
    empty=1e-6,
    swept=2e-6,
    ratio=1.04,
    interval=(1.03, 1.05),
    difference=4e-6,
    note="It sleeps.",
    verdict="holds",
)


@pytest.mark.parametrize(
    ("ratio", "verdict", "fine"), [(1.04, "holds", True), (1.2, "too far", False), (0.8, "tool slower", True)]
)
def test_a_program_too_far_from_its_tool_is_the_one_failure(ratio: float, verdict: str, fine: bool) -> None:
    said, answer = _printed(replace(HOLDS, ratio=ratio, verdict=verdict))
    assert answer is fine
    (row,) = [line for line in said.splitlines() if line.startswith("fake:honest looped-stitched")]
    assert f"{ratio:.3f} (1.030 to 1.050)" in row
    assert row.endswith(f"{verdict} (a tool)")


def test_what_a_tool_does_beside_and_what_has_none_is_said() -> None:
    said, _ = _printed(HOLDS, Fidelity("fake:other", "", 1, untimed="there is none"))
    assert "fake:honest at chunk 32: It sleeps." in said
    assert "fake:other at chunk 1: not timed: there is none" in said


def _printed(*figures: Fidelity) -> tuple[str, bool]:
    out = io.StringIO()
    fine = print_fidelity(figures, Console(file=out, width=200), 1.05, 0.05)
    return out.getvalue(), fine
