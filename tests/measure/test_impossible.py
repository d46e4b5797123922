"""A time that cannot be is told, and one that may be is not: what a worker says is held against the suite's wait."""

from __future__ import annotations

import numpy as np
import pytest

from rnnbench.measure import Block, exceeds_wait, impossible_block, outside_wall_clock
from rnnbench.measure.impossible import STEPPED_S, WAIT_S, impossible_seconds


@pytest.mark.parametrize(
    ("named", "is_told"),
    [
        ({"its import": 0.9, "its load": 0.1}, False),
        ({"its import": 0.9, "its load": 0.2}, True),
        ({"its import": 1.0 + WAIT_S / 2}, False),
        ({"its import": 1.0 + 2 * WAIT_S}, True),
        ({"its import": 0.5, "its load": None}, False),
    ],
    ids=["all of it", "more than all of it", "by the clock's steps", "by more than these", "one was not measured"],
)
def test_parts_of_a_wait_are_no_longer_than_it(named: dict[str, float | None], is_told: bool) -> None:
    told = exceeds_wait(named, 1.0)
    assert bool(told) == is_told
    assert not told or f"{' and '.join(named)} took" in told


def test_a_part_that_is_no_time_is_told_whatever_the_others_are() -> None:
    assert exceeds_wait({"its import": -1.0, "its load": 0.5}, 1.0) == "its import is -1 s"
    assert impossible_seconds({"one": None, "other": float("nan")}) == "other is nan s"
    assert impossible_seconds({"one": None, "other": 0.0}) == ""


@pytest.mark.parametrize("turned", [False, True])
def test_a_block_begins_within_its_command_whichever_way_the_clock_was_set(turned: bool) -> None:
    began, ended = (20.0, 10.0) if turned else (10.0, 20.0)
    for start in (10.0 - STEPPED_S, 15.0, 20.0 + STEPPED_S):
        assert outside_wall_clock(start, began, ended) == ""
    for start in (9.9 - STEPPED_S, 20.1 + STEPPED_S):
        assert "from the moment" in outside_wall_clock(start, began, ended)


def test_samples_of_several_calls_have_the_time_of_all_of_them() -> None:
    block = Block(0.0, 0, np.full(10, 1e-3), 4, elapsed=0.045)
    assert impossible_block(block, 4) == ""
    assert "take 0.04 s together" in impossible_block(Block(0.0, 0, np.full(10, 1e-3), 4, elapsed=0.035), 4)


@pytest.mark.parametrize("seconds", [0.0, -1.0, 5e-324, 1e-13])
def test_a_call_takes_longer_than_any_clock_can_show(seconds: float) -> None:
    """A ratio to such a time is no number."""
    assert "a call takes longer than 0 s" in impossible_block(Block(0.0, 0, np.array([1e-6, seconds]), elapsed=1.0))
