"""Each target is checked on as few points as have every pair of values; slow builders, every value."""

from __future__ import annotations

from dataclasses import replace

import pytest
from harness_trials import make_trial
from unasked import unasked_adapters

from rnnbench.backends.base import Probe
from rnnbench.backends.registry import find
from rnnbench.cases import Target
from rnnbench.plan import covering_trials

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


def test_sentences_say_what_was_left_out(slow_honest):
    first, second = covering_trials([*trials_of(HONEST), *trials_of(WRONG)]).sentences()
    assert "6 of 12 trials" in first
    assert "fake:honest 3 of 12" in second


def test_there_is_no_sentence_about_slow_routes_where_there_are_none():
    assert len(list(covering_trials(trials_of(WRONG)).sentences())) == 1


def test_routes_that_share_a_compiler_share_the_pairs(monkeypatch):
    fake = find("fake")
    probe = replace(fake.probe(), shared=(HONEST.route, WRONG.route))
    monkeypatch.setattr(type(fake), "probe", lambda self: probe)
    covering = covering_trials([*trials_of(HONEST), *trials_of(WRONG)])
    both = [*strategies(covering.trials, HONEST), *strategies(covering.trials, WRONG)]
    assert covering.chosen[HONEST] + covering.chosen[WRONG] == len(both) < 12
    assert len({(s.chunk, s.state) for s in both}) == len({(s.chunk, s.time) for s in both}) == 6
    assert any("between them" in sentence and "fake:honest" in sentence for sentence in covering.sentences())
