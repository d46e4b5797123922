"""The nights of `make bench-change_points`: a few of them, in which a planted step is found."""

from __future__ import annotations

import nights
import numpy as np
import pytest

from rnnbench.history.change_points import PUBLISH, SCREEN
from rnnbench.history.changes import changes_of


def test_a_step_that_is_planted_into_nights_of_real_processes_is_found() -> None:
    step = nights.Planted(trial=3, night=40, percent=10)
    made = nights.make(20, 80, 0, [step], machine=False)
    found = [change for change in changes_of("", nights.trials_of(made), SCREEN) if change.level == "trial"]
    assert [(change.subject, change.ratio > 1, change.cause) for change in found] == [("3", True, "program")]
    assert abs(nights.night_of(found[0].night) - step.night) <= 3


@pytest.mark.parametrize(
    ("backends", "slower", "screened", "published"),
    [(1, 0.0, "program", []), (1, 0.1, "program", ["program"]), (2, 0.0, "environment", ["environment"])],
    ids=["anchors or program", "both", "the anchors"],
)
def test_where_anchors_moved_and_one_backend_alone_did_not_a_measurement_has_to_tell(
    backends: int, slower: float, screened: str, published: list[str]
) -> None:
    """The anchors became 5 % faster: another machine, on which the backend is slower, or the anchors alone?"""
    values = np.random.default_rng(1).normal(0, 0.005, (3 * nights.BACKENDS, 90))
    backend = np.arange(len(values)) % nights.BACKENDS
    values[backend > backends] = np.nan
    values[backend == 0, 45:] -= 0.05
    values[backend == 1, 45:] += slower
    trials = nights.trials_of(nights.Nights(values, ()))
    for criteria, causes in ((SCREEN, [screened]), (PUBLISH, published)):
        found = changes_of("", trials, criteria)
        assert [change.cause for change in found if (change.level, change.subject) == ("backend", "1")] == causes


@pytest.mark.parametrize("pool", nights.POOLS)
def test_the_processes_of_a_pool_of_nights_are_of_one_level(pool: str) -> None:
    for side in nights.sessions(pool, 0):
        assert 1.4826 * np.median(np.abs(side - np.median(side))) < 0.015
