"""A plan is cut the same way on every machine, into shards that together have each trial once."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from dataclasses import replace

import pytest
from harness_trials import make_trial
from hypothesis import given
from hypothesis import strategies as st
from quick_tests import examples
from waiting import PATIENCE_S

from rnnbench.cases import Measure, Trial
from rnnbench.plan import Shard, anchor_trials, group_by_workload, shard_of
from rnnbench.plan.shards import MOST_SHARDS, PREPARATION_S, cut, estimated_cost


def trial_of(case: str, target: str, batch: int, chunk: int, budget: float = 1.0) -> Trial:
    measure = Measure(budget=budget, processes=3)
    return replace(make_trial(target, chunk=chunk, measure=measure), case=case, batch=batch)


PLANS = st.lists(
    st.builds(
        trial_of,
        st.sampled_from(["one", "two", "three"]),
        st.sampled_from(["numpy:eager", "fake:honest", "fake:wrong-bound"]),
        st.integers(1, 6),
        st.sampled_from([1, 2, 4]),
    ),
    min_size=1,
    max_size=60,
    unique_by=lambda trial: trial.id,
)
SHARDS = st.integers(1, 12)


def numpy_of(trials: list[Trial]) -> set[str]:
    return {trial.id for trial in trials if trial.target.backend == "numpy"}


@given(PLANS, SHARDS)
def test_every_trial_belongs_to_just_one_shard(trials, of):
    whole = cut(trials, of, numpy_of(trials))
    own = [trial for shard in whole.shards for trial in shard]
    assert len(whole.shards) == of
    assert sorted(own) == sorted(trial.id for trial in trials)


@given(PLANS, SHARDS)
def test_trials_that_are_compared_are_in_one_shard(trials, of):
    whole = cut(trials, of, numpy_of(trials))
    for group in group_by_workload(trials, lambda trial: trial):
        members = {trial.id for trial in group}
        assert [members <= set(shard) for shard in whole.shards].count(True) == 1


@given(PLANS, SHARDS)
def test_every_shard_with_trials_runs_all_anchors_and_an_empty_one_runs_nothing(trials, of):
    anchors = numpy_of(trials)
    for number in range(1, of + 1):
        part = shard_of(trials, Shard(number, of), anchors)
        own = set(part.whole.own(number))
        assert {trial.id for trial in part.trials} == (own | anchors if own else set())
        assert [trial for trial in trials if trial in part.trials] == list(part.trials), "in the order of the plan"


@given(PLANS, SHARDS, st.randoms(use_true_random=False))
def test_the_order_of_the_trials_decides_nothing(trials, of, chance):
    shuffled = chance.sample(trials, len(trials))
    assert cut(shuffled, of, numpy_of(trials)) == cut(trials, of, numpy_of(trials))


@given(st.lists(st.tuples(st.integers(1, 6), st.sampled_from([0.1, 1.0, 12.0])), min_size=1, max_size=25), SHARDS)
@examples(20)
def test_no_shard_costs_more_than_another_by_more_than_one_group(sizes, of):
    """What the greedy cut promises: the dearest shard without its last group is no dearer than the cheapest."""
    trials = [
        trial_of(f"case{number}", "fake:honest", 1, chunk, budget)
        for number, (size, budget) in enumerate(sizes)
        for chunk in range(1, size + 1)
    ]
    by_id = {trial.id: trial for trial in trials}
    costs = [sum(estimated_cost(by_id[trial]) for trial in shard) for shard in cut(trials, of, ()).shards]
    groups = [sum(map(estimated_cost, group)) for group in group_by_workload(trials, lambda trial: trial)]
    assert max(costs) - min(costs) <= max(groups) + 1e-9


def test_the_dearest_groups_are_given_away_first():
    """In the order of the plan two cheap groups would be in two shards, and the dear one on top of one of them."""
    trials = [trial_of(f"case{number}", "fake:honest", 1, 1, budget) for number, budget in enumerate((5.0, 5.0, 12.0))]
    dear = trials[2].id
    assert {shard for shard in cut(trials, 2, ()).shards if dear in shard} == {(dear,)}


def test_a_trial_that_samples_longer_costs_more():
    short, long = (trial_of("case", "fake:honest", 1, 1, budget) for budget in (0.3, 12.0))
    assert estimated_cost(short) == pytest.approx(PREPARATION_S + 0.3)
    assert estimated_cost(long) - estimated_cost(short) == pytest.approx(11.7)


def test_another_number_of_shards_or_another_way_of_sampling_is_another_plan():
    trials = [trial_of("case", "fake:honest", batch, 1) for batch in range(4)]
    digest = cut(trials, 2, ()).digest
    assert cut(trials, 3, ()).digest != digest
    assert cut([replace(trial, measure=Measure(processes=7)) for trial in trials], 2, ()).digest != digest
    assert cut(trials, 2, [trials[0].id]).digest != digest
    assert cut(trials[:-1], 2, ()).digest != digest


def shuffled_cut() -> str:
    trials = [
        trial_of(case, target, batch, chunk)
        for case in ("one", "two")
        for batch in range(1, 6)
        for chunk in (1, 4)
        for target in ("numpy:eager", "fake:honest")
    ]
    random.shuffle(trials)
    whole = cut(trials, 3, numpy_of(trials))
    return f"{whole.digest} {whole.shards}"


@pytest.mark.proof
def test_the_cut_is_the_same_in_a_process_with_another_hash_seed():
    seed = "2" if os.environ.get("PYTHONHASHSEED") == "1" else "1"
    path = os.pathsep.join([os.path.dirname(__file__), *sys.path])
    variables = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": path}
    command = [sys.executable, "-c", "from test_shards import shuffled_cut; print(shuffled_cut())"]
    done = subprocess.run(command, env=variables, capture_output=True, text=True, check=True, timeout=PATIENCE_S)
    assert done.stdout.strip() == shuffled_cut()


def test_the_baseline_is_the_anchor_unless_there_is_nothing_else():
    numpy, fake = trial_of("case", "numpy:eager", 1, 1), trial_of("case", "fake:honest", 1, 1)
    assert anchor_trials([numpy, fake]) == {numpy.id}
    assert anchor_trials([numpy]) == frozenset()
    assert anchor_trials([fake]) == frozenset()


def test_trials_of_pinned_versions_are_in_every_shard_that_has_others():
    trials = [trial_of("case", target, batch, 1) for batch in (1, 2, 3) for target in ("numpy:eager", "fake:honest")]
    pinned = replace(trial_of("anchors", "fake:honest", 1, 1), pinned="fake==1")
    assert anchor_trials([*trials, pinned]) == {pinned.id, *numpy_of(trials)}
    assert anchor_trials([trials[0], pinned]) == {pinned.id}, "the baseline alone is measured for itself"
    anchors = anchor_trials([*trials, pinned])
    shards = [shard_of([*trials, pinned], Shard(number, 4), anchors) for number in (1, 2, 3, 4)]
    assert [pinned in shard.trials for shard in shards] == [True, True, True, False]
    assert [len(shard.whole.own(number)) for number, shard in enumerate(shards, 1)] == [3, 2, 2, 0]


def test_a_shard_says_what_it_has():
    trials = [trial_of("case", target, batch, 1) for batch in (1, 2) for target in ("numpy:eager", "fake:honest")]
    first = shard_of(trials, Shard(1, 3), numpy_of(trials))
    assert first.sentence == "shard 1/3: 2 of 4 trials, and 1 anchor of another shard, which every shard runs"
    third = shard_of(trials, Shard(3, 3), numpy_of(trials))
    assert third.sentence.startswith("shard 3/3 is empty")
    assert third.trials == ()


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("x", "expected K/N, for example 2/8"),
        ("2", "expected K/N"),
        ("2/8/9", "expected K/N"),
        ("-1/8", "expected K/N"),
        ("1.0/2", "expected K/N"),
        ("٢/٨", "expected K/N"),
        ("", "expected K/N"),
        ("0/8", "from 1 to 8, not 0"),
        ("9/8", "from 1 to 8, not 9"),
        ("0/0", f"1 to {MOST_SHARDS:,} shards"),
        ("1/999999999", f"1 to {MOST_SHARDS:,} shards"),
        ("1/" + "9" * 5000, "expected K/N"),
    ],
)
def test_a_text_that_is_no_shard_is_refused_with_what_was_expected(text, told):
    with pytest.raises(ValueError, match=told.replace("(", "\\(")):
        Shard.parse(text)


def test_a_shard_is_written_as_it_is_read():
    assert str(Shard.parse("2/8")) == "2/8"
