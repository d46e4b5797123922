"""A few of many trials: all pairs of values, or all values, are still there."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from random import Random

from harness_trials import make_trial

from rnnbench.cases import Limits, Target, covering, every_pair, every_value
from rnnbench.cases.covering import cost, greedy

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


def test_targets_share_the_pairs_and_each_has_every_value(load):
    targets = [Target("fake", "honest"), Target("fake", "check-raises")]
    trials = load().trials(targets)
    chosen = every_pair(trials)
    assert len(chosen) < sum(len(every_pair([trial for trial in trials if trial.target == t])) for t in targets)
    for one, other in combinations(AXES.values(), 2):
        assert {(one(trial), other(trial)) for trial in chosen} == {(one(trial), other(trial)) for trial in trials}
    for target in targets:
        for value in AXES.values():
            assert {value(trial) for trial in chosen if trial.target == target} == set(map(value, trials))


def test_targets_share_the_values_and_each_has_those_of_the_strategy(load):
    targets = [Target("fake", "honest"), Target("fake", "check-raises")]
    trials = load().trials(targets)
    chosen = every_value(trials)
    assert set(map(AXES["hidden"], chosen)) == set(map(AXES["hidden"], trials))
    for target in targets:
        for key in ("time", "chunk"):
            assert {AXES[key](trial) for trial in chosen if trial.target == target} == set(map(AXES[key], trials))


def test_a_single_trial_is_its_own_covering(load):
    trials = load().trials([Target("fake", "honest")])[:1]
    assert every_pair(trials) == every_value(trials) == trials


def test_each_target_has_a_trial_of_a_case_of_one_point(load):
    targets = [Target("fake", "honest"), Target("fake", "check-raises")]
    one_each = [load().trials([target])[0] for target in targets]
    assert every_pair(one_each) == every_value(one_each) == one_each


def test_of_nothing_nothing_is_chosen():
    assert every_pair([]) == every_value([]) == []


def test_small_programs_come_before_large_ones():
    large, long, short, small = (
        make_trial(time=time, chunk=chunk)
        for time, chunk in (("unrolled", 8), ("looped", 8), ("looped", 1), ("unrolled", 1))
    )
    assert every_value([large, long, short, small]) == [long, small]


def test_a_program_of_one_step_for_the_rest_of_a_call_costs_something():
    with_rest = make_trial(state="stitched", chunk=4)
    assert cost(make_trial(state="none", chunk=4)) == cost(make_trial(state="stitched", chunk=1)) < cost(with_rest)


def test_what_others_have_made_superfluous_goes():
    first = make_trial(chunk=1)
    others = [replace(make_trial(chunk=2), batch=2), make_trial("fake:honest", "unrolled", "stateful", 1)]
    assert every_value([first, *others]) == others


def test_what_checks_that_go_on_for_long_may_take_is_a_value():
    short, long = (make_trial(limits=Limits(endurance=seconds)) for seconds in (0.05, 1.0))
    assert len(every_value([short, replace(long, case="another")])) == 2


def test_all_turns_of_the_checks_are_a_value_beside_those_that_are_enough_and_each_slow_route_has_it():
    few, all_turns = (make_trial(limits=Limits(endurance=1.0, enough=enough)) for enough in (0.05, None))
    others = [
        make_trial(target, limits=of.limits) for target in ("fake:honest", "fake:other") for of in (few, all_turns)
    ]
    assert every_value(others) == others


def test_the_values_of_a_single_key_are_all_there():
    trials = [make_trial(chunk=chunk) for chunk in (2, 3, 4)]
    assert every_pair(trials) == trials


def test_each_step_takes_the_first_of_those_that_gain_most():
    """The choice is the same on every machine, so that the shards of a plan are shards of one choice."""
    draw = Random(0)
    for _ in range(200):
        covers = [draw.getrandbits(12) & draw.getrandbits(12) | 1 << draw.randrange(12) for _ in range(10)]
        costs, chosen = [draw.randint(1, 3) for _ in covers], []
        all_things = 0
        for each in covers:
            all_things |= each
        uncovered = all_things
        while uncovered:
            gains = [(each & uncovered).bit_count() / cost for each, cost in zip(covers, costs, strict=True)]
            chosen.append(gains.index(max(gains)))
            uncovered &= ~covers[chosen[-1]]
        for index in sorted(chosen, key=costs.__getitem__, reverse=True):
            others = 0
            for other in chosen:
                others |= covers[other] if other != index else 0
            if others == all_things:
                chosen.remove(index)
        assert greedy(covers, costs, []) == chosen


def test_a_cost_is_the_copies_of_a_layer_and_of_a_build_also_for_the_rest_of_a_call():
    one_step, four = make_trial(state="stitched", chunk=1), make_trial(state="none", chunk=4)
    assert cost(make_trial(state="stitched", chunk=4)) == cost(four) + cost(one_step)
    copies = {time: cost(make_trial(time=time, state="none", chunk=8)) for time in ("looped", "unrolled:4", "unrolled")}
    assert copies["unrolled:4"] - copies["looped"] == 3
    assert copies["unrolled"] - copies["looped"] == 7
    layers = make_trial().model.model_copy(update={"layers": 3})
    assert cost(replace(one_step, model=layers)) == cost(one_step) + 2
    assert cost(replace(make_trial(time="unrolled", state="none", chunk=8), model=layers)) == copies["unrolled"] + 16


def test_each_target_has_every_cell_and_every_state(load):
    targets = [Target("fake", "honest"), Target("fake", "check-raises")]
    trials = load("lstm,", "[lstm, gru],").trials(targets)
    states = [replace(trial, strategy=replace(trial.strategy, state="stateful")) for trial in trials]
    chosen = every_value([*trials, *states])
    for target in targets:
        mine = [trial for trial in chosen if trial.target == target]
        assert {trial.model.cell for trial in mine} == {"lstm", "gru"}
        assert {trial.strategy.state for trial in mine} == {"stitched", "stateful"}


def test_the_choice_is_the_same_each_time(load):
    trials = load("steps: 10, chunk: [1, 4]", "steps: 12, chunk: [1, 2, 3, 4, 6, 12], batch: [1, 2, 3]").trials(
        [Target("fake", "honest"), Target("fake", "check-raises")]
    )
    chosen = every_pair(trials)
    assert chosen == every_pair(list(trials))


def test_a_chunk_of_all_steps_is_one_value_whatever_their_number():
    def of(steps, chunk):
        trial = make_trial(chunk=chunk)
        return replace(trial, steps=steps)

    trials = [of(8, 8), of(8, 4), of(12, 12), of(12, 4)]
    assert len(every_value(trials)) == 2


def test_of_several_choices_the_cheapest_counts_and_not_the_shortest(monkeypatch):
    large = make_trial(time="unrolled", state="none", chunk=12)
    small = [make_trial(state="none", chunk=1), make_trial(state="none", chunk=2)]
    choices = iter([[0], *[[1, 2]] * 100])
    monkeypatch.setattr(covering, "greedy", lambda *_: next(choices))
    assert every_value([large, *small]) == small
