"""Each target is checked on as few points as have every pair of values; slow builders, every value."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from pathlib import Path

import pytest
from harness_trials import make_trial
from unasked import unasked_adapters

from rnnbench.backends.base import Probe
from rnnbench.backends.registry import find
from rnnbench.cases import Target, load_case
from rnnbench.plan import covering_of, covering_trials, examine_all

CASES = Path(__file__).parents[2] / "cases" / "conformance"
HONEST, WRONG = Target("fake", "honest"), Target("fake", "wrong-bound")


@pytest.fixture(autouse=True)
def unasked():
    with unasked_adapters():
        yield


@pytest.fixture
def slow_honest(monkeypatch):
    fake = find("fake")
    probe = fake.probe()
    monkeypatch.setattr(type(fake), "probe", lambda self: replace(probe, slow=("honest",)))
    assert isinstance(fake.probe(), Probe)


def trials_of(target):
    trials = [
        make_trial(str(target), chunk=chunk, state=state, time=time)
        for chunk in (1, 2, 4)
        for state in ("stitched", "stateful")
        for time in ("looped", "unrolled")
    ]
    return [*trials, make_trial(str(target), time="fused"), make_trial(str(target), time="fused", chunk=2)]


def strategies(trials, target):
    return [trial.strategy for trial in trials if trial.target == target and trial.strategy.time != "fused"]


def test_a_slow_route_keeps_every_value_and_every_other_route_every_pair(slow_honest):
    covering = covering_trials([*trials_of(HONEST), *trials_of(WRONG)])
    slow, quick = strategies(covering.trials, HONEST), strategies(covering.trials, WRONG)
    assert len(slow) == 3
    assert {s.chunk for s in slow} == {1, 2, 4}
    assert {s.state for s in slow} == {"stitched", "stateful"}
    assert len(quick) == 6
    assert len({(s.chunk, s.state) for s in quick}) == len({(s.chunk, s.time) for s in quick}) == 6
    assert covering.chosen == {HONEST: 3, WRONG: 6}
    assert covering.supported == {HONEST: 12, WRONG: 12}


def test_unsupported_trials_are_there_once_for_each_reason(slow_honest):
    covering = covering_trials([*trials_of(HONEST), *trials_of(WRONG)])
    refused = [trial for trial in covering.trials if trial.strategy.time == "fused"]
    assert [trial.target for trial in refused] == [HONEST, WRONG]


def test_a_target_has_an_unsupported_trial_for_each_of_its_reasons():
    no_operator = make_trial(time="fused")
    pinned = replace(make_trial(chunk=2), pinned="rnnbench-fake==0.9")
    again = [make_trial(time="fused", chunk=2), replace(make_trial(chunk=1), pinned="rnnbench-fake==0.9")]
    covering = covering_trials([no_operator, pinned, *again])
    assert len(covering.trials) == 2
    assert {trial.pinned for trial in covering.trials} == {"", "rnnbench-fake==0.9"}


def test_sentences_say_what_was_left_out(slow_honest):
    first, second = covering_trials([*trials_of(HONEST), *trials_of(WRONG)]).sentences()
    assert "6 of 12 trials" in first
    assert "fake:honest 3 of 12" in second


def test_there_is_no_sentence_about_slow_routes_where_there_are_none():
    assert len(list(covering_trials(trials_of(WRONG)).sentences())) == 1


def test_routes_that_share_a_compiler_share_the_pairs(monkeypatch):
    fake = find("fake")
    probe = replace(fake.probe(), compilers=dict.fromkeys((HONEST.route, WRONG.route), "Fakes"))
    monkeypatch.setattr(type(fake), "probe", lambda self: probe)
    covering = covering_trials([*trials_of(HONEST), *trials_of(WRONG)])
    both = [*strategies(covering.trials, HONEST), *strategies(covering.trials, WRONG)]
    assert covering.chosen[HONEST] + covering.chosen[WRONG] == len(both) < 12
    assert len({(s.chunk, s.state) for s in both}) == len({(s.chunk, s.time) for s in both}) == 6
    (sentence,) = covering.sentences()
    assert sentence.startswith("Routes into Fakes have every pair of values between them")
    assert f"fake:honest {covering.chosen[HONEST]} of 12, fake:wrong-bound {covering.chosen[WRONG]} of 12" in sentence


def test_slow_routes_share_the_values(monkeypatch):
    fake = find("fake")
    routes = (HONEST.route, WRONG.route)
    probe = replace(fake.probe(), slow=routes, compilers=dict.fromkeys(routes, "Fakes"))
    monkeypatch.setattr(type(fake), "probe", lambda self: probe)
    trials = [replace(trial, batch=batch) for trial in (*trials_of(HONEST), *trials_of(WRONG)) for batch in (1, 2, 3)]
    covering = covering_trials(trials)
    chosen = [trial for trial in covering.trials if trial.strategy.time != "fused"]
    assert {trial.batch for trial in chosen} == {1, 2, 3}
    for target in (HONEST, WRONG):
        assert covering.chosen[target] == 3
        assert {s.chunk for s in strategies(covering.trials, target)} == {1, 2, 4}
    (sentence,) = covering.sentences()
    assert sentence.startswith("Targets with slow builds have every value between them")


def test_of_the_conformance_cases_each_route_has_every_value_and_those_of_a_compiler_have_every_pair(monkeypatch):
    fake = find("fake")
    probe = replace(fake.probe(), compilers=dict.fromkeys((HONEST.route, WRONG.route), "Fakes"))
    monkeypatch.setattr(type(fake), "probe", lambda self: probe)
    cases = [load_case(file) for file in CASES.glob("*.yaml")]
    trials = examine_all([trial for case in cases for trial in case.trials([HONEST, WRONG])])
    supported = [examined.trial for examined in trials if examined.failure is None]
    chosen = [trial for trial in covering_of(trials).trials if trial in supported]
    assert len(chosen) < len(supported) / 2
    assert pairs(chosen) == pairs(supported)
    for target in (HONEST, WRONG):
        assert values(chosen, target) == values(supported, target)


def values(trials, target):
    return {value for trial in trials if trial.target == target for value in facts(trial)}


def pairs(trials):
    return {pair for trial in trials for pair in combinations(facts(trial), 2)}


def facts(trial):
    """Every key of the model and of the strategy, and the others of the workload, with their values."""
    model = {key: str(value) for key, value in trial.model.model_dump().items()}
    strategy = {"time": trial.strategy.time, "state": trial.strategy.state, "chunk": trial.strategy.chunk}
    strategy["chunk"] = "all" if trial.strategy.chunk == trial.steps else trial.strategy.chunk
    workload = {key: getattr(trial, key) for key in ("steps", "batch", "dtype", "threads", "lengths")}
    return list({**model, **strategy, **workload}.items())
