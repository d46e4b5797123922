"""A few of many trials: all pairs of values, or all values, are still there."""

from __future__ import annotations

from itertools import combinations

from rnnbench.cases import Target
from rnnbench.cases.thin import every_pair, every_value

AXES = {
    "hidden": lambda trial: trial.model.hidden,
    "time": lambda trial: trial.strategy.time,
    "chunk": lambda trial: trial.strategy.chunk,
}


def test_every_value_is_there_and_few_trials_are(load):
    trials = load().trials([Target("fake", "honest")])
    assert len(trials) == 8
    chosen = every_value(trials)
    assert len(chosen) == 2
    for value in AXES.values():
        assert set(map(value, chosen)) == set(map(value, trials))


def test_every_pair_of_values_is_there_in_half_of_the_trials(load):
    trials = load().trials([Target("fake", "honest")])
    chosen = every_pair(trials)
    assert len(chosen) == 4
    assert chosen == [trial for trial in trials if trial in chosen], "in their order"
    for one, other in combinations(AXES.values(), 2):
        assert {(one(trial), other(trial)) for trial in chosen} == {(one(trial), other(trial)) for trial in trials}


def test_one_trial_stays(load):
    trials = load().trials([Target("fake", "honest")])[:1]
    assert every_pair(trials) == every_value(trials) == trials


def test_of_nothing_nothing_is_chosen():
    assert every_pair([]) == every_value([]) == []
