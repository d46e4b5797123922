"""The table has a row for each program that was measured, and says whether any is too far from its tool."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest
from rich.console import Console

from rnnbench.fidelity import Fidelity, print_fidelity

HOLDS = Fidelity(
    "fake:honest", "looped-stitched", 32, "a tool", 104e-6, 100e-6, 1e-6, 2e-6, 1.04, (1.03, 1.05), 4e-6, "It sleeps."
)


@pytest.mark.parametrize(
    ("ratio", "verdict", "holds"), [(1.04, "holds", True), (1.2, "too far", False), (0.8, "tool slower", True)]
)
def test_a_program_too_far_from_its_tool_is_the_one_failure(ratio: float, verdict: str, holds: bool) -> None:
    text, answer = _printed(replace(HOLDS, ratio=ratio))
    assert answer is holds
    (row,) = [line for line in text.splitlines() if line.startswith("fake:honest looped-stitched")]
    assert f"{ratio:.3f} (1.030 to 1.050)" in row
    assert row.endswith(f"{verdict} (a tool)")


def test_notes_and_reasons_follow_the_table() -> None:
    text, _ = _printed(HOLDS, Fidelity("fake:other", "", 1, unmeasured="there is none"))
    assert "fake:honest at chunk 32: It sleeps." in text
    assert "fake:other at chunk 1: not measured: there is none" in text


def test_a_measurement_that_failed_is_no_success() -> None:
    text, answer = _printed(HOLDS, Fidelity("fake:other", "", 1, unmeasured="died of SIGSEGV", failed=True))
    assert "fake:other at chunk 1: failed: died of SIGSEGV" in text
    assert answer is False


def _printed(*figures: Fidelity) -> tuple[str, bool]:
    output = io.StringIO()
    holds = print_fidelity(figures, Console(file=output, width=200))
    return output.getvalue(), holds
