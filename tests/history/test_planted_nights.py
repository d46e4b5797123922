"""The nights of `make bench-change_points`: a few of them, in which a planted step is found."""

from __future__ import annotations

import nights
import numpy as np
import pytest

from rnnbench.history.change_points import SCREEN
from rnnbench.history.changes import changes_of


def test_a_step_that_is_planted_into_nights_of_real_processes_is_found() -> None:
    step = nights.Planted(trial=3, night=40, percent=10)
    made = nights.make(20, 80, 0, [step], machine=False)
    found = [change for change in changes_of("", nights.trials_of(made), SCREEN) if change.level == "trial"]
    assert [(change.subject, change.ratio > 1, change.cause) for change in found] == [("3", True, "program")]
    assert abs(nights.night_of(found[0].night) - step.night) <= 3


@pytest.mark.parametrize("pool", nights.POOLS)
def test_the_processes_of_a_pool_of_nights_are_of_one_level(pool: str) -> None:
    for side in nights.sessions(pool, 0):
        assert 1.4826 * np.median(np.abs(side - np.median(side))) < 0.015
