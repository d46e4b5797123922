"""In IREE, samples together cost less each, and the gain ends (minutes; docs/questions/one-sample-or-several.md)."""

from __future__ import annotations

from pathlib import Path

import pytest
from question_pages import run_page

FRAME_S = 0.010


@pytest.fixture(scope="module")
def per_step(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, int], float]:
    """Seconds per sample of a bound call, by state and chunk."""
    folder: Path = tmp_path_factory.mktemp("one-sample-or-several")
    options = ("--filter", "backend=iree,chunk=1|16|64", "--set", "measure.budget=500ms")
    rows = run_page("one-sample-or-several", folder, *options)
    assert {row["outcome"] for row in rows} == {"ok"}
    return {(str(row["state"]), int(row["chunk"])): float(row["bound_per_step_s"]) for row in rows}  # type: ignore[arg-type]


@pytest.mark.parametrize("state", ["stitched", "stateful"])
def test_a_sample_of_several_costs_less_than_one_alone(per_step: dict[tuple[str, int], float], state: str) -> None:
    assert per_step[state, 16] < per_step[state, 1]


@pytest.mark.parametrize("state", ["stitched", "stateful"])
def test_the_gain_ends(per_step: dict[tuple[str, int], float], state: str) -> None:
    assert per_step[state, 1] / per_step[state, 16] > per_step[state, 16] / per_step[state, 64]


def test_the_delay_that_several_samples_add_is_far_above_what_they_save(per_step: dict[tuple[str, int], float]) -> None:
    saved = 16 * (per_step["stateful", 1] - per_step["stateful", 16])
    assert 100 * saved < 15 * FRAME_S
